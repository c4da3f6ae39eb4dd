/**
 * Changes a session by one event each: its address, Location, title, budget, what the model is shown, and answers to
 * the model. Spec: AD-4, IB-3, IB-40 in specs/sessions.md, EX-B1, EX-B6 in specs/execution.md, CP-35 in
 * specs/context.md, TO-84 in specs/tools.md, RQ-54 in specs/context.md (EP-9, CR-3, CR-4).
 */
import { Effect, Option, Schema } from "effect"
import { Identifiers, isMessageID, type MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { NotWaiting } from "@daybook/log/domain/InboxError"
import { validate } from "@daybook/log/domain/InvalidInput"
import { Budget, type Location, ModelRef, sameModel } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { Agents } from "../agent/Agents.ts"
import { Lineage } from "../agent/Lineage.ts"
import type { QuestionRef } from "../domain/Question.ts"
import { PriceUnknown } from "../domain/RunFailure.ts"
import { ModelResolver } from "../model/ModelResolver.ts"
import { nothingPruned } from "../request/Prune.ts"
import { switched } from "../request/Reminders.ts"
import { modelOf } from "../runner/Preparation.ts"
import { knownAgent, knownModel, switchReminders } from "./Creation.ts"
import type { Existing, Locations, Placements } from "./Placement.ts"
import { Questions } from "./Questions.ts"

// Switches a session's agent and model.

export const makeSwitching = Effect.fnUntraced(function* ({ changes }: Existing) {
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

/** Fails if the session's model has no known price. An unavailable model is not refused here: the run reports it. */
const makeKnownPrice = Effect.gen(function* () {
  const store = yield* SessionStore
  const lineage = yield* Lineage
  const models = yield* ModelResolver

  return Effect.fnUntraced(function* (sessionID: SessionID) {
    const session = yield* store.get(sessionID)
    const agent = yield* Effect.option(lineage.agentOf(session))
    const asked = Effect.flatMap(agent, (own) => models.resolve(modelOf(session, own), own.settings ?? {}))
    const model = yield* Effect.option(asked)
    if (Option.isSome(model) && model.value.info.price === undefined) {
      return yield* new PriceUnknown({ sessionID, model: model.value.info.ref })
    }
  })
})

const makeAnswers = Effect.fnUntraced(function* ({ unlessRemoved }: Existing) {
  const questions = yield* Questions

  const asked =
    <Options extends QuestionRef, E extends { readonly _tag: string }>(
      close: (options: Options) => Effect.Effect<void, E>
    ) =>
    (options: Options) =>
      Effect.flatMap(validate("sessionID", SessionID, options.sessionID), (sessionID) =>
        unlessRemoved(sessionID, close(options))
      )

  return { answer: asked(questions.answer), dismissQuestion: asked(questions.dismiss) }
})

export const make = Effect.fnUntraced(function* (existing: Existing, { place }: Locations, placements: Placements) {
  const { changes } = existing
  const log = yield* EventLog
  const store = yield* SessionStore
  const inbox = yield* Inbox
  const knownPrice = yield* makeKnownPrice
  const answers = yield* makeAnswers(existing)

  const append = (sessionID: SessionID, event: Draft) => Effect.asVoid(log.append(sessionID, [event]))

  const move = Effect.fn("Sessions.move")(function* (sessionID: SessionID, to: Location) {
    const location = yield* place(to)
    yield* append(sessionID, draft("session.next.moved", { location }))
  })

  const rename = Effect.fn("Sessions.rename")(function* (sessionID: SessionID, name: string) {
    const title = yield* validate("title", Schema.String, name)
    yield* append(sessionID, draft("session.next.renamed", { title }))
  })

  const setBudget = Effect.fn("Sessions.setBudget")(function* (sessionID: SessionID, amounts: Budget) {
    const budget = yield* validate("budget", Budget, amounts)
    if (budget.cost !== undefined) yield* knownPrice(sessionID)
    yield* append(sessionID, draft("session.next.budget.set", { budget }))
  })

  const unprune = Effect.fn("Sessions.unprune")(function* (sessionID: SessionID) {
    const { prunedSeq = nothingPruned } = yield* store.get(sessionID)
    if (prunedSeq === nothingPruned) return
    yield* append(sessionID, draft("session.next.context.pruned", { through: nothingPruned }))
  })

  const withdraw = Effect.fn("Sessions.withdraw")(function* (sessionID: SessionID, messageID: MessageID) {
    if (!isMessageID(messageID)) return yield* new NotWaiting({ sessionID, messageID })
    yield* inbox.withdraw(sessionID, messageID)
  })

  return {
    ...answers,
    place: changes(placements.place),
    move: changes(move),
    rename: changes(rename),
    setBudget: changes(setBudget),
    unprune: changes(unprune),
    withdraw: changes(withdraw)
  }
})
