/** Agents: how a session behaves and what it may do. A session without an agent is `build` (CR-6). */
import { Context, Effect, Layer, Schema } from "effect"
import type { Rule } from "../permission/Rule.ts"

/** The session names an agent that this host does not have. */
export class AgentNotFound extends Schema.TaggedError<AgentNotFound>("@daybook/core/AgentNotFound")("AgentNotFound", {
  agent: Schema.String,
  known: Schema.Array(Schema.String)
}) {
  override get message() {
    return `there is no agent "${this.agent}"; known: ${this.known.join(", ")}`
  }
}

/** How a session behaves under this name: what it is told, what it may do, and for how long. */
export interface Agent {
  readonly name: string
  /** System text of this agent, before the context's baseline. */
  readonly prompt?: string
  /** Ordered rules; the last that matches decides. */
  readonly permissions: ReadonlyArray<Rule>
  /** Provider turns in one activity; 25 by default. */
  readonly turnLimit?: number
}

/** The agent of a session that names none, for execution and permission alike. */
export const defaultAgent = "build"

/** Reads and searches freely inside the Location; everything else asks. */
export const build: Agent = {
  name: defaultAgent,
  permissions: [
    { permission: "read", resource: "*", verdict: "allow" },
    { permission: "glob", resource: "*", verdict: "allow" },
    { permission: "grep", resource: "*", verdict: "allow" }
  ]
}

/** The agents of this host. */
export class Agents extends Context.Tag("@daybook/core/Agents")<
  Agents,
  {
    readonly get: (name: string | undefined) => Effect.Effect<Agent, AgentNotFound>
    readonly list: Effect.Effect<ReadonlyArray<Agent>>
  }
>() {}

/** Agents from a list; `build` is there unless the list has its own. */
export const layer = (agents: ReadonlyArray<Agent> = []): Layer.Layer<Agents> => {
  const byName = new Map([build, ...agents].map((agent) => [agent.name, agent]))
  return Layer.succeed(Agents, {
    get: (name = defaultAgent) => {
      const agent = byName.get(name)
      return agent === undefined
        ? Effect.fail(new AgentNotFound({ agent: name, known: [...byName.keys()] }))
        : Effect.succeed(agent)
    },
    list: Effect.sync(() => [...byName.values()])
  })
}
