/**
 * Defines agents: how a session behaves and what it may do. Resolves names: the host's agents, the user's folder, the
 * built-in ones, then the project's. A session without an agent uses `build` (CR-6). Spec:
 * CF-10..CF-19.
 */
import { Context, Effect, Either, Layer, Schema } from "effect"
import { defaultAgent, type Location } from "@daybook/log/domain/Values"
import { type Definition, type DefinitionSources, makeDefinitions } from "../definition/DefinitionFolder.ts"
import { type Agent, AgentNotFound } from "../domain/Agent.ts"
import { ProjectTrust, type Trust } from "../trust/ProjectTrust.ts"
import { type NamedDefinition, parseAgentFile, projectAgent, userAgent } from "./AgentDefinition.ts"
import { builtins } from "./BuiltinAgents.ts"
import { spanned } from "@daybook/log/support/Spans"

// Loads agents from `*.md` files in the user's folder and the project's `.daybook/agents`.

/** An agent file that is unusable or only partly usable. */
export const AgentProblem = Schema.Struct({ path: Schema.String, details: Schema.String })
export type AgentProblem = typeof AgentProblem.Type

/** The user's folder has `agents/*.md`; it is `$XDG_CONFIG_HOME/daybook`. */
export interface AgentFilesOptions extends DefinitionSources {
  readonly agents?: ReadonlyArray<Agent> | undefined
  /** Changes each agent, wherever it comes from. */
  readonly adjustAgent?: ((agent: Agent) => Agent) | undefined
}

/** The agents at one Location, and the problems of their files. */
export interface FoundAgents {
  readonly byName: ReadonlyMap<string, Agent>
  /** Maps names with an unusable file to the reason. */
  readonly broken: ReadonlyMap<string, string>
  readonly problems: ReadonlyArray<AgentProblem>
}

/** Default turns per activity (TU-4). */
const defaultTurns = 25

type File = Definition<NamedDefinition>

/** Merges the user's files into the host's agents, then adds the built-in agents that are not replaced. */
const withUserFiles = (hosts: ReadonlyArray<Agent>, files: ReadonlyArray<File>) => {
  const byName = new Map(hosts.map((agent) => [agent.name, agent]))
  const broken = new Map<string, string>()
  const problems: Array<AgentProblem> = []
  for (const { path: file, result, stem } of files) {
    if (Either.isLeft(result)) {
      problems.push({ path: file, details: result.left })
      // The name fails instead of falling back: the file's rules may have been stricter than the fallback's.
      if (!byName.has(stem)) broken.set(stem, `${file}: ${result.left}`)
    } else if (byName.has(result.right.name)) {
      const details = `agent "${result.right.name}" already exists, from the configuration or another file; this file is ignored`
      problems.push({ path: file, details })
    } else {
      byName.set(result.right.name, userAgent(result.right))
    }
  }
  for (const name of byName.keys()) broken.delete(name)
  const standing = builtins.flatMap((agent) => byName.get(agent.name) ?? (broken.has(agent.name) ? [] : agent))
  return { byName: new Map([...standing.map((agent) => [agent.name, agent] as const), ...byName]), broken, problems }
}

/** Merges the project's files, with the lowest precedence: they add agents and replace none. */
const withProjectFiles = (above: FoundAgents, files: ReadonlyArray<File>): FoundAgents => {
  const byName = new Map(above.byName)
  const broken = new Map(above.broken)
  const problems = [...above.problems]
  const from = byName.get(defaultAgent)
  for (const { path: file, result, stem } of files) {
    if (Either.isLeft(result)) {
      problems.push({ path: file, details: result.left })
      if (!byName.has(stem) && !broken.has(stem)) broken.set(stem, `${file}: ${result.left}`)
      continue
    }
    const { name } = result.right
    if (byName.has(name) || above.broken.has(name)) {
      problems.push({
        path: file,
        details: `agent "${name}" already exists, and a project cannot change it; choose another name`
      })
    } else if (from === undefined) {
      const details = `agent "${defaultAgent}", whose rules it starts from, cannot be used`
      problems.push({ path: file, details })
      broken.set(name, `${file}: ${details}`)
    } else {
      const { agent, ignored } = projectAgent(from, result.right, defaultTurns)
      byName.set(name, agent)
      broken.delete(name)
      problems.push(...ignored.map((details) => ({ path: file, details })))
    }
  }
  return { byName, broken, problems }
}

/** Loads the agents for a Location; without one, only the agents that exist everywhere. */
const makeAgentFiles = (options: AgentFilesOptions, trust: Trust) => {
  const { ofProject, ofUser, warn } = makeDefinitions("agents", parseAgentFile, options, trust)
  return Effect.fnUntraced(function* (location: Location | undefined) {
    const above = withUserFiles(options.agents ?? [], yield* ofUser)
    const found = withProjectFiles(above, yield* ofProject(location))
    yield* warn(found.problems)
    return found
  })
}

/** What `Agents` offers. */
export interface Service {
  /** Returns the agent with this name (default: `build`). With a Location, includes its project's agents. */
  readonly get: (name: string | undefined, location?: Location) => Effect.Effect<Agent, AgentNotFound>
  readonly list: (location?: Location) => Effect.Effect<ReadonlyArray<Agent>>
  /** Files that are unusable or only partly usable. */
  readonly problems: (location?: Location) => Effect.Effect<ReadonlyArray<AgentProblem>>
}

/**
 * The agents of this host, its user, and the project at a Location.
 *
 * @example
 * ```ts
 * import { Agents } from "@daybook/core"
 * import { Effect } from "effect"
 *
 * export const names = Effect.gen(function* () {
 *   const agents = yield* Agents.Agents
 *   return (yield* agents.list({ directory: process.cwd() })).map(({ name }) => name)
 * })
 * ```
 */
export class Agents extends Context.Tag("@daybook/core/Agents")<Agents, Service>() {}

const make = (options: AgentFilesOptions, trust: Trust): Context.Tag.Service<typeof Agents> => {
  const look = makeAgentFiles(options, trust)
  const { adjustAgent = (agent) => agent } = options
  return {
    get: spanned(
      "Agents.get",
      Effect.fnUntraced(function* (name = defaultAgent, location) {
        const { broken, byName } = yield* look(location)
        const agent = byName.get(name)
        if (agent !== undefined) return adjustAgent(agent)
        const problem = broken.get(name)
        const known = [...byName.keys()]
        return yield* new AgentNotFound({ agent: name, known, ...(problem === undefined ? {} : { problem }) })
      })
    ),
    list: Effect.fn("Agents.list")((location) =>
      Effect.map(look(location), ({ byName }) => [...byName.values()].map((agent) => adjustAgent(agent)))
    ),
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
