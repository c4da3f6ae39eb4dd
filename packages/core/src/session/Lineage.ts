/** The agent that a session really works as: its own, held to what the agents above it may do. Spec: TO-103, TO-105. */
import { Context, Effect, Layer } from "effect"
import { Agents, type Agent, type AgentNotFound } from "../agent/Agents.ts"
import { effectiveAgent } from "../agent/EffectiveAgent.ts"
import type { Session } from "./Message.ts"
import { SessionStore } from "./SessionStore.ts"
import type { StoreError } from "./StoreError.ts"

export interface LineageOptions {
  /** A session with this many above it starts no children; 0 turns `task` off. */
  readonly taskDepth: number
}

export class Lineage extends Context.Tag("@daybook/core/Lineage")<
  Lineage,
  {
    /** The session's agent with the denials of those above it, and without `task` where it is too deep for that. */
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
      // An agent that is gone would deny nothing: the child waits until it is there again.
      const ancestors = yield* Effect.forEach(above, ({ agent, location }) => agents.get(agent, location))
      return effectiveAgent(own, ancestors, taskDepth)
    })
  })
})

/** Over the sessions of one database. */
export const layer = (options: LineageOptions) => Layer.effect(Lineage, make(options))
