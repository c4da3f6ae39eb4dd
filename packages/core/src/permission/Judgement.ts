/**
 * Judges a call: the agent's rules first, then the approvals that count in this project. Spec: PM-1..PM-3, PM-21,
 * PM-40..PM-47 in specs/tools.md, PP-1..PP-6 in specs/security.md.
 */
import { Context, Effect, Layer } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Location } from "@daybook/log/domain/Values"
import { EventLog } from "@daybook/log/log/EventLog"
import type { Agent } from "../domain/Agent.ts"
import { applies, type Approval, decidingRule, type Rule, type Verdict } from "../domain/Rule.ts"
import { ToolFailure } from "../domain/ToolError.ts"
import type { PermissionStore, PermissionStoreError, SavedApproval } from "./PermissionStore.ts"
import type { PermissionSubject } from "./PermissionSubject.ts"
import { guardsOf, namesGuards } from "./ProtectedPaths.ts"
import { putNewest } from "@daybook/log/support/Newest"

// Keeps approvals of one session in memory, while the process and the session live.

const most = { sessions: 1_000, approvals: 200 }

/** Approvals by session. */
export class SessionApprovals extends Context.Tag("@daybook/core/SessionApprovals")<
  SessionApprovals,
  {
    readonly list: (sessionID: SessionID) => ReadonlyArray<Approval>
    readonly add: (sessionID: SessionID, approvals: ReadonlyArray<Approval>) => void
    readonly forget: (sessionID: SessionID) => void
  }
>() {}

/** Creates an empty set of approvals. */
export const makeSessionApprovals = (): SessionApprovals["Type"] => {
  const sessions = new Map<SessionID, ReadonlyArray<Approval>>()
  return {
    list: (sessionID) => sessions.get(sessionID) ?? [],
    add: (sessionID, approvals) => {
      const known = sessions.get(sessionID) ?? []
      putNewest(sessions, sessionID, [...known, ...approvals].slice(-most.approvals), most.sessions)
    },
    forget: (sessionID) => void sessions.delete(sessionID)
  }
}

/** Forgets a session's approvals when its id is created again. */
export const layerSessionApprovals: Layer.Layer<SessionApprovals, never, EventLog> = Layer.scoped(
  SessionApprovals,
  Effect.gen(function* () {
    const approvals = makeSessionApprovals()
    const log = yield* EventLog
    yield* log.listen((events) => {
      for (const { sessionID, type } of events) if (type === "session.created") approvals.forget(sessionID)
      return Effect.void
    })
    return approvals
  })
)

// A call's request for permission, and how its resources are named and guarded.

export interface Authorization {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly callID: string
  readonly agent: Agent
  /** The action's name: `read`, `edit`, `bash`, `external_directory` and so on. */
  readonly permission: string
  /** The resources of the call; each must be allowed. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** The call runs in a sandbox and the host allows sandboxed calls: no question is asked. */
  readonly confined?: boolean
  /** The call's spelling of a resource that it reached through links; a protected name in the spelling counts too. */
  readonly spelled?: ReadonlyMap<string, string>
  /** One line for the question. */
  readonly title: string
  /** The tool's name; the permission's name by default. */
  readonly tool?: string
  /** The complete action; computed only when a person is asked. */
  readonly subject?: Effect.Effect<PermissionSubject>
  /** Resource patterns that the answer "always" saves for the project; by default exactly the resources. */
  readonly always?: ReadonlyArray<string>
  /** Computes the verdict on the call, instead of matching each resource. */
  readonly verdict?: (rules: ReadonlyArray<Rule>, approvals: ReadonlyArray<Approval>) => Verdict
  /** Why the call is asked about, if the call alone does not show it. */
  readonly because?: (rules: ReadonlyArray<Rule>, approvals: ReadonlyArray<Approval>) => ReadonlyArray<string>
  /** The fingerprint of what would run: an approval saved under another fingerprint does not count (PM-40). */
  readonly definition?: string
}

/** Refuses a call; the model reads the message, and the run continues. */
export const denied = (message: string) => new ToolFailure({ type: "permission.denied", message })

/** A resource as a sentence shows it. */
export const quoted = (resource: string) =>
  JSON.stringify(resource.length <= 500 ? resource : `${resource.slice(0, 500)}...`)

/** A call's action and resources as a sentence shows them. */
export const named = (request: Pick<Authorization, "permission" | "resources">) =>
  `"${request.permission}" on ${request.resources.slice(0, 5).map(quoted).join(", ")}` +
  (request.resources.length > 5 ? ` and ${request.resources.length - 5} more` : "")

/** The guards of a call's resource, under its canonical name and the call's spelling. */
export const guardsIn = ({ permission, spelled }: Authorization, resource: string) => {
  const other = spelled?.get(resource)
  return [...guardsOf(permission, resource), ...(other === undefined ? [] : guardsOf(permission, other))]
}

/** An approval for the session, or a saved one with its number. */
export type ValidApproval = Approval & Partial<Pick<SavedApproval, "number">>

export interface ResourceState {
  /** Resources that neither a rule nor an approval allows. */
  readonly open: ReadonlyArray<string>
  readonly used: ReadonlyArray<ValidApproval>
  readonly changed: boolean
  readonly approvals: ReadonlyArray<ValidApproval>
}

/** Logs a failure to read or write approvals; it never fails the call (PM-5). */
export const withoutFault = <A>(effect: Effect.Effect<A, PermissionStoreError>, instead: NoInfer<A>) =>
  Effect.catchAll(effect, (error) => Effect.as(Effect.logWarning(error.message, error.cause), instead))

/** Permissions that a rule allows only in a trusted project. */
const changing: ReadonlySet<string> = new Set(["bash", "edit"])

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
const allowing = (request: Authorization, resource: string, approvals: ReadonlyArray<ValidApproval>) => {
  const allow = (some: ReadonlyArray<ValidApproval>) => verdictOn(request, resource, some) === "allow"
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
  given: ReadonlyArray<ValidApproval>
): ResourceState => {
  const valid = given.filter(({ definition }) => definition === request.definition)
  const open: Array<string> = []
  const used = new Set<ValidApproval>()
  for (const resource of resources) {
    const allowed = allowing(request, resource, valid)
    if (allowed.length === 0) open.push(resource)
    for (const each of allowed) used.add(each)
  }
  const changed = open.some((resource) => verdictOn(request, resource, given) === "allow")
  return { open, used: [...used], changed, approvals: valid }
}

/** Judges each resource; fails if a rule denies one. */
export const judge = Effect.fnUntraced(function* (input: JudgeInput): Effect.fn.Return<ResourceState, ToolFailure> {
  const { given, location, request, store, untrusted } = input
  const left = yield* judgeByRules(input)
  const standing: ResourceState = { open: left, used: [], changed: false, approvals: [] }
  if (left.length === 0 || (yield* untrusted) !== undefined) return standing
  if (request.confined === true) return { ...standing, open: [] }
  // If saved approvals cannot be read, a person is asked more often, which is safe.
  const saved = yield* withoutFault(store.list(location.directory, request.permission), [])
  return judgeByApprovals(request, left, [...given.list(request.sessionID), ...saved])
})
