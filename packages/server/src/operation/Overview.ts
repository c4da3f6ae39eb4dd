/** `status` and `list`: the runs behind a socket, and its sessions. Spec: SO-92..SO-94 in specs/socket.md. */
import { Effect, Option } from "effect"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Session } from "@daybook/log/domain/Message"
import { modelText } from "@daybook/log/domain/ModelText"
import { clip } from "@daybook/transcript/Fold"
import { shownDirectory } from "@daybook/transcript/row/ShownDirectory"
import { timeText } from "@daybook/transcript/row/TimeText"
import { type Asks, questionAsk } from "../ask/Asks.ts"
import { runsOf } from "../run/Runs.ts"
import type { Backend } from "../session/Backend.ts"
import type { Keeper } from "../session/Drainer.ts"
import { addressIn, checkKeeper, owns, type Subject } from "../session/Subject.ts"
import { type Refused, refusedBy } from "../support/Refused.ts"
import type * as Wire from "../wire/Wire.ts"

/** Runs in one answer, at most. */
const mostRuns = 256
/** Code units of a title or path in a list, at most, so that a page fits a frame. */
const longestText = 1024

export interface Overview {
  readonly backend: Backend
  readonly keeper: Keeper
  readonly subject: Subject
  readonly asks: Asks
}

type StatusFrame = Extract<Wire.RunFrame, { readonly type: "status" }>
type ListFrame = Extract<Wire.RunFrame, { readonly type: "list" }>

const placeOf = ({ address, id }: Session) => ({
  session: address?.session ?? id,
  scope: address?.scope ?? "private",
  ...(address?.scope === "shared" ? { shared: address.shared } : {})
})

/** The subject's active and waiting runs of this server. */
export const status = Effect.fn("Overview.status")(function* (
  { asks, backend, keeper, subject }: Overview,
  { id }: Wire.Status
): Effect.fn.Return<StatusFrame, Refused> {
  const runs: Array<Wire.RunStatus> = []
  for (const sessionID of yield* keeper.busy) {
    if (runs.length > mostRuns) break
    // It may have been removed since.
    const session = Option.getOrUndefined(yield* Effect.option(backend.sessions.get(sessionID)))
    if (session === undefined || !(yield* owns(backend, subject, session))) continue
    const found = yield* Effect.orElseSucceed(runsOf(backend, session), () => [])
    const questions = yield* Effect.orElseSucceed(backend.sessions.questions(sessionID), () => [])
    const open = [...asks.open(sessionID).map(({ ask }) => ask), ...questions.map(questionAsk)]
    for (const { clientID, run, state } of found) {
      runs.push({
        ...placeOf(session),
        run,
        ...(clientID === undefined ? {} : { client_id: clientID }),
        state,
        ...(state === "active" && open.length > 0 ? { asks: open } : {})
      })
    }
  }
  return {
    type: "status",
    ...(id === undefined ? {} : { id }),
    kind: subject.kind,
    name: subject.name,
    runs: runs.slice(0, mostRuns),
    ...(runs.length > mostRuns ? { more: true } : {})
  }
})

const stateOf = ({ activity }: Session): Wire.SessionItem["state"] =>
  activity?.state === "running" ? "active" : activity?.state === "failed" ? "error" : "idle"

/** Uses the client's name for the cursor. */
const afterRefused = new InvalidInput({ field: "after", details: 'use "next" of the previous page, unchanged' })

/** One page of the subject's sessions in a scope, the latest change first. */
export const list = Effect.fn("Overview.list")(function* (
  { backend, subject }: Overview,
  { after, id, limit, scope, shared }: Wire.List
): Effect.fn.Return<ListFrame, Refused> {
  const address = yield* addressIn(subject, { session: "default", scope, ...(shared === undefined ? {} : { shared }) })
  const page = yield* Effect.mapError(backend.sessions.list({ house: address, limit, cursor: after }), (error) =>
    refusedBy(error._tag === "InvalidInput" && error.field === "cursor" ? afterRefused : error)
  )
  const own = yield* Effect.filter(page.items, (session) => owns(backend, subject, session))
  if (own.length === 0) yield* checkKeeper(subject, shared)
  const sessions = yield* Effect.forEach(own, (session) =>
    Effect.map(Effect.mapError(backend.inbox.count(session.id), refusedBy), (waiting): Wire.SessionItem => ({
      session: session.address?.session ?? session.id,
      session_id: session.id,
      ...(session.title === undefined ? {} : { title: clip(session.title, longestText) }),
      state: stateOf(session),
      waiting,
      cwd: clip(shownDirectory(session.root, session.location.directory), longestText),
      ...(session.model === undefined ? {} : { model: modelText(session.model) }),
      created_at: timeText(session.createdAt),
      updated_at: timeText(session.updatedAt)
    }))
  )
  return {
    type: "list",
    ...(id === undefined ? {} : { id }),
    sessions,
    ...(page.cursor === undefined ? {} : { next: page.cursor })
  }
})
