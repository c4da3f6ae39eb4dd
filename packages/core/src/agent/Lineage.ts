/** Resolves a session's effective agent: its own, restricted by the agents of its ancestors. Spec: TO-103, TO-105. */
import { Context, Effect, Layer } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import type { Agent, AgentNotFound } from "../domain/Agent.ts"
import { Agents } from "./Agents.ts"
import { effectiveAgent } from "./EffectiveAgent.ts"

export interface LineageOptions {
  /** A session with this many ancestors starts no children; 0 disables `task`. */
  readonly taskDepth: number
}

/** Resolves effective agents. */
export class Lineage extends Context.Tag("@daybook/core/Lineage")<
  Lineage,
  {
    /** The session's agent with its ancestors' denials, and without `task` if the session is too deep. */
    readonly agentOf: (session: Session) => Effect.Effect<Agent, AgentNotFound | StoreError>
  }
>() {}

const make = Effect.fnUntraced(function* ({ taskDepth }: LineageOptions) {
  const agents = yield* Agents
  const store = yield* SessionStore
  return Lineage.of({
    agentOf: Effect.fn("Lineage.agentOf")(function* (session) {
      const own = yield* agents.get(session.agent, session.location)
      const above = session.parentID === undefined ? [] : yield* store.ancestors(session.id)
      // A missing ancestor agent would deny nothing, so the child fails until it exists again.
      const ancestors = yield* Effect.forEach(above, ({ agent, location }) => agents.get(agent, location))
      return effectiveAgent(own, ancestors, taskDepth)
    })
  })
})

/** Reads the sessions of one database. */
export const layer = (options: LineageOptions) => Layer.effect(Lineage, make(options))
