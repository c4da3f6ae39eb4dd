/**
 * Decides whether a call may act: the agent's rules first, then saved approvals, then a question. Orders a session's
 * questions; `PermissionAsker` asks them and `PermissionStore` keeps the answers. Location-scoped. Spec: PM-1..PM-6,
 * PM-20, PM-21, PM-40..PM-47, PP-1..PP-6, TO-4, TO-5.
 */
import { Context, Effect, Layer, Option } from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import { CurrentLocation } from "@daybook/log/domain/CurrentLocation"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import { draft, type EventOfType } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { Agent } from "../domain/Agent.ts"
import { applies, type Approval, decidingRule, literal, type Rule, type Verdict } from "../domain/Rule.ts"
import { ToolDeclined, ToolFailure } from "../domain/ToolError.ts"
import { makeKeyedLock } from "../support/KeyedLock.ts"
import { notCounting, projectAt } from "../trust/Project.ts"
import { ProjectTrust } from "../trust/ProjectTrust.ts"
import { Answer, PermissionAsker } from "./PermissionAsker.ts"
import { ownUid, PermissionStore, type PermissionStoreError, type SavedApproval } from "./PermissionStore.ts"
import type { PermissionSubject } from "./PermissionSubject.ts"
import { describeGuards, guardsOf, namesGuards } from "./ProtectedPaths.ts"
import * as SessionApprovals from "./SessionApprovals.ts"

