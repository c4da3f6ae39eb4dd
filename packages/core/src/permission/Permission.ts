/**
 * Decides whether a call may do what it is about to do: the agent's rules, then what the project's people saved, then
 * a question. Owns the order of questions of a session; leaves asking and remembering to `PermissionAsker` and
 * `PermissionStore`. Location-scoped. Spec: PM-1..PM-6, PM-20, PM-21, PM-40..PM-47, PP-1..PP-6, TO-4, TO-5.
 */
import { Context, Effect, Layer, Option } from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import type { Agent } from "../agent/Agents.ts"
import { draft, type EventOfType } from "../events/SessionEvents.ts"
import type { MessageID, SessionID } from "../Identifiers.ts"
import { EventLog } from "../log/EventLog.ts"
import { CurrentLocation } from "../session/CurrentLocation.ts"
import { SessionStore } from "../session/SessionStore.ts"
import { notCounting, projectAt } from "../trust/Project.ts"
import { ProjectTrust } from "../trust/ProjectTrust.ts"
import { makeKeyedLock } from "../tool/KeyedLock.ts"
import { ToolDeclined, ToolFailure } from "../tool/ToolDefinition.ts"
import { Answer, PermissionAsker } from "./PermissionAsker.ts"
import { ownUid, PermissionStore, type PermissionStoreError, type SavedApproval } from "./PermissionStore.ts"
import type { PermissionSubject } from "./PermissionSubject.ts"
import { describeGuards, guardsOf, namesGuards } from "./ProtectedPaths.ts"
import { applies, decidingRule, literal, type Approval, type Rule, type Verdict } from "./Rule.ts"
import * as SessionApprovals from "./SessionApprovals.ts"

/** What a call wants to do. */
export interface Authorization {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly callID: string
  readonly agent: Agent
  /** The action's name: `read`, `edit`, `bash`, `external_directory` and so on. */
  readonly permission: string
  /** What it acts on; every one of them has to be allowed. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** The call runs in a sandbox, and the host allows what runs there: it is not asked about. */
  readonly confined?: boolean
  /** How the call spelled a resource that it reached through links; a protected name on that way counts too. */
  readonly spelled?: ReadonlyMap<string, string>
  /** One line for the person who is asked. */
  readonly title: string
  /** The tool's name; that of the permission by default. */
  readonly tool?: string
  /** All of what would be done; made only when a person is asked. */
  readonly subject?: Effect.Effect<PermissionSubject>
  /** Resource patterns that the answer "always" saves for the project; exactly the resources by default. */
  readonly always?: ReadonlyArray<string>
  /** The verdict of rules and saved approvals on the call, where it is not that of matching each resource. */
  readonly verdict?: (rules: ReadonlyArray<Rule>, approvals: ReadonlyArray<Approval>) => Verdict
  /** Why the call is asked about, where the call alone does not show it. */
  readonly because?: (rules: ReadonlyArray<Rule>, approvals: ReadonlyArray<Approval>) => ReadonlyArray<string>
  /** The fingerprint of what would run: an approval that was saved under another one does not count (PM-40). */
  readonly definition?: string
}

/** An approval for the session, or a saved one, which has a number. */
type Given = Approval & Partial<Pick<SavedApproval, "number">>

/** How the resources of a call stand. */
interface Standing {
  /** Neither a rule nor an approval allows them. */
  readonly open: ReadonlyArray<string>
  /** The approvals that allowed the others. */
  readonly used: ReadonlyArray<Given>
  /** An approval would allow an open one, but for another definition. */
  readonly changed: boolean
  /** The approvals that count for the call. */
  readonly approvals: ReadonlyArray<Given>
}

export class Permission extends Context.Tag("@daybook/core/Permission")<
  Permission,
  {
    /**
     * Succeeds when every resource is allowed. `ToolFailure` `permission.denied`: a rule, a person with a correction,
     * or nobody to ask; the model reads why and goes on. `ToolDeclined`: a person stopped the run.
     */
    readonly authorize: (request: Authorization) => Effect.Effect<void, ToolFailure | ToolDeclined>
  }
>() {}

/** What a rule of the person allows only where the project is trusted. */
const changing: ReadonlySet<string> = new Set(["bash", "edit"])

const denied = (message: string) => new ToolFailure({ type: "permission.denied", message })

const quoted = (resource: string) => JSON.stringify(resource.length <= 500 ? resource : `${resource.slice(0, 500)}...`)

const named = (request: Pick<Authorization, "permission" | "resources">) =>
  `"${request.permission}" on ${request.resources.slice(0, 5).map(quoted).join(", ")}` +
  (request.resources.length > 5 ? ` and ${request.resources.length - 5} more` : "")

/** What protects a resource of a call, under its own name and the one that the call used. */
const guardsIn = ({ permission, spelled }: Authorization, resource: string) => {
  const other = spelled?.get(resource)
  return [...guardsOf(permission, resource), ...(other === undefined ? [] : guardsOf(permission, other))]
}

/** What the rules say, and the saved approvals where the rules ask. */
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

/** The approvals that a resource is allowed by: the first that does alone, or those that do together. */
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

/** As much of texts as an event holds. */
const shortened = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.slice(0, 20).map((text) => (text.length <= 500 ? text : `${text.slice(0, 500)}...`))

/** What an event says of a decision, beside the call that it is about. */
type Decision = Pick<EventOfType<"session.next.permission.decided">["data"], "decision" | "patterns" | "saved">

/** Approvals that cannot be read or written never cost the call (PM-5). */
const withoutFault = <A>(effect: Effect.Effect<A, PermissionStoreError>, instead: NoInfer<A>): Effect.Effect<A> =>
  Effect.catchAll(effect, (error) => Effect.as(Effect.logWarning(error.message, error.cause), instead))

const make = Effect.gen(function* () {
  const location = yield* CurrentLocation
  const asker = yield* PermissionAsker
  const store = yield* PermissionStore
  // A host that builds this layer by itself has none of these: its approvals then live as long as the layer, and no event says what was decided.
  const approvals = Option.getOrElse(
    yield* Effect.serviceOption(SessionApprovals.SessionApprovals),
    SessionApprovals.make
  )
  const sessions = yield* Effect.serviceOption(SessionStore)
  const log = yield* Effect.serviceOption(EventLog)
  const locked = makeKeyedLock<SessionID>()
  const trust = yield* ProjectTrust
  /** Why what people allowed here does not count. */
  const untrusted = Effect.map(projectAt(trust, location.directory), notCounting)
  const counts = Effect.map(untrusted, (why) => why === undefined)

  /** Fails when a rule denies a resource. */
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
    // Without the saved approvals a person is asked once more than needed: that is safe, so the call goes on.
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

  /** Counts the approvals that were used, and makes the decision an event. A call that cannot be recorded is not made. */
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

  /** Nothing is asked: rules decided alone, which no event says, or approvals did. */
  const allowed = (request: Authorization, standing: Standing) =>
    standing.used.length === 0 ? Effect.void : record(request, standing, { decision: "approved" })

  /** A question says whose it is also where the title cannot be read. */
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

  /** Keeps what the answer allows, where something may be kept. Nobody's answer decides nothing. */
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

  /** Fails where the answer does not allow the call. */
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
      // An "always" to the question before may have settled this one, so it is looked at again with the lock held.
      yield* locked(request.sessionID)(
        Effect.gen(function* () {
          const now = yield* judge(request)
          const resources = now.open
          if (!isNonEmptyReadonlyArray(resources)) return yield* allowed(request, now)
          const why = yield* untrusted
          // What would be saved does not count here.
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
