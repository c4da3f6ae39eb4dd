/**
 * Defines agents: how a session behaves and what it may do. Resolves names: the host's agents, the user's folder, the
 * built-in ones, then the project's. `AgentFiles.ts` reads files. A session without an agent uses `build` (CR-6).
 * Spec: CF-10..CF-19.
 */
import { Context, Effect, Layer } from "effect"
import { defaultAgent, type Location } from "@daybook/log/domain/Values"
import { type Agent, AgentNotFound } from "../domain/Agent.ts"
import { ProjectTrust, type Trust } from "../trust/ProjectTrust.ts"
import { type AgentFilesOptions, type AgentProblem, makeAgentFiles } from "./AgentFiles.ts"

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