/** A call's request for permission. */
export interface Authorization {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly callID: string
  readonly agent: Agent
  /** The action's name: `read`, `edit`, `bash`, `external_directory` and so on. */
  readonly permission: string
  /** What it acts on; each resource must be allowed. */
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

/** An approval for the session, or a saved one with its number. */
type Given = Approval & Partial<Pick<SavedApproval, "number">>

/** The state of a call's resources. */
interface Standing {
  /** Resources that neither a rule nor an approval allows. */
  readonly open: ReadonlyArray<string>
  /** The approvals that allow the other resources. */
  readonly used: ReadonlyArray<Given>
  /** An approval for another definition would allow an open resource. */
  readonly changed: boolean
  /** The approvals that are valid for the call. */
  readonly approvals: ReadonlyArray<Given>
}

export class Permission extends Context.Tag("@daybook/core/Permission")<
  Permission,
  {
    /**
     * Succeeds if every resource is allowed. Fails with `ToolFailure` `permission.denied` if a rule denies it, a person
     * refuses it with a correction, or nobody can answer; the model reads the reason and the run continues. Fails with
     * `ToolDeclined` if a person stops the run.
     */
    readonly authorize: (request: Authorization) => Effect.Effect<void, ToolFailure | ToolDeclined>
  }
>() {}

/** Permissions that a rule allows only in a trusted project. */
const changing: ReadonlySet<string> = new Set(["bash", "edit"])

const denied = (message: string) => new ToolFailure({ type: "permission.denied", message })

const quoted = (resource: string) => JSON.stringify(resource.length <= 500 ? resource : `${resource.slice(0, 500)}...`)

const named = (request: Pick<Authorization, "permission" | "resources">) =>
  `"${request.permission}" on ${request.resources.slice(0, 5).map(quoted).join(", ")}` +
  (request.resources.length > 5 ? ` and ${request.resources.length - 5} more` : "")

/** The guards of a call's resource, under its canonical name and the call's spelling. */
const guardsIn = ({ permission, spelled }: Authorization, resource: string) => {
  const other = spelled?.get(resource)
  return [...guardsOf(permission, resource), ...(other === undefined ? [] : guardsOf(permission, other))]
}

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

const changedSince =
  "The tool or its server changed after a person answered for it: this definition is not the one that was approved."

const approvalOf = ({ definition, permission }: Authorization, resource: string): Approval => ({
  permission,
  resource,
  ...(definition === undefined ? {} : { definition })
})

/** Truncates texts to what an event holds. */
const shortened = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.slice(0, 20).map((text) => (text.length <= 500 ? text : `${text.slice(0, 500)}...`))

/** The decision fields of an event. */
type Decision = Pick<EventOfType<"session.next.permission.decided">["data"], "decision" | "patterns" | "saved">

/** Logs a failure to read or write approvals; it never fails the call (PM-5). */
const withoutFault = <A>(effect: Effect.Effect<A, PermissionStoreError>, instead: NoInfer<A>): Effect.Effect<A> =>
  Effect.catchAll(effect, (error) => Effect.as(Effect.logWarning(error.message, error.cause), instead))

const make = Effect.gen(function* () {
  const location = yield* CurrentLocation
  const asker = yield* PermissionAsker
  const store = yield* PermissionStore
  // A host that builds only this layer lacks these services: approvals then live as long as the layer, and decisions
  // are not recorded.
  const approvals = Option.getOrElse(
    yield* Effect.serviceOption(SessionApprovals.SessionApprovals),
    SessionApprovals.make
  )
  const sessions = yield* Effect.serviceOption(SessionStore)
  const log = yield* Effect.serviceOption(EventLog)
  const locked = makeKeyedLock<SessionID>()
  const trust = yield* ProjectTrust
  /** Why approvals and rules that allow do not count here; undefined if they do. */
  const untrusted = Effect.map(projectAt(trust, location.directory), notCounting)
  const counts = Effect.map(untrusted, (why) => why === undefined)

  /** Judges each resource; fails if a rule denies one. */
  const judge = Effect.fnUntraced(function* (request: Authorization) {
    const left: Array<string> = []
    for (const resource of request.resources) {
      const verdict = verdictOn(request, resource, [])
      if (verdict === "deny") {
        const what = named({ permission: request.permission, resources: [resource] })
        return yield* denied(`the rules of agent "${request.agent.name}" do not allow ${what}. Find another way.`)
      }
      const allowed = verdict === "allow" && (!changing.has(request.permission) || (yield* counts))
      if (!allowed) left.push(resource)
    }
    const none = { used: [], changed: false, approvals: [] }
    if (left.length === 0) return { open: [], ...none } satisfies Standing
    if (!(yield* counts)) return { open: left, ...none } satisfies Standing
    if (request.confined === true) return { open: [], ...none } satisfies Standing
    // If saved approvals cannot be read, a person is asked more often, which is safe.
    const saved = yield* withoutFault(store.list(location.directory, request.permission), [])
    const given: ReadonlyArray<Given> = [...approvals.list(request.sessionID), ...saved]
    const valid = given.filter(({ definition }) => definition === request.definition)
    const open: Array<string> = []
    const used = new Set<Given>()
    for (const resource of left) {
      const allowed = allowing(request, resource, valid)
      if (allowed.length === 0) open.push(resource)
      for (const each of allowed) used.add(each)
    }
    const changed = open.some((resource) => verdictOn(request, resource, given) === "allow")
    return { open, used: [...used], changed, approvals: valid } satisfies Standing
  })

  /**
   * Counts the uses of approvals and records the decision as an event. A call whose decision cannot be recorded fails.
   */
  const record = Effect.fnUntraced(function* (request: Authorization, { used }: Standing, decision: Decision) {
    const numbers = used.flatMap(({ number }) => number ?? [])
    if (numbers.length > 0) yield* withoutFault(store.used(numbers), undefined)
    if (Option.isNone(log)) return
    const { callID, definition, messageID, permission, resources, sessionID } = request
    const uid = ownUid()
    const event = draft("session.next.permission.decided", {
      assistantMessageID: messageID,
      callID,
      permission,
      resources: shortened(resources),
      ...decision,
      ...(definition === undefined ? {} : { definition }),
      ...(numbers.length === 0 ? {} : { used: numbers }),
      ...(uid === undefined ? {} : { uid })
    })
    yield* Effect.catchAll(log.value.append(sessionID, [event]), (error) =>
      Effect.zipRight(
        Effect.logWarning(`a decision about ${permission} could not be recorded: ${error.message}`),
        denied(`the decision on ${named(request)} could not be recorded, so nothing was done; try again later`)
      )
    )
  })

  /** Allows the call without a question. Only decisions by approvals are recorded. */
  const allowed = (request: Authorization, standing: Standing) =>
    standing.used.length === 0 ? Effect.void : record(request, standing, { decision: "approved" })

  /** The session's title for the question; omitted if it cannot be read. */
  const titleOf = (sessionID: SessionID) =>
    Option.match(sessions, {
      onNone: () => Effect.succeed({}),
      onSome: (store) =>
        store.get(sessionID).pipe(
          Effect.map(({ title }) => (title === undefined ? {} : { sessionTitle: title })),
          Effect.orElseSucceed(() => ({}))
        )
    })

  const save = (request: Authorization, patterns: ReadonlyArray<string>) =>
    store
      .save(
        location.directory,
        patterns.map((resource) => approvalOf(request, resource)),
        { sessionID: request.sessionID, callID: request.callID, agent: request.agent.name }
      )
      .pipe(
        Effect.map((saved) => ({ saved: saved.map(({ number }) => number) })),
        (saving) => withoutFault<Partial<Decision>>(saving, {}),
        Effect.map((saved): Decision => ({ decision: "always", patterns: shortened(patterns), ...saved }))
      )

  /** Saves what the answer allows, if it may be saved. `Unavailable` is not a decision. */
  const keep = (request: Authorization, always: ReadonlyArray<string>, untrusted: string | undefined) => {
    const decided = (decision: Decision) => Effect.succeed<Decision | undefined>(decision)
    const once = decided({ decision: "once" })
    return Answer.$match({
      Once: () => once,
      Session: () => {
        if (always.length === 0) return once
        approvals.add(
          request.sessionID,
          always.map((resource) => approvalOf(request, resource))
        )
        return decided({ decision: "session", patterns: shortened(always) })
      },
      Always: () => (always.length === 0 ? once : save(request, always)),
      AlwaysFor: ({ resources }) => (untrusted === undefined ? save(request, resources) : once),
      Decline: () => decided({ decision: "declined" }),
      Correct: () => decided({ decision: "corrected" }),
      Unavailable: () => Effect.succeed(undefined)
    })
  }

  /** Fails if the answer does not allow the call. */
  const refuse = (
    request: Authorization,
    resources: NonEmptyReadonlyArray<string>,
    always: ReadonlyArray<string>,
    untrusted: string | undefined
  ) =>
    Answer.$match({
      Once: () => Effect.void,
      Session: () => Effect.void,
      Always: () => Effect.void,
      AlwaysFor: () => Effect.void,
      Decline: () => new ToolDeclined({ tool: request.permission }),
      Correct: ({ message }) =>
        denied(`the person refused ${named({ permission: request.permission, resources })} and says: ${message}`),
      Unavailable: () =>
        untrusted === undefined
          ? denied(
              `${named({ permission: request.permission, resources })} needs a person's approval, and nobody is here to ` +
                `give it. To allow it, run the session where questions can be answered, or give agent ` +
                `"${request.agent.name}" a rule with permission "${request.permission}", resource ` +
                `${quoted(always[0] ?? literal(resources[0]))} and verdict "allow".`
            )
          : denied(
              `${named({ permission: request.permission, resources })} needs a person's approval, and nobody is here to ` +
                `give it: ${untrusted}, so rules and approvals that allow it do not count.`
            )
    })

  return Permission.of({
    authorize: Effect.fn("Permission.authorize")(function* (request) {
      const standing = yield* judge(request)
      if (standing.open.length === 0) return yield* allowed(request, standing)
      // An "always" to the previous question may have settled this one, so it is judged again under the lock.
      yield* locked(request.sessionID)(
        Effect.gen(function* () {
          const now = yield* judge(request)
          const resources = now.open
          if (!isNonEmptyReadonlyArray(resources)) return yield* allowed(request, now)
          const why = yield* untrusted
          // In an untrusted project a saved approval would not count.
          const always = why !== undefined ? [] : (request.always ?? resources.map(literal))
          const {
            agent,
            callID,
            permission,
            sessionID,
            subject = Effect.succeed({ type: "call" } as const),
            tool = permission
          } = request
          const protection = describeGuards(resources.flatMap((resource) => guardsIn(request, resource)))
          const reasons = why === undefined ? (request.because?.(agent.permissions, now.approvals) ?? []) : []
          const notes = [protection, now.changed ? changedSince : "", ...reasons].filter((note) => note !== "")
          const title = [request.title, ...notes].join("\n")
          const asked = {
            sessionID,
            ...(yield* titleOf(sessionID)),
            callID,
            tool,
            agent: agent.name,
            location,
            permission,
            resources,
            title,
            subject: yield* subject,
            notes,
            always
          }
          const answer = yield* asker.ask(asked)
          const decision = yield* keep(request, always, why)(answer)
          if (decision !== undefined) yield* record(request, now, decision)
          yield* refuse(request, resources, always, why)(answer)
        })
      )
    })
  })
})

export const layer: Layer.Layer<Permission, never, CurrentLocation | PermissionAsker | PermissionStore> = Layer.effect(
  Permission,
  make
)
