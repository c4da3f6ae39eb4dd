/** `list`: the sessions of an agent or model in one scope, page by page. Spec: SO-93, SO-94 in specs/socket.md. */
import { Effect } from "effect"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"
import type { Session } from "@daybook/log/domain/Message"
import { modelText } from "@daybook/log/domain/Values"
import { clip } from "@daybook/transcript/Fold"
import { agentDirectory, timeText } from "@daybook/transcript/row/Rows"
import { addressIn, checkSpaceOwner, owns } from "../session/Subject.ts"
import { type Refused, refusedBy } from "../support/Refused.ts"
import type * as Wire from "../wire/Wire.ts"
import type { Endpoint } from "./Endpoint.ts"

/** Code units of a title or path in a list, at most, so that a page fits a frame. */
const longestText = 1024

type ListFrame = Extract<Wire.RunFrame, { readonly type: "list" }>

const stateOf = ({ activity }: Session): Wire.SessionItem["state"] =>
  activity?.state === "running" ? "active" : activity?.state === "failed" ? "error" : "idle"

/** Uses the client's name for the cursor. */
const afterRefused = new InvalidInput({ field: "after", details: 'use "next" of the previous page, unchanged' })

/** One page of the subject's sessions in a scope, the latest change first. */
export const list = Effect.fn("Served.list")(function* (
  { durable: { backend }, subject }: Endpoint,
  { after, id, limit, scope, shared }: Wire.List
): Effect.fn.Return<ListFrame, Refused> {
  const address = yield* addressIn(subject, { session: "default", scope, ...(shared === undefined ? {} : { shared }) })
  const page = yield* Effect.mapError(backend.sessions.list({ house: address, limit, cursor: after }), (error) =>
    refusedBy(error._tag === "InvalidInput" && error.field === "cursor" ? afterRefused : error)
  )
  const own = yield* Effect.filter(page.items, (session) => owns(backend, subject, session))
  if (own.length === 0) yield* checkSpaceOwner(subject, shared)
  const sessions = yield* Effect.forEach(own, (session) =>
    Effect.map(Effect.mapError(backend.inbox.count(session.id), refusedBy), (waiting): Wire.SessionItem => ({
      session: session.address?.session ?? session.id,
      session_id: session.id,
      ...(session.title === undefined ? {} : { title: clip(session.title, longestText) }),
      state: stateOf(session),
      waiting,
      cwd: clip(agentDirectory(session.root, session.location.directory), longestText),
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
