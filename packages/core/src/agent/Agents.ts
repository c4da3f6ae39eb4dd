/**
 * Defines agents: how a session behaves and what it may do. Resolves names: the host's agents, the user's folder, the
 * built-in ones, then the project's. `AgentFiles.ts` reads files. A session without an agent uses `build` (CR-6).
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

/** No such agent, or its file is unusable. */
export class AgentNotFound extends Schema.TaggedError<AgentNotFound>("@daybook/core/AgentNotFound")("AgentNotFound", {
  agent: Schema.String,
  known: Schema.Array(Schema.String),
  /** The problem of the file that defines this agent. */
  problem: Schema.optionalWith(Schema.String, { exact: true })
}) {
  override get message() {
    return this.problem === undefined
      ? `there is no agent "${this.agent}"; known: ${this.known.join(", ")}`
      : `agent "${this.agent}" cannot be used: ${this.problem}`
  }
}

/** Where an agent may work: as a session's agent (`primary`), for a `task` of another agent (`subagent`), or both. */
export const AgentMode = Schema.Literal("primary", "subagent", "all")
export type AgentMode = typeof AgentMode.Type

/** A named behaviour of a session: its prompt, its permissions, and its limits. */
export interface Agent {
  readonly name: string
  /** One line: the agent's purpose. People choose by it, and so does a model that assigns a `task`. */
  readonly description?: string
  /** Default: `all`. */
  readonly mode?: AgentMode
  /** The agent's system text, before the context's baseline; replaces the base instructions of the model's family. */
  readonly prompt?: string
  /** Ordered rules; the last match decides. */
  readonly permissions: ReadonlyArray<Rule>
  /** Provider turns per activity; default: 25. */
  readonly turnLimit?: number
  /** Used by sessions without a model. */
  readonly model?: ModelRef
  readonly settings?: RequestSettings
  /** Sent once when a session switches to this agent, and when it leaves it. */
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
    /** Returns the agent with this name (default: `build`). With a Location, includes its project's agents. */
    readonly get: (name: string | undefined, location?: Location) => Effect.Effect<Agent, AgentNotFound>
    readonly list: (location?: Location) => Effect.Effect<ReadonlyArray<Agent>>
    /** Files that are unusable or only partly usable. */
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

/** Agents from a list and from files. Includes the built-in ones, unless the list replaces them by name. */
export const layer = (options: AgentFilesOptions | ReadonlyArray<Agent> = {}): Layer.Layer<Agents> =>
  Layer.effect(
    Agents,
    Effect.map(ProjectTrust, (trust) => make(isList(options) ? { agents: options } : options, trust))
  )

const isList = (options: AgentFilesOptions | ReadonlyArray<Agent>): options is ReadonlyArray<Agent> =>
  Array.isArray(options)
