/**
 * Parses an agent's definition, in the configuration or in a file's front matter. Pure. Spec: CF-12..CF-14, CF-46 in
 * specs/config.md.
 */
import { Either, ParseResult, Schema, Struct } from "effect"
import type { ModelRef } from "@daybook/log/domain/Values"
import { present } from "@daybook/log/support/Optional"
import {
  amount,
  counting,
  decodeParsed,
  expects,
  type Frontmatter,
  made,
  name,
  optional,
  selected,
  shaped,
  someText,
  text,
  texts
} from "../definition/Yaml.ts"
import { type Agent, BashMode, type RequestSettings } from "../domain/Agent.ts"
import { compile, covers as patternCovers } from "../domain/Pattern.ts"
import type { Rule, Verdict } from "../domain/Rule.ts"
import { build, builtins } from "./BuiltinAgents.ts"

// Parses permission rules: in a list the last match decides; a map is ordered from general to exact, the stricter
// pattern last.

const WrittenVerdict = Schema.Literal("allow", "deny", "ask").pipe(expects("allow, ask or deny"))

/** Limits: ordering a map compares all pairs of rules, in time linear in their characters. */
const maximumRules = 200
const maximumCharacters = 20_000

/** The limit that the rules exceed, if any. */
const tooMuch = (rules: ReadonlyArray<Pick<Rule, "permission" | "resource">>): string | undefined =>
  rules.length > maximumRules
    ? `expected at most ${maximumRules} rules`
    : rules.reduce((sum, rule) => sum + rule.permission.length + rule.resource.length, 0) > maximumCharacters
      ? `expected at most ${maximumCharacters} characters in all patterns together`
      : undefined

const Listed = Schema.Array(
  Schema.Struct({
    permission: someText,
    resource: Schema.optionalWith(someText, { default: () => "*" }),
    verdict: WrittenVerdict
  }).pipe(shaped("a map with permission, resource and verdict"))
).pipe(shaped("a list of rules"), Schema.filter(tooMuch))

const ByResource = Schema.Record({ key: Schema.String, value: WrittenVerdict })
const Mapped = Schema.Record({
  key: Schema.String,
  value: selected<Verdict | typeof ByResource.Type>((value) =>
    typeof value === "object" && value !== null
      ? ParseResult.decodeUnknown(ByResource)
      : ParseResult.decodeUnknown(WrittenVerdict)
  )
})

/** Whether `outer` matches everything that `inner` matches. Returns false if undecidable. */
export const covers = (outer: string, inner: string): boolean => patternCovers(compile(outer), compile(inner))

const ruleCovers = (outer: Rule, inner: Rule) =>
  covers(outer.permission, inner.permission) && covers(outer.resource, inner.resource)

const strictness: Readonly<Record<Verdict, number>> = { allow: 0, ask: 1, deny: 2 }

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Orders rules by their patterns, independent of input order. */
const orderRules = (rules: ReadonlyArray<Rule>): ReadonlyArray<Rule> => {
  const waiting = rules.toSorted(
    (a, b) =>
      strictness[a.verdict] - strictness[b.verdict] ||
      compare(a.permission, b.permission) ||
      compare(a.resource, b.resource)
  )
  const above = new Map(
    waiting.map((rule) => [
      rule,
      new Set(waiting.filter((other) => other !== rule && ruleCovers(other, rule) && !ruleCovers(rule, other)))
    ])
  )
  const ordered: Array<Rule> = []
  while (waiting.length > 0) {
    const next = Math.max(
      waiting.findIndex((rule) => above.get(rule)?.size === 0),
      0
    )
    const [rule] = waiting.splice(next, 1)
    if (rule === undefined) break
    ordered.push(rule)
    for (const others of above.values()) others.delete(rule)
  }
  return ordered
}

const flat = (map: typeof Mapped.Type): ReadonlyArray<Rule> =>
  Object.entries(map).flatMap(([permission, value]): ReadonlyArray<Rule> =>
    typeof value === "string"
      ? [{ permission, resource: "*", verdict: value }]
      : Object.entries(value).map(([resource, verdict]) => ({ permission, resource, verdict }))
  )

