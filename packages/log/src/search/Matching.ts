/** Selects what matches a query: sessions from the log, documents from the index. Spec: SE-30..SE-42. */
import { realpathSync } from "node:fs"
import { resolve } from "node:path"
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as Statement from "@effect/sql/Statement"
import { Effect } from "effect"
import type { NonEmptyArray, NonEmptyReadonlyArray } from "effect/Array"
import * as Dialect from "../storage/Dialect.ts"
import { Role } from "./Document.ts"
import type { Places } from "./Indexing.ts"
import { matchText, phraseText, type Query } from "./Query.ts"

// Orders matching documents by relevance and recency, and groups them by session.

export interface Candidate {
  readonly position: number
  readonly session: number
  readonly seq: number
  /** Index in the literals of `Role`. */
  readonly role: number
  readonly created: number
  /** Characters of its text. */
  readonly size: number
}

export interface Scored extends Candidate {
  readonly score: number
}

/** The documents of one session, the best first. */
export interface Group {
  readonly session: number
  readonly members: NonEmptyReadonlyArray<Scored>
}

const weights: Readonly<Record<Role, number>> = { user: 1, assistant: 0.8, reasoning: 0.5, tool: 0.4 }

const halfLife = 30 * 86_400_000

/**
 * The role's weight, twice that if the words stand next to each other, less for longer texts, and up to half less with
 * age: half of that half after 30 days.
 */
export const scoreOf = ({ created, role, size }: Candidate, adjacent: boolean, now: number): number => {
  const weight = weights[Role.literals[role] ?? "tool"]
  const brevity = 1 / (1 + Math.log2(1 + size / 1_000))
  const recency = 0.5 + 0.5 * 2 ** (-Math.max(0, now - created) / halfLife)
  return weight * (adjacent ? 2 : 1) * brevity * recency
}

/** The candidates by session, the session with the best one first. `adjacent` holds positions. */
export const rank = (candidates: ReadonlyArray<Candidate>, adjacent: ReadonlySet<number>, now: number) => {
  const scored = candidates
    .map((each): Scored => ({ ...each, score: scoreOf(each, adjacent.has(each.position), now) }))
    .toSorted((one, other) => other.score - one.score || other.position - one.position)
  const groups = new Map<number, NonEmptyArray<Scored>>()
  for (const each of scored) {
    const members = groups.get(each.session)
    if (members === undefined) groups.set(each.session, [each])
    else members.push(each)
  }
  return [...groups].map(([session, members]) => ({ session, members }))
}

/** Most sessions that a filter may select, documents that are ranked, and documents that times are compared with. */
export const [sessionLimit, rankedLimit, examinedLimit] = [1_000, 1_000, 20_000]

const dayLength = 86_400_000

const canonical = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** The folder itself and the folders below it. "0" follows "/" in the order of characters. */
const inFolder = (sql: SqlClient.SqlClient, folder: string) =>
  folder === "/"
    ? sql`TRUE`
    : sql`(s.directory = ${folder} OR (s.directory > ${`${folder}/`} AND s.directory < ${`${folder}0`}))`

const withTitle = (sql: SqlClient.SqlClient, title: string) =>
  sql`s.title ${Dialect.like(sql)} ${`%${title.replace(/[\\%_]/g, "\\$&")}%`} ESCAPE '\\'`

const named = (sql: SqlClient.SqlClient, name: string) =>
  name.startsWith("ses_") ? sql`s.id = ${name}` : sql`s.title = ${name}`

