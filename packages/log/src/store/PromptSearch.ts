/** Finds sessions by a part of the title or of a prompt, also of one whose event is in a block. Spec: ST-35. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type * as SqlError from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import { Effect, Either } from "effect"
import { unpackPrompts } from "./ContentBlock.ts"

type Sql = SqlClient.SqlClient

/** LIKE ignores the case of these letters alone. */
const folded = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

interface PromptsRow {
  readonly rowid: number
  readonly session: number
  readonly prompts: Uint8Array
}

/** Blocks per query. */
const portion = 32

/** The numbers of the sessions that have the text in a prompt of a block. */
const selectInBlocks = Effect.fnUntraced(function* (sql: Sql, search: string) {
  const [wanted, found] = [folded(search), new Set<number>()]
  const addMatch = Effect.fnUntraced(function* (session: number, prompts: Uint8Array) {
    if (found.has(session)) return
    const texts = yield* unpackPrompts(prompts)
    if (Either.isLeft(texts)) yield* Effect.logWarning(`prompts of session ${session} cannot be read: ${texts.left}`)
    else if (texts.right.some((text) => folded(text).includes(wanted))) found.add(session)
  })
  for (let after = 0; ;) {
    const rows = yield* sql<PromptsRow>`SELECT rowid, session, prompts FROM content
      WHERE rowid > ${after} AND prompts IS NOT NULL ORDER BY rowid LIMIT ${portion}`
    const last = rows.at(-1)
    if (last === undefined) return [...found]
    yield* Effect.forEach(rows, ({ prompts, session }) => addMatch(session, prompts), { concurrency: 4, discard: true })
    after = last.rowid
  }
})

/** The condition that a session `s` has the text in its title or in a prompt. It ignores the case of the letters A to Z. */
export const matchingPrompts = (sql: Sql, search: string): Effect.Effect<Fragment, SqlError.SqlError> =>
  Effect.map(selectInBlocks(sql, search), (inBlocks) => {
    const pattern = `%${search.replace(/[\\%_]/g, "\\$&")}%`
    return sql`(title LIKE ${pattern} ESCAPE '\\' OR EXISTS (SELECT 1 FROM event_sequence q
      JOIN session_input i ON i.session = q.session JOIN event e ON e.session = i.session AND e.seq = i.admitted_seq
      WHERE q.session_id = s.id AND json_extract(e.data, '$.prompt.text') LIKE ${pattern} ESCAPE '\\')
      OR EXISTS (SELECT 1 FROM event_sequence q WHERE q.session_id = s.id
        AND q.session IN (SELECT value FROM json_each(${JSON.stringify(inBlocks)}))))`
  })
