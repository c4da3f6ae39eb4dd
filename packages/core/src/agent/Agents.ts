/**
 * Agents: how a session behaves and what it may do. Owns which agent a name means: the host's, the user's folder, the
 * built-in ones, then the project's. Reading files is in `AgentFiles.ts`. A session without an agent is `build` (CR-6).
 * Spec: CF-10..CF-19.
 */
import { Context, Effect, Layer, Schema } from "effect"
import type { RequestSettings } from "../model/ModelResolver.ts"
import type { Rule } from "../permission/Rule.ts"
import type { Location, ModelRef } from "../session/Schemas.ts"
import { ProjectTrust, type Trust } from "../trust/ProjectTrust.ts"
import { makeAgentFiles, type AgentFilesOptions, type AgentProblem } from "./AgentFiles.ts"
import { defaultAgent } from "./BuiltinAgents.ts"

export { build, defaultAgent, plan } from "./BuiltinAgents.ts"
export { AgentProblem, type AgentFilesOptions } from "./AgentFiles.ts"

/** There is no such agent, or its file cannot be used. */
export class AgentNotFound extends Schema.TaggedError<AgentNotFound>("@daybook/core/AgentNotFound")("AgentNotFound", {
  agent: Schema.String,
  known: Schema.Array(Schema.String),
  /** What is wrong with the file that should have been this agent. */
  problem: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message() {
    return this.problem === undefined
      ? `there is no agent "${this.agent}"; known: ${this.known.join(", ")}`
      : `agent "${this.agent}" cannot be used: ${this.problem}`
  }
}

/** Where an agent may work: as a session's own (`primary`), for a `task` of another one (`subagent`), or both. */
export const AgentMode = Schema.Literal("primary", "subagent", "all")
export type AgentMode = typeof AgentMode.Type

/** How a session behaves under this name: what it is told, what it may do, and for how long. */
export interface Agent {
  readonly name: string
  /** One line: what it is for. People choose by it, and so does a model that hands out a `task`. */
  readonly description?: string
  /** `all` by default. */
  readonly mode?: AgentMode
  /** System text of this agent, before the context's baseline; instead of the model family's base instructions. */
  readonly prompt?: string
  /** Ordered rules; the last that matches decides. */
  readonly permissions: ReadonlyArray<Rule>
  /** Provider turns in one activity; 25 by default. */
  readonly turnLimit?: number
  /** Used by sessions that name no model. */
  readonly model?: ModelRef
  readonly settings?: RequestSettings
  /** Told once when a session switches to this agent, and when it leaves it. */
  readonly enterReminder?: string
  readonly leaveReminder?: string
}

/** Whether a session may be created with the agent or switched to it. */
export const canLead = ({ mode = "all" }: Agent): boolean => mode !== "subagent"

/** Whether `task` may start the agent in a child session. */
export const canAssist = ({ mode = "all" }: Agent): boolean => mode !== "primary"

/** The agents of this host, its user, and the project at a Location. */
export class Agents extends Context.Tag("@daybook/core/Agents")<
  Agents,
  {
    /** The agent of that name (`build` without one), with those of the Location's project when one is given. */
    readonly get: (name: string | undefined, location?: Location) => Effect.Effect<Agent, AgentNotFound>
    readonly list: (location?: Location) => Effect.Effect<ReadonlyArray<Agent>>
    /** Files that cannot be used, or not as they are written. */
    readonly problems: (location?: Location) => Effect.Effect<ReadonlyArray<AgentProblem>>
  }
>() {}

const make = (options: AgentFilesOptions, trust: Trust): Context.Tag.Service<typeof Agents> => {
  const look = makeAgentFiles({ ...options, trust })
  return {
    get: Effect.fn("Agents.get")(function* (name = defaultAgent, location) {
      const { broken, byName } = yield* look(location)
      const agent = byName.get(name)
      if (agent !== undefined) return agent
      const problem = broken.get(name)
      const known = [...byName.keys()]
      return yield* new AgentNotFound({ agent: name, known, ...(problem === undefined ? {} : { problem }) })
    }),
    list: Effect.fn("Agents.list")((location) => Effect.map(look(location), ({ byName }) => [...byName.values()])),
    problems: Effect.fn("Agents.problems")((location) => Effect.map(look(location), ({ problems }) => problems))
  }
}

/** Agents from a list and from files. Built-in ones are there unless the list has its own under their name. */
export const layer = (options: AgentFilesOptions | ReadonlyArray<Agent> = {}): Layer.Layer<Agents> =>
  Layer.effect(
    Agents,
    Effect.map(ProjectTrust, (trust) => make(isList(options) ? { agents: options } : options, trust))
  )

const isList = (options: AgentFilesOptions | ReadonlyArray<Agent>): options is ReadonlyArray<Agent> =>
  Array.isArray(options)
