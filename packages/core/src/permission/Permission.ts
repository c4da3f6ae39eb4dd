/**
 * Decides whether a call may act: the agent's rules first, then saved approvals, then a question. Orders a session's
 * questions; `Judgement.ts` judges, `PermissionAsker` asks, `Decisions.ts` carries the answers out. Location-scoped.
 * Spec: PM-1..PM-6, PM-20, PM-21, PM-40..PM-47, PP-1..PP-6, TO-4, TO-5.
 */
import { Context, Effect, Layer, Option } from "effect"
import { isNonEmptyReadonlyArray } from "effect/Array"
import { CurrentLocation } from "@daybook/log/domain/Values"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { literal } from "../domain/Rule.ts"
import type { ToolDeclined, ToolFailure } from "../domain/ToolError.ts"
import { makeKeyedLock } from "../support/KeyedLock.ts"
import { notCounting, projectAt } from "../trust/Project.ts"
import { ProjectTrust } from "../trust/ProjectTrust.ts"
import { type Authorization, guardsIn, quoted } from "./Authorization.ts"
import { allow, approvalOf, type Asked, keep, record, type Records, refuse } from "./Decisions.ts"
import { judge, judgeByApprovals, type Standing } from "./Judgement.ts"
import { type Answer, PermissionAsker } from "./PermissionAsker.ts"
import { PermissionStore } from "./PermissionStore.ts"
import { describeGuards } from "./ProtectedPaths.ts"
import * as SessionApprovals from "./SessionApprovals.ts"

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
const covers = ({ request, resources }: Asked, { approvals }: Standing, patterns: ReadonlyArray<string>): boolean =>
  judgeByApprovals(request, resources, [...approvals, ...patterns.map((pattern) => approvalOf(request, pattern))]).open
    .length === 0

const useless = (patterns: ReadonlyArray<string>): string =>
  `The pattern ${patterns.map(quoted).join(", ")} does not match this call, so nothing was saved.`

/** The question about a call, without the session's title and the complete action. */
const questionOf = ({ always, request, resources, untrusted }: Asked, standing: Standing, note = "") => {
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
  const given = Option.getOrElse(yield* Effect.serviceOption(SessionApprovals.SessionApprovals), SessionApprovals.make)
  const sessions = yield* Effect.serviceOption(SessionStore)
  const log = yield* Effect.serviceOption(EventLog)
  const locked = makeKeyedLock<SessionID>()
  const untrusted = Effect.map(projectAt(trust, location.directory), notCounting)
  const records: Records = { location, store, given, log }

  /** Asks a person, and carries out the answer. Patterns that do not match the call are asked for again (PM-560). */
  const ask = Effect.fnUntraced(function* (asked: Asked, standing: Standing) {
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
