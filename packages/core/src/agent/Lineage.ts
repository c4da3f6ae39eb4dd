/** Resolves a session's effective agent: its own, restricted by the agents of its ancestors. Spec: TO-103, TO-105. */
import { Context, Effect, Layer } from "effect"
import type { Session } from "@daybook/log/domain/Message"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import type { Agent, AgentNotFound } from "../domain/Agent.ts"
import { deniesAll, matches, type Rule } from "../domain/Rule.ts"
import { Agents } from "./Agents.ts"
import { covers } from "./AgentDefinition.ts"
import { spanned } from "@daybook/log/support/Spans"

// What an agent may do in a child session: its own rules, minus what an ancestor denies. The last matching rule
// decides, so denials follow the agent's rules; where an ancestor excepts something from a denial, the agent's rules
// for the exception follow the denial again. Where two patterns cannot be intersected, the stricter reading applies.

/** Beyond this number of rules, exceptions are dropped, which only makes the result stricter. */
const maximumRules = 5_000

const denyTask: Rule = { permission: "task", resource: "*", verdict: "deny" }

const wildcard = /\\([*?\\])|([*?])/g

const isLiteral = (pattern: string): boolean => ![...pattern.matchAll(wildcard)].some(([, , found]) => found)

const plain = (pattern: string): string => pattern.replaceAll(/\\([*?\\])/g, "$1")

/** The literal prefix of every matching text. */
const prefixOf = (pattern: string): string => {
  const first = [...pattern.matchAll(wildcard)].find(([, , found]) => found !== undefined)
  return plain(first === undefined ? pattern : pattern.slice(0, first.index))
}

const disjoint = (a: string, b: string): boolean => {
  if (isLiteral(a)) return !matches(b, plain(a))
  if (isLiteral(b)) return !matches(a, plain(b))
  const [left, right] = [prefixOf(a), prefixOf(b)]
  return !left.startsWith(right) && !right.startsWith(left)
}

/** The intersection of two patterns: `none` if empty, `unknown` if no pattern expresses it. */
const meet = (a: string, b: string): { readonly pattern: string } | "none" | "unknown" =>
  covers(a, b) ? { pattern: b } : covers(b, a) ? { pattern: a } : disjoint(a, b) ? "none" : "unknown"

/** The agent's own rules, restricted to the texts that `exception` matches. */
const within = (exception: Rule, own: ReadonlyArray<Rule>): ReadonlyArray<Rule> => [
  // Texts without a matching rule of the agent are asked about.
  { ...exception, verdict: "ask" },
  ...own.flatMap(({ permission, resource, verdict }): ReadonlyArray<Rule> => {
    const shared = [meet(exception.permission, permission), meet(exception.resource, resource)] as const
    const [left, right] = shared
    if (left === "none" || right === "none") return []
    if (left !== "unknown" && right !== "unknown") {
      return [{ permission: left.pattern, resource: right.pattern, verdict }]
    }
    if (verdict === "allow") return []
    return [
      {
        permission: left === "unknown" ? exception.permission : left.pattern,
        resource: right === "unknown" ? exception.resource : right.pattern,
        verdict: "deny"
      }
    ]
  })
]

const isDenial = ({ verdict }: Rule) => verdict === "deny"

/** `own`, without what `above` denies. */
const held = (own: ReadonlyArray<Rule>, above: ReadonlyArray<Rule>): ReadonlyArray<Rule> => {
  const first = above.findIndex(isDenial)
  if (first < 0) return own
  const after = above.slice(first)
  if (own.length * after.length > maximumRules) return [...own, ...after.filter(isDenial)]
  return [...own, ...after.flatMap((rule) => (isDenial(rule) ? [rule] : within(rule, own)))]
}

/** Permissions that a list denies entirely, repeated at the end: their tools are not even offered (TO-15). */
const refused = (rules: ReadonlyArray<Rule>): ReadonlyArray<Rule> =>
  rules.filter(
    (rule) =>
      isDenial(rule) && rule.resource === "*" && isLiteral(rule.permission) && deniesAll(rules, plain(rule.permission))
  )

/**
 * The agent as it works below `ancestors`, nearest first. Whatever one of them denies is neither allowed nor asked
 * about. With at least `taskDepth` ancestors, it cannot start sessions.
 */
export const effectiveAgent = (
  agent: Agent,
  ancestors: ReadonlyArray<Pick<Agent, "permissions">>,
  taskDepth: number = Number.POSITIVE_INFINITY
): Agent => {
  const key = (rules: ReadonlyArray<Rule>) => JSON.stringify(rules)
  const lists = new Map(ancestors.map(({ permissions }) => [key(permissions), permissions]))
  // An ancestor with the same rules adds no restriction.
  lists.delete(key(agent.permissions))
  const tooDeep = ancestors.length >= taskDepth ? [denyTask] : []
  if (lists.size === 0 && tooDeep.length === 0) return agent
  const rules = [...lists.values()].reduce(held, agent.permissions)
  const again = lists.size === 0 ? [] : [agent.permissions, ...lists.values()].flatMap(refused)
  return { ...agent, permissions: [...rules, ...again, ...tooDeep] }
}

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
    agentOf: spanned(
      "Lineage.agentOf",
      Effect.fnUntraced(function* (session) {
        const own = yield* agents.get(session.agent, session.location)
        const above = session.parentID === undefined ? [] : yield* store.ancestors(session.id)
        // A missing ancestor agent would deny nothing, so the child fails until it exists again.
        const ancestors = yield* Effect.forEach(above, ({ agent, location }) => agents.get(agent, location))
        return effectiveAgent(own, ancestors, taskDepth)
      })
    )
  })
})

export const layer = (options: LineageOptions) => Layer.effect(Lineage, make(options))