/** The sessions that the query's filters select, the last used first, one more than the limit; undefined for all. */
export const selectSessions = (sql: SqlClient.SqlClient, { folders, sessions, titles }: Query, directory: string) => {
  const alternatives = [
    folders.map((folder) => inFolder(sql, canonical(resolve(directory, folder)))),
    titles.map((title) => withTitle(sql, title)),
    sessions.map((name) => named(sql, name))
  ].filter(({ length }) => length > 0)
  if (alternatives.length === 0) return Effect.succeed(undefined)
  return Effect.map(
    sql<{ readonly session: number }>`SELECT q.session FROM session s JOIN event_sequence q ON q.session_id = s.id
      WHERE ${sql.and(alternatives.map((each) => sql.or(each)))}
      ORDER BY s.time_updated DESC, s.id DESC LIMIT ${sessionLimit + 1}`,
    (rows) => rows.map(({ session }) => session)
  )
}

type Range = { readonly first: number; readonly last: number }

/** The positions between which documents of the query's times are. */
const selectRange = (index: SqlClient.SqlClient, { after, before }: Query, through: number) =>
  after === undefined && before === undefined
    ? Effect.succeed<Range>({ first: 0, last: through })
    : Effect.map(
        index<{ readonly first: number | null; readonly last: number | null }>`
          SELECT min(first) AS first, max(last) AS last FROM day
            WHERE day BETWEEN ${Math.floor((after ?? 0) / dayLength)}
              AND ${Math.floor((before ?? Number.MAX_SAFE_INTEGER) / dayLength)}`,
        ([row]): Range => ({ first: row?.first ?? 1, last: Math.min(row?.last ?? 0, through) })
      )

/** The newest matches, read backwards in the order of positions: no match is sorted. */
export const newest = (
  sql: SqlClient.SqlClient,
  match: string,
  { first, last }: Range,
  limit: number
): Statement.Fragment =>
  sql`SELECT rowid AS position FROM terms WHERE terms MATCH ${match} AND rowid BETWEEN ${first} AND ${last}
    ORDER BY rowid DESC LIMIT ${limit}`

/** The newest matches within the query's times. */
export const candidatesOf = (
  sql: SqlClient.SqlClient,
  match: string,
  range: Range,
  { after = 0, before = Number.MAX_SAFE_INTEGER }: Pick<Query, "after" | "before">
) =>
  sql<Candidate>`SELECT d.* FROM (${newest(sql, match, range, examinedLimit)}) m
    CROSS JOIN document d ON d.position = m.position
    WHERE d.created >= ${after} AND d.created < ${before} LIMIT ${rankedLimit}`

/** Documents that match, and which of them hold the words next to each other. */
export interface Matches {
  readonly candidates: ReadonlyArray<Candidate>
  readonly adjacent: ReadonlySet<number>
  readonly truncated: boolean
}

const nothing: Matches = { candidates: [], adjacent: new Set(), truncated: false }

/** Selects the newest matches up to a position. */
export const select = Effect.fnUntraced(function* (
  { index, log }: Places,
  query: Query,
  directory: string,
  through: number
) {
  const sessions = yield* selectSessions(log, query, directory)
  if (sessions?.length === 0) return nothing
  const match = matchText(query, sessions?.slice(0, sessionLimit))
  const range = yield* selectRange(index, query, through)
  if (range.first > range.last) return nothing
  const candidates = yield* candidatesOf(index, match, range, query)
  const isTimed = query.after !== undefined || query.before !== undefined
  const [examined] =
    isTimed && candidates.length < rankedLimit
      ? yield* index<{
          readonly count: number
        }>`SELECT count(*) AS count FROM (${newest(index, match, range, examinedLimit)})`
      : []
  const phrase = phraseText(query)
  const near = { first: candidates.at(-1)?.position ?? 0, last: candidates[0]?.position ?? 0 }
  const adjacent =
    phrase === undefined || candidates.length === 0
      ? []
      : yield* index<{ readonly position: number }>`${newest(index, phrase, near, examinedLimit)}`
  return {
    candidates,
    adjacent: new Set(adjacent.map(({ position }) => position)),
    truncated:
      (sessions?.length ?? 0) > sessionLimit || candidates.length === rankedLimit || examined?.count === examinedLimit
  } satisfies Matches
})
