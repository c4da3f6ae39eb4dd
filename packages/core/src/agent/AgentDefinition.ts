/** Parses an agent's definition, in the configuration or in a file's front matter. Pure. Spec: CF-12, CF-14. */
import { Either, Schema } from "effect"
import { amount, counting, expects, name, optional, shaped, someText, text, texts } from "../definition/Fields.ts"
import type { Frontmatter } from "../definition/Frontmatter.ts"
import { decodeParsed, type Issue } from "../definition/Yaml.ts"
import { type Agent, BashMode, type RequestSettings } from "../domain/Agent.ts"
import { build, builtins } from "./BuiltinAgents.ts"
import { WrittenModel } from "./ModelName.ts"
import { WrittenRules } from "./PermissionRules.ts"

const Settings = Schema.Struct({
  max_output_tokens: optional(counting),
  temperature: optional(amount),
  top_p: optional(amount),
  top_k: optional(counting),
  stop: optional(texts),
  effort: optional(someText),
  headers: optional(Schema.Record({ key: Schema.String, value: text }).pipe(shaped("a map of texts"))),
  body: optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }).pipe(shaped("a map")))
}).pipe(shaped("a map of request settings"))

const fields = {
  description: optional(someText),
  mode: optional(Schema.Literal("primary", "subagent", "all").pipe(expects("primary, subagent or all"))),
  model: optional(WrittenModel),
  turn_limit: optional(Schema.Int.pipe(Schema.between(1, 1_000), expects("a whole number from 1 to 1000"))),
  permissions: optional(WrittenRules),
  settings: optional(Settings),
  enter_reminder: optional(someText),
  leave_reminder: optional(someText),
  bash: optional(BashMode.pipe(expects("process or live")))
}

/** An agent in the configuration, under its name. */
export const ConfiguredAgent = Schema.Struct({ ...fields, prompt: optional(someText) }).pipe(shaped("a map"))

/** An agent in a file's front matter; the body is the prompt. */
const FileAgent = Schema.Struct({ ...fields, name: optional(name) }).pipe(shaped("a map"))

export type AgentDefinition = typeof ConfiguredAgent.Type

/** An agent of a file, before its base is known. */
export interface NamedDefinition {
  readonly name: string
  readonly definition: AgentDefinition
}

/** Parses a file. The name is the file's stem unless the front matter sets one. */
export const parseAgentFile = (
  { body, data }: Frontmatter,
  stem: string
): Either.Either<NamedDefinition, ReadonlyArray<Issue>> =>
  Either.flatMap(decodeParsed(FileAgent, data), ({ name: given, ...definition }) =>
    Either.mapBoth(given === undefined ? decodeParsed(name, { ...data, value: stem }) : Either.right(given), {
      onLeft: (issues) =>
        issues.map(({ details }) => ({ path: "name", details: `${details}; rename the file, or give a name in it` })),
      onRight: (found) => ({ name: found, definition: body === "" ? definition : { ...definition, prompt: body } })
    })
  )

const settingsOf = (written: typeof Settings.Type): RequestSettings => {
  const { max_output_tokens: maxOutputTokens, top_k: topK, top_p: topP, ...rest } = written
  return {
    ...rest,
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(topK === undefined ? {} : { topK }),
    ...(topP === undefined ? {} : { topP })
  }
}

/** Extends `base`: fields of the definition replace the base's, its rules follow the base's. */
export const extend = (base: Agent, agentName: string, definition: AgentDefinition): Agent => {
  const { bash, description, mode, model, prompt } = definition
  return {
    ...base,
    name: agentName,
    permissions: [...base.permissions, ...(definition.permissions ?? [])],
    ...(bash === undefined ? {} : { bash }),
    ...(description === undefined ? {} : { description }),
    ...(mode === undefined ? {} : { mode }),
    ...(model === undefined ? {} : { model }),
    ...(prompt === undefined ? {} : { prompt }),
    ...(definition.turn_limit === undefined ? {} : { turnLimit: definition.turn_limit }),
    ...(definition.settings === undefined ? {} : { settings: settingsOf(definition.settings) }),
    ...(definition.enter_reminder === undefined ? {} : { enterReminder: definition.enter_reminder }),
    ...(definition.leave_reminder === undefined ? {} : { leaveReminder: definition.leave_reminder })
  }
}

/** A user's agent: a change to the built-in agent of that name, or a new one with the rules of `build`. */
export const userAgent = ({ definition, name: agentName }: NamedDefinition): Agent =>
  extend(
    builtins.find(({ name: known }) => known === agentName) ?? { name: agentName, permissions: build.permissions },
    agentName,
    definition
  )

/** A project's agent, with the settings that were ignored. */
export interface Restricted {
  readonly agent: Agent
  readonly ignored: ReadonlyArray<string>
}

/**
 * A project's agent: never more permissive than `from`, the user's agent for such work. Its rules follow that agent's,
 * without those that allow. The denials are repeated at the end, so that an `ask` weakens none of them.
 */
export const projectAgent = (
  from: Agent,
  { definition, name: agentName }: NamedDefinition,
  maximumTurns: number
): Restricted => {
  const { bash, permissions = [], settings, turn_limit: turns, ...rest } = definition
  const restricting = permissions.filter(({ verdict }) => verdict !== "allow")
  const { body, headers, ...plain } = settings ?? {}
  const limit = from.turnLimit ?? maximumTurns
  const denials = from.permissions.filter(({ verdict }) => verdict === "deny")
  const mayLive = bash !== "live" || from.bash === "live"
  const agent = extend({ name: agentName, permissions: from.permissions }, agentName, {
    ...rest,
    permissions: [...restricting, ...denials],
    turn_limit: Math.min(turns ?? limit, limit),
    ...(bash === undefined || !mayLive ? {} : { bash }),
    ...(settings === undefined ? {} : { settings: plain })
  })
  const ignored = [
    ...(restricting.length < permissions.length ? ["rules that allow are ignored: a project can only restrict"] : []),
    ...(headers === undefined && body === undefined
      ? []
      : ["settings.headers and settings.body are ignored in a project"]),
    ...(turns !== undefined && turns > limit ? [`turn_limit is ${limit}, that of agent "${from.name}"`] : []),
    ...(mayLive ? [] : [`bash: live is ignored: agent "${from.name}" has no live shell`])
  ]
  return { agent, ignored }
}
