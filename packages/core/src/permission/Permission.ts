/**
 * Decides whether a call may act: the agent's rules first, then saved approvals, then a question. Orders a session's
 * questions, and carries the answers out; `Judgement.ts` judges, `PermissionAsker` asks. Location-scoped.
 * Spec: PM-1..PM-6, PM-20, PM-21, PM-40..PM-47, PP-1..PP-6, TO-4, TO-5.
 */
import { Context, Duration, Effect, Layer, Option } from "effect"
import { isNonEmptyReadonlyArray, type NonEmptyReadonlyArray } from "effect/Array"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { CurrentLocation, type Location } from "@daybook/log/domain/Values"
import { draft, type EventOfType } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { type Approval, literal } from "../domain/Rule.ts"
import { ToolDeclined, type ToolFailure } from "../domain/ToolError.ts"
import { makeKeyedLock } from "../support/Keyed.ts"
import { notCounting, projectAt, ProjectTrust } from "../trust/ProjectTrust.ts"
import * as Judgement from "./Judgement.ts"
import {
  type Authorization,
  denied,
  guardsIn,
  judge,
  judgeByApprovals,
  named,
  quoted,
  type SessionApprovals,
  type ResourceState,
  withoutFault
} from "./Judgement.ts"
import { Answer, PermissionAsker } from "./PermissionAsker.ts"
import { ownUid, PermissionStore } from "./PermissionStore.ts"
import { describeGuards } from "./ProtectedPaths.ts"

// Carries out a decision about a call: keeps approvals, records the decision, refuses the call.

/** Where decisions are kept. */
interface Records {
  readonly location: Location
  readonly store: PermissionStore["Type"]
  readonly given: SessionApprovals["Type"]
  readonly log: Option.Option<EventLog["Type"]>
}

interface CallQuestion {
  readonly request: Authorization
  readonly resources: NonEmptyReadonlyArray<string>
  /** The resource patterns that an approval saves; empty if nothing can be saved. */
  readonly always: ReadonlyArray<string>
  /** Why approvals do not count in this project; undefined if they do. */
  readonly untrusted: string | undefined
}

/** The approval of a pattern for calls like this one. */
const approvalOf = ({ definition, permission }: Authorization, resource: string): Approval => ({
  permission,
  resource,
  ...(definition === undefined ? {} : { definition })
})

/** Truncates texts to what an event holds. */
const shortened = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.slice(0, 20).map((text) => (text.length <= 500 ? text : `${text.slice(0, 500)}...`))

type Decision = Pick<EventOfType<"session.next.permission.decided">["data"], "decision" | "patterns" | "saved">

