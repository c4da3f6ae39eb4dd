/**
 * What an agent may do in a session that other agents' sessions started: its own rules, without anything that an agent
 * above denies. Rules are one list whose last match decides, so the denials come after the agent's own rules, and where
 * an agent above made an exception to a denial, the agent's own rules are said again for just that exception. Where two
 * patterns cannot be intersected, the stricter reading is taken. Pure. Spec: TO-103, TO-105.
 */
import { deniesAll, matches, type Rule } from "../permission/Rule.ts"
import type { Agent } from "./Agents.ts"
import { covers } from "./PermissionRules.ts"

/** More rules than anybody writes: from here on exceptions are left out, which only makes the result stricter. */
const maximumRules = 5_000

const denyTask: Rule = { permission: "task", resource: "*", verdict: "deny" }

const wildcard = /\\([*?\\])|([*?])/g

const isLiteral = (pattern: string): boolean => ![...pattern.matchAll(wildcard)].some(([, , found]) => found)

const plain = (pattern: string): string => pattern.replaceAll(/\\([*?\\])/g, "$1")

/** What every text that matches begins with. */
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

/** The pattern of what both match: `none` where that is nothing, `unknown` where no pattern says it. */
const meet = (a: string, b: string): { readonly pattern: string } | "none" | "unknown" =>
  covers(a, b) ? { pattern: b } : covers(b, a) ? { pattern: a } : disjoint(a, b) ? "none" : "unknown"

/** What the agent's own rules say about the texts that `exception` matches, and about no others. */
const within = (exception: Rule, own: ReadonlyArray<Rule>): ReadonlyArray<Rule> => [
  // What no rule of its own matches is asked about.
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

/** Permissions that a list refuses altogether, said at the end again: their tools are not even offered (TO-15). */
const refused = (rules: ReadonlyArray<Rule>): ReadonlyArray<Rule> =>
  rules.filter(
    (rule) =>
      isDenial(rule) && rule.resource === "*" && isLiteral(rule.permission) && deniesAll(rules, plain(rule.permission))
  )

/**
 * The agent as it works below `ancestors`, the nearest first. Nothing that one of them denies is allowed or asked about.
 * With `taskDepth` of them above, it starts no sessions of its own.
 */
export const effectiveAgent = (
  agent: Agent,
  ancestors: ReadonlyArray<Pick<Agent, "permissions">>,
  taskDepth: number = Number.POSITIVE_INFINITY
): Agent => {
  const key = (rules: ReadonlyArray<Rule>) => JSON.stringify(rules)
  const lists = new Map(ancestors.map(({ permissions }) => [key(permissions), permissions]))
  // Under the same rules as its own, an agent is held already.
  lists.delete(key(agent.permissions))
  const tooDeep = ancestors.length >= taskDepth ? [denyTask] : []
  if (lists.size === 0 && tooDeep.length === 0) return agent
  const rules = [...lists.values()].reduce(held, agent.permissions)
  const again = lists.size === 0 ? [] : [agent.permissions, ...lists.values()].flatMap(refused)
  return { ...agent, permissions: [...rules, ...again, ...tooDeep] }
}
