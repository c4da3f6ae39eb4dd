/**
 * Judges a call: the agent's rules first, then the approvals that count in this project. Spec: PM-1..PM-3, PM-40..PM-47,
 * PP-1..PP-6.
 */
import { Effect } from "effect"
import type { Location } from "@daybook/log/domain/Values"
import { applies, type Approval, decidingRule, type Verdict } from "../domain/Rule.ts"
import type { ToolFailure } from "../domain/ToolError.ts"
import { type Authorization, denied, guardsIn, named } from "./Authorization.ts"
import type { PermissionStore, PermissionStoreError, SavedApproval } from "./PermissionStore.ts"
import { namesGuards } from "./ProtectedPaths.ts"
import type { SessionApprovals } from "./SessionApprovals.ts"

/** An approval for the session, or a saved one with its number. */
export type Given = Approval & Partial<Pick<SavedApproval, "number">>

/** The state of a call's resources. */
export interface Standing {
  /** Resources that neither a rule nor an approval allows. */
  readonly open: ReadonlyArray<string>
  /** The approvals that allow the other resources. */
  readonly used: ReadonlyArray<Given>
  /** An approval for another definition would allow an open resource. */
  readonly changed: boolean
  /** The approvals that are valid for the call. */
  readonly approvals: ReadonlyArray<Given>
}

/** Logs a failure to read or write approvals; it never fails the call (PM-5). */
export const withoutFault = <A>(
  effect: Effect.Effect<A, PermissionStoreError>,
  instead: NoInfer<A>
): Effect.Effect<A> =>
  Effect.catchAll(effect, (error) => Effect.as(Effect.logWarning(error.message, error.cause), instead))

/** Permissions that a rule allows only in a trusted project. */
const changing: ReadonlySet<string> = new Set(["bash", "edit"])

/** The rules' verdict, and that of the approvals where the rules ask. */
const verdictOn = (request: Authorization, resource: string, saved: ReadonlyArray<Approval>): Verdict => {
  const rules = request.agent.permissions
  if (request.verdict !== undefined) return request.verdict(rules, saved)
  const rule = decidingRule(rules, request.permission, resource)
  if (rule?.verdict === "deny") return "deny"
  const guards = guardsIn(request, resource)
  const given = [
    ...(rule?.verdict === "allow" ? [rule] : []),
    ...saved.filter((approval) => applies(approval, request.permission, resource))
  ]
  return given.some((each) => namesGuards(each.resource, resource, guards)) ? "allow" : "ask"
}

/** The approvals that allow a resource: the first that does so alone, or else a minimal set that does so together. */
const allowing = (request: Authorization, resource: string, approvals: ReadonlyArray<Given>): ReadonlyArray<Given> => {
  const allow = (some: ReadonlyArray<Given>) => verdictOn(request, resource, some) === "allow"
  if (!allow(approvals)) return []
  const one = approvals.find((each) => allow([each]))
  if (one !== undefined) return [one]
  return approvals.reduce((kept, each) => {
    const rest = kept.filter((other) => other !== each)
    return allow(rest) ? rest : kept
  }, approvals)
}

export interface JudgeInput {
  readonly request: Authorization
  readonly location: Location
  readonly store: PermissionStore["Type"]
  /** The approvals of the call's session. */
  readonly given: SessionApprovals["Type"]
  /** Why approvals and rules that allow do not count in this project; undefined if they do. */
  readonly untrusted: Effect.Effect<string | undefined>
}

/** The resources that no rule allows; fails if a rule denies one. */
const judgeByRules = Effect.fnUntraced(function* ({ request, untrusted }: JudgeInput) {
  const left: Array<string> = []
  for (const resource of request.resources) {
    const verdict = verdictOn(request, resource, [])
    if (verdict === "deny") {
      const what = named({ permission: request.permission, resources: [resource] })
      return yield* denied(`the rules of agent "${request.agent.name}" do not allow ${what}. Find another way.`)
    }
    const isAllowed = verdict === "allow" && (!changing.has(request.permission) || (yield* untrusted) === undefined)
    if (!isAllowed) left.push(resource)
  }
  return left
})

/** Applies approvals to the resources that no rule allows. Pure. */
export const judgeByApprovals = (
  request: Authorization,
  resources: ReadonlyArray<string>,
  given: ReadonlyArray<Given>
): Standing => {
  const valid = given.filter(({ definition }) => definition === request.definition)
  const open: Array<string> = []
  const used = new Set<Given>()
  for (const resource of resources) {
    const allowed = allowing(request, resource, valid)
    if (allowed.length === 0) open.push(resource)
    for (const each of allowed) used.add(each)
  }
  const changed = open.some((resource) => verdictOn(request, resource, given) === "allow")
  return { open, used: [...used], changed, approvals: valid }
}

/** Judges each resource; fails if a rule denies one. */
export const judge = Effect.fnUntraced(function* (input: JudgeInput): Effect.fn.Return<Standing, ToolFailure> {
  const { given, location, request, store, untrusted } = input
  const left = yield* judgeByRules(input)
  const standing: Standing = { open: left, used: [], changed: false, approvals: [] }
  if (left.length === 0 || (yield* untrusted) !== undefined) return standing
  if (request.confined === true) return { ...standing, open: [] }
  // If saved approvals cannot be read, a person is asked more often, which is safe.
  const saved = yield* withoutFault(store.list(location.directory, request.permission), [])
  return judgeByApprovals(request, left, [...given.list(request.sessionID), ...saved])
})