const Ordered = Schema.transformOrFail(Mapped, made<ReadonlyArray<Rule>>(), {
  strict: true,
  decode: (map, _, ast) => {
    const rules = flat(map)
    const wrong =
      Object.hasOwn(map, "") || rules.some(({ resource }) => resource === "")
        ? "expected patterns that are not empty"
        : tooMuch(rules)
    return wrong === undefined
      ? ParseResult.succeed(orderRules(rules))
      : ParseResult.fail(new ParseResult.Type(ast, map, wrong))
  },
  encode: (_, __, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, _, "rules are not written back"))
})

export const WrittenRules = selected<ReadonlyArray<Rule>>((value) =>
  Array.isArray(value) ? ParseResult.decodeUnknown(Listed) : ParseResult.decodeUnknown(Ordered)
)

// Parses model names in files.

const withVariants: ReadonlySet<string> = new Set(["anthropic", "openai"])

const pattern = /^([A-Za-z0-9][A-Za-z0-9._-]*)\/([^\s\p{Cc}]{1,300})$/u

/** Parses `provider/id[:variant]`; undefined if the text is not a model name. */
export const parseModelName = (text: string): ModelRef | undefined => {
  const [, providerID, rest] = pattern.exec(text) ?? []
  if (providerID === undefined || rest === undefined) return undefined
  const colon = withVariants.has(providerID) && !rest.startsWith("ft:") ? rest.lastIndexOf(":") : -1
  if (colon < 0) return { providerID, id: rest }
  const [id, variant] = [rest.slice(0, colon), rest.slice(colon + 1)]
  return id === "" || variant === "" ? undefined : { providerID, id, variant }
}

const Named = Schema.Struct({
  providerID: someText,
  id: someText,
  variant: optional(someText)
})

const Text = Schema.String.pipe(
  Schema.filter((text) => parseModelName(text) !== undefined),
  expects("a model as provider/id, for example anthropic/claude-opus-5-5:high")
)

/** A model as a text, or as a map with `providerID`, `id` and `variant`. */
export const WrittenModel = selected<ModelRef>((value) =>
  typeof value === "object" && value !== null
    ? ParseResult.decodeUnknown(Named)
    : (input, options) =>
        ParseResult.flatMap(ParseResult.decodeUnknown(Text)(input, options), (text) =>
          ParseResult.succeed(parseModelName(text) ?? { providerID: "", id: text })
        )
)

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
export const parseAgentFile = ({ body, data }: Frontmatter, stem: string) =>
  Either.flatMap(decodeParsed(FileAgent, data), ({ name: given, ...definition }) =>
    Either.mapBoth(given === undefined ? decodeParsed(name, { ...data, value: stem }) : Either.right(given), {
      onLeft: (issues) =>
        issues.map(({ details }) => ({ path: "name", details: `${details}; rename the file, or give a name in it` })),
      onRight: (found) => ({ name: found, definition: body === "" ? definition : { ...definition, prompt: body } })
    })
  )

const settingsOf = (written: typeof Settings.Type): RequestSettings => {
  const { max_output_tokens: maxOutputTokens, top_k: topK, top_p: topP, ...rest } = written
  return { ...rest, ...present({ maxOutputTokens, topK, topP }) }
}

/** Extends `base`: fields of the definition replace the base's, its rules follow the base's. */
export const extend = (base: Agent, agentName: string, definition: AgentDefinition): Agent => ({
  ...base,
  name: agentName,
  permissions: [...base.permissions, ...(definition.permissions ?? [])],
  ...Struct.pick(definition, "bash", "description", "mode", "model", "prompt"),
  ...present({
    turnLimit: definition.turn_limit,
    settings: definition.settings && settingsOf(definition.settings),
    enterReminder: definition.enter_reminder,
    leaveReminder: definition.leave_reminder
  })
})

/** A user's agent: a change to the built-in agent of that name, or a new one with the rules of `build`. */
export const userAgent = ({ definition, name: agentName }: NamedDefinition): Agent =>
  extend(
    builtins.find(({ name: known }) => known === agentName) ?? { name: agentName, permissions: build.permissions },
    agentName,
    definition
  )

/**
 * A project's agent: never more permissive than `from`, the user's agent for such work. Its rules follow that agent's
 * rules, without the allowing ones. The denials are repeated at the end, so that an `ask` weakens none of them.
 */
export const projectAgent = (from: Agent, { definition, name: agentName }: NamedDefinition, maximumTurns: number) => {
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