/** Counts the uses of approvals and records the decision. A call whose decision cannot be recorded fails. */
const record = Effect.fnUntraced(function* (
  { log, store }: Records,
  request: Authorization,
  { used }: ResourceState,
  decision: Decision
) {
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

const allow = (records: Records, request: Authorization, standing: ResourceState) =>
  standing.used.length === 0 ? Effect.void : record(records, request, standing, { decision: "approved" })

const save = ({ location, store }: Records, request: Authorization, patterns: ReadonlyArray<string>) =>
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

/** Keeps what the answer approves, if it may be kept. `Unavailable` and `Expired` are not decisions. */
const keep = (records: Records, { always, request, untrusted }: CallQuestion) => {
  const decided = (decision: Decision) => Effect.succeed<Decision | undefined>(decision)
  const once = decided({ decision: "once" })
  return Answer.$match({
    Once: () => once,
    Session: () => {
      if (always.length === 0) return once
      records.given.add(
        request.sessionID,
        always.map((resource) => approvalOf(request, resource))
      )
      return decided({ decision: "session", patterns: shortened(always) })
    },
    Always: () => (always.length === 0 ? once : save(records, request, always)),
    AlwaysFor: ({ resources }) => (untrusted === undefined ? save(records, request, resources) : once),
    Decline: () => decided({ decision: "declined" }),
    Correct: () => decided({ decision: "corrected" }),
    Unavailable: () => Effect.succeed(undefined),
    Expired: () => Effect.succeed(undefined)
  })
}

/** Why a call that needs an approval is refused when nobody can answer. */
const unanswered = ({ always, request, resources, untrusted }: CallQuestion): string => {
  const { agent, permission } = request
  const needs = `${named({ permission, resources })} needs a person's approval, and nobody is here to give it`
  return untrusted === undefined
    ? `${needs}. To allow it, run the session where questions can be answered, or give agent "${agent.name}" a rule ` +
        `with permission "${permission}", resource ${quoted(always[0] ?? literal(resources[0]))} and verdict "allow".`
    : `${needs}: ${untrusted}, so rules and approvals that allow it do not count.`
}

/** Why a call is refused whose question got no answer in time. */
const expired = ({ request: { permission }, resources }: CallQuestion, waited: number): string =>
  `${named({ permission, resources })} needs a person's approval. It was asked for, and nobody answered within ` +
  `${Duration.format(Duration.millis(waited))}, so nothing was done. The same call asks again.`

/** Fails if the answer does not allow the call. */
const refuse = (asked: CallQuestion) => {
  const { request, resources } = asked
  return Answer.$match({
    Once: () => Effect.void,
    Session: () => Effect.void,
    Always: () => Effect.void,
    AlwaysFor: () => Effect.void,
    Decline: () => new ToolDeclined({ tool: request.permission }),
    Correct: ({ message }) =>
      denied(`the person refused ${named({ permission: request.permission, resources })} and says: ${message}`),
    Unavailable: () => denied(unanswered(asked)),
    Expired: ({ waited }) => denied(expired(asked, waited))
  })
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

const changedSince =
  "The tool, its server or its shell changed after a person answered for it: this definition is not the one that was approved."

/** Whether the patterns, once saved, would allow the call. */
const covers = ({ request, resources }: CallQuestion, { approvals }: ResourceState, patterns: ReadonlyArray<string>) =>
  judgeByApprovals(request, resources, [...approvals, ...patterns.map((pattern) => approvalOf(request, pattern))]).open
    .length === 0

const useless = (patterns: ReadonlyArray<string>): string =>
  `The pattern ${patterns.map(quoted).join(", ")} does not match this call, so nothing was saved.`

/** The question about a call, without the session's title and the complete action. */
const questionOf = ({ always, request, resources, untrusted }: CallQuestion, standing: ResourceState, note = "") => {
  const { agent, callID, permission, sessionID, tool = permission } = request
  const protection = describeGuards(resources.flatMap((resource) => guardsIn(request, resource)))
  const reasons = untrusted === undefined ? (request.because?.(agent.permissions, standing.approvals) ?? []) : []
  const notes = [note, protection, standing.changed ? changedSince : "", ...reasons].filter((note) => note !== "")
  const title = [request.title, ...notes].join("\n")
  return { sessionID, callID, tool, agent: agent.name, permission, resources, title, notes, always }
}

/** The session's title for the question; omitted if it cannot be read. */
const titleOf = (sessions: Option.Option<SessionStore["Type"]>, sessionID: SessionID) =>
  Option.match(sessions, {
    onNone: () => Effect.succeed({}),
    onSome: (store) =>
      store.get(sessionID).pipe(
        Effect.map(({ title }) => (title === undefined ? {} : { sessionTitle: title })),
        Effect.orElseSucceed(() => ({}))
      )
  })

const make = Effect.gen(function* () {
  const location = yield* CurrentLocation
  const asker = yield* PermissionAsker
  const store = yield* PermissionStore
  const trust = yield* ProjectTrust
  // A host that builds only this layer lacks these services: approvals then live as long as the layer, and decisions
  // are not recorded.
  const given = Option.getOrElse(
    yield* Effect.serviceOption(Judgement.SessionApprovals),
    Judgement.makeSessionApprovals
  )
  const sessions = yield* Effect.serviceOption(SessionStore)
  const log = yield* Effect.serviceOption(EventLog)
  const locked = makeKeyedLock<SessionID>()
  const untrusted = Effect.map(projectAt(trust, location.directory), notCounting)
  const records: Records = { location, store, given, log }

  /** Asks a person, and carries out the answer. Patterns that do not match the call are asked for again (PM-560). */
  const ask = Effect.fnUntraced(function* (asked: CallQuestion, standing: ResourceState) {
    const { request, untrusted } = asked
    const sessionTitle = yield* titleOf(sessions, request.sessionID)
    const subject = yield* request.subject ?? Effect.succeed({ type: "call" } as const)
    const answerTo = (note?: string): Effect.Effect<Answer> =>
      Effect.flatMap(
        asker.ask({ ...questionOf(asked, standing, note), ...sessionTitle, location, subject }),
        (answer) =>
          answer._tag === "AlwaysFor" && untrusted === undefined && !covers(asked, standing, answer.resources)
            ? answerTo(useless(answer.resources))
            : Effect.succeed(answer)
      )
    const answer = yield* answerTo()
    const decision = yield* keep(records, asked)(answer)
    if (decision !== undefined) yield* record(records, request, standing, decision)
    yield* refuse(asked)(answer)
  })

  return Permission.of({
    authorize: Effect.fn("Permission.authorize")(function* (request) {
      const judged = judge({ request, location, store, given, untrusted })
      const standing = yield* judged
      if (standing.open.length === 0) return yield* allow(records, request, standing)
      // An "always" to the previous question may have settled this one, so it is judged again under the lock.
      yield* locked(request.sessionID)(
        Effect.gen(function* () {
          const now = yield* judged
          const resources = now.open
          if (!isNonEmptyReadonlyArray(resources)) return yield* allow(records, request, now)
          const why = yield* untrusted
          // In an untrusted project a saved approval would not count.
          const always = why !== undefined ? [] : (request.always ?? resources.map(literal))
          yield* ask({ request, resources, always, untrusted: why }, now)
        })
      )
    })
  })
})

export const layer: Layer.Layer<Permission, never, CurrentLocation | PermissionAsker | PermissionStore> = Layer.effect(
  Permission,
  make
)
