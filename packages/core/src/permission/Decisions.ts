/**
 * Carries out a decision about a call: keeps what the answer approves, records the decision in the session's log, and
 * refuses the call if the answer does. Spec: PM-4, PM-5, PM-20, PM-21, PM-40..PM-47.
 */
import { Duration, Effect, Option } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { Location } from "@daybook/log/domain/Values"
import { draft, type EventOfType } from "@daybook/log/events/SessionEvents"
import type { EventLog } from "@daybook/log/log/EventLog"
import { type Approval, literal } from "../domain/Rule.ts"
import { ToolDeclined } from "../domain/ToolError.ts"
import { type Authorization, denied, named, quoted } from "./Authorization.ts"
import { type Standing, withoutFault } from "./Judgement.ts"
import { Answer } from "./PermissionAsker.ts"
import { ownUid, type PermissionStore } from "./PermissionStore.ts"
import type { SessionApprovals } from "./SessionApprovals.ts"

/** Where decisions are kept. */
export interface Records {
  readonly location: Location
  readonly store: PermissionStore["Type"]
  readonly given: SessionApprovals["Type"]
  readonly log: Option.Option<EventLog["Type"]>
}

/** A question about a call. */
export interface Asked {
  readonly request: Authorization
  /** The resources that it asks about. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** The resource patterns that an approval saves; empty if nothing can be saved. */
  readonly always: ReadonlyArray<string>
  /** Why approvals do not count in this project; undefined if they do. */
  readonly untrusted: string | undefined
}

/** The approval of a pattern for calls like this one. */
export const approvalOf = ({ definition, permission }: Authorization, resource: string): Approval => ({
  permission,
  resource,
  ...(definition === undefined ? {} : { definition })
})

/** Truncates texts to what an event holds. */
const shortened = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.slice(0, 20).map((text) => (text.length <= 500 ? text : `${text.slice(0, 500)}...`))

/** The decision fields of an event. */
type Decision = Pick<EventOfType<"session.next.permission.decided">["data"], "decision" | "patterns" | "saved">

/**
 * Counts the uses of approvals and records the decision as an event. A call whose decision cannot be recorded fails.
 */
export const record = Effect.fnUntraced(function* (
  { log, store }: Records,
  request: Authorization,
  { used }: Standing,
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

/** Allows the call without a question. Only decisions by approvals are recorded. */
export const allow = (records: Records, request: Authorization, standing: Standing) =>
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
export const keep = (records: Records, { always, request, untrusted }: Asked) => {
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
const unanswered = ({ always, request, resources, untrusted }: Asked): string => {
  const { agent, permission } = request
  const needs = `${named({ permission, resources })} needs a person's approval, and nobody is here to give it`
  return untrusted === undefined
    ? `${needs}. To allow it, run the session where questions can be answered, or give agent "${agent.name}" a rule ` +
        `with permission "${permission}", resource ${quoted(always[0] ?? literal(resources[0]))} and verdict "allow".`
    : `${needs}: ${untrusted}, so rules and approvals that allow it do not count.`
}

/** Why a call is refused whose question got no answer in time. */
const expired = ({ request: { permission }, resources }: Asked, waited: number): string =>
  `${named({ permission, resources })} needs a person's approval. It was asked for, and nobody answered within ` +
  `${Duration.format(Duration.millis(waited))}, so nothing was done. The same call asks again.`

/** Fails if the answer does not allow the call. */
export const refuse = (asked: Asked) => {
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
