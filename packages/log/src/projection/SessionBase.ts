/** The session's row as of the floor, stored with it: rebuilds and verifications start there. Spec: RT-8, RT-15. */
import { Either, Schema } from "effect"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { type AnyRow, applyUpdate, type Change } from "./Change.ts"
import { project } from "./Projection.ts"
import { SessionRow } from "./Tables.ts"

export const SessionBase = Schema.Struct({
  row: SessionRow,
  /** The estimated part of what was spent up to the floor: the events that say so are gone. */
  estimated: Schema.Struct({ cost: Schema.Number, tokens: Schema.Number })
})
export type SessionBase = typeof SessionBase.Type

const Json = Schema.parseJson(SessionBase)

export const encode: (base: SessionBase) => string = Schema.encodeSync(Json)
export const decode = Schema.decodeUnknownEither(Json)

const apply = (row: SessionRow | undefined, change: Change): SessionRow | undefined => {
  if (change.table !== "session") return row
  if (change.op === "insert") return change.row
  if (row === undefined) return undefined
  const add = Object.entries(change.add ?? {}).map(([column, amount]) => [column, Number(amount)] as const)
  const next = applyUpdate("session", row as AnyRow, { key: change.key, set: change.set as AnyRow, add })
  // An update of `session` sets no column once, so it is never refused, and keeps the row's columns.
  return Either.getOrElse(next, () => row as AnyRow) as SessionRow
}

const nothing = { cost: 0, tokens: 0 }

const spent = ({ data }: SessionEvent): { readonly cost: number; readonly tokens: number } =>
  "estimated" in data && data.estimated === true
    ? { cost: data.cost ?? 0, tokens: data.tokens === undefined ? 0 : data.tokens.input + data.tokens.output }
    : nothing

/** The base after one more event; undefined before the session's creation. */
export const after = (base: SessionBase | undefined, event: SessionEvent): SessionBase | undefined => {
  const row = project(event).reduce<SessionRow | undefined>(apply, base?.row)
  if (row === undefined) return undefined
  const { cost, tokens } = spent(event)
  const estimated = event.type === "session.next.forked" ? nothing : (base?.estimated ?? nothing)
  return { row, estimated: { cost: estimated.cost + cost, tokens: estimated.tokens + tokens } }
}
