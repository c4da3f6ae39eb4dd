/** Switches a session's agent and model. Spec: CR-3, CR-4, IB-3, RQ-54. */
import { Effect } from "effect"
import { Identifiers, type SessionID } from "@daybook/log/domain/Identifiers"
import { validate } from "@daybook/log/domain/InvalidInput"
import { ModelRef, sameModel } from "@daybook/log/domain/Values"
import { draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { Agents } from "../agent/Agents.ts"
import { ModelResolver } from "../model/ModelResolver.ts"
import { switched } from "../request/Reminders.ts"
import { knownAgent, knownModel, switchReminders } from "./AgentChoice.ts"
import type { Existing } from "./Existing.ts"

export const make = Effect.fnUntraced(function* ({ changes }: Existing) {
  const log = yield* EventLog
  const store = yield* SessionStore
  const agents = yield* Agents
  const models = yield* ModelResolver
  const identifiers = yield* Identifiers

  const switchAgent = Effect.fn("Sessions.switchAgent")(function* (sessionID: SessionID, agent: string) {
    const { agent: current, location, parentID } = yield* store.get(sessionID)
    const to = yield* knownAgent(agents, agent, location, parentID !== undefined)
    const messageID = yield* identifiers.message
    const reminders = yield* Effect.forEach(yield* switchReminders(agents, current, to, location), (text) =>
      Effect.map(identifiers.message, (id) => draft("session.next.synthetic", { messageID: id, text: switched(text) }))
    )
    yield* log.append(sessionID, [draft("session.next.agent.switched", { messageID, agent }), ...reminders])
  })

  const switchModel = Effect.fn("Sessions.switchModel")(function* (sessionID: SessionID, to: ModelRef) {
    const { model: current } = yield* store.get(sessionID)
    if (current !== undefined && sameModel(current, yield* validate("model", ModelRef, to))) return
    const model = yield* knownModel(models, to)
    const messageID = yield* identifiers.message
    yield* log.append(sessionID, [draft("session.next.model.switched", { messageID, model })])
  })

  return { switchAgent: changes(switchAgent), switchModel: changes(switchModel) }
})
