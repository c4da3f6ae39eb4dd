/**
 * Shows the matches of a text in their surroundings. The tokenizer that built the index also finds the matches: the texts of
 * a page go to a table in memory for the time of one statement. Spec: SE-43.
 */
import * as Reactivity from "@effect/experimental/Reactivity"
import type * as SqlClient from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { open } from "../storage/Database.ts"
import { directly } from "../storage/Transaction.ts"
import { joined, separated } from "./Words.ts"

/** Words of a snippet, and its most characters. */
const [wordLimit, charLimit] = [24, 320]

/** Invisible characters that no word has. */
const [begin, end] = ["\u2061", "\u2062"]

/** A part of a text, and where its matches are. */
export interface Snippet {
  readonly snippet: string
  readonly marks: ReadonlyArray<readonly [number, number]>
}

/** Opens the table. */
export const openTable = Effect.gen(function* () {
  const sql = yield* open({ filename: ":memory:" })
  yield* Effect.orDie(
    sql`CREATE VIRTUAL TABLE shown USING fts5(text, detail=full, tokenize="unicode61 remove_diacritics 2")`
  )
  return sql
}).pipe(Effect.provide(Reactivity.layer))

/** Takes the marks out of a text. Texts between marks are on one line. */
const unmarked = (text: string): Snippet => {
  const marks: Array<readonly [number, number]> = []
  let [snippet, from] = ["", 0]
  for (const piece of joined(text)
    .replaceAll(/\s+/g, " ")
    .trim()
    .split(/([\u2061\u2062])/)) {
    if (piece === begin) from = snippet.length
    else if (piece === end) marks.push([from, snippet.length])
    else snippet += piece
  }
  if (snippet.length <= charLimit) return { snippet, marks }
  // A word of thousands of characters, such as encoded data.
  const start = Math.max(0, Math.min((marks[0]?.[0] ?? 0) - 40, snippet.length - charLimit))
  const cut = snippet.slice(start, start + charLimit)
  const shift = start > 0 ? start - 1 : 0
  return {
    snippet: `${start > 0 ? "…" : ""}${cut}${start + charLimit < snippet.length ? "…" : ""}`,
    marks: marks.flatMap(([a, b]) =>
      a < start + charLimit ? [[a - shift, Math.min(b, start + charLimit) - shift] as const] : []
    )
  }
}

const plain = (text: string) => unmarked(text.length > charLimit ? `${text.slice(0, charLimit - 1)}…` : text)

const without = (text: string) => text.replaceAll(/[\u2061\u2062]/g, " ").replaceAll("\0", " ")

/** The snippet of each text. Without words to mark, a text's beginning. */
export const snippets = (sql: SqlClient.SqlClient, texts: ReadonlyArray<string>, match: string | undefined) =>
  match === undefined
    ? Effect.succeed(texts.map((text) => plain(without(text))))
    : directly(sql, (statements) => {
        try {
          texts.forEach((text, at) =>
            statements.run("INSERT INTO shown (rowid, text) VALUES (?, ?)", [at + 1, separated(without(text))])
          )
          const found = statements.all<{ readonly at: number; readonly text: string }>(
            `SELECT rowid - 1 AS at, snippet(shown, 0, char(8289), char(8290), '…', ${wordLimit}) AS text
              FROM shown WHERE shown MATCH ?`,
            [match]
          )
          const marked = new Map(found.map(({ at, text }) => [at, text]))
          return texts.map((text, at) => {
            const shown = marked.get(at)
            return shown === undefined ? plain(without(text)) : unmarked(shown)
          })
        } finally {
          statements.run("DELETE FROM shown", [])
        }
      })
