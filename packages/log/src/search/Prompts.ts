/** Lists the prompts that people typed, the newest first: from the index, so that there is no second copy. Spec: SE-50..SE-53. */
import { Array as Arr, Effect, Option, Schema } from "effect"
import { InvalidInput } from "../domain/InvalidInput.ts"
import { SessionID } from "../domain/Identifiers.ts"
import { clamp } from "../support/Clamp.ts"
import { readDocuments } from "./Documents.ts"
import type { Places } from "./Indexing.ts"
import { itemLimit, lengthLimit, promptText } from "./Query.ts"
import type { PastPrompt, PromptsOptions, PromptsPage } from "./Search.ts"

/** Matches that are read at once. */
const portion = 200

const Count = Schema.NumberFromString.pipe(Schema.int(), Schema.nonNegative())

/** The time and the position of the last prompt of a page. */
const Cursor = Schema.TemplateLiteralParser(Count, ":", Count)

interface Row {
  readonly session: number
  readonly id: string
  readonly directory: string
}

interface Match {
  readonly position: number
  readonly session: number
  readonly seq: number
  readonly created: number
}

type Last = Pick<Match, "created" | "position">

/** The next prompts before a prompt, the newest first. An import stores old prompts, so the times decide. */
const selectMatches = (index: Places["index"], match: string | undefined, { created, position }: Last) =>
  index<Match>`SELECT position, session, seq, created FROM document INDEXED BY document_prompt
    WHERE role = 0 AND (created, position) < (${created}, ${position})
      ${match === undefined ? index`` : index`AND position IN (SELECT rowid FROM terms WHERE terms MATCH ${match})`}
    ORDER BY created DESC, position DESC LIMIT ${portion}`

/** The sessions of matches without those that agents created, and only those of the folder if there is one. */
const selectShown = (log: Places["log"], matches: ReadonlyArray<Match>, directory: string | undefined) =>
  log<Row>`SELECT q.session, s.id, s.directory FROM event_sequence q JOIN session s ON s.id = q.session_id
    WHERE q.session IN (SELECT value FROM json_each(${JSON.stringify(matches.map(({ session }) => session))}))
      AND s.parent_id IS NULL ${directory === undefined ? log`` : log`AND s.directory = ${directory}`}`

/** The prompts of the matches, in their order. */
const read = Effect.fnUntraced(function* (
  log: Places["log"],
  matches: ReadonlyArray<Match>,
  directory: string | undefined
) {
  const rows = new Map((yield* selectShown(log, matches, directory)).map((row) => [row.session, row]))
  const shown = matches.flatMap((match) => {
    const row = rows.get(match.session)
    return row === undefined ? [] : [{ ...match, row, sessionID: SessionID.make(row.id, { disableValidation: true }) }]
  })
  const documents = yield* readDocuments(log, shown)
  return Arr.filterMap(shown, ({ created, position, row, seq, sessionID }) =>
    Option.map(Option.fromNullable(documents.get(position)), ({ text }) => ({
      place: { created, position },
      prompt: { sessionID, seq, created, directory: row.directory, text: text.trim() } satisfies PastPrompt
    }))
  )
})

const lastOf = (cursor: string) =>
  Schema.decodeUnknown(Cursor)(cursor).pipe(
    Effect.map(([created, , position]): Last => ({ created, position })),
    Effect.mapError(
      () => new InvalidInput({ field: "cursor", details: "use the cursor of the previous page, unchanged" })
    )
  )

const newest: Last = { created: Number.MAX_SAFE_INTEGER, position: 0 }

/** One page of prompts. */
export const prompts = Effect.fnUntraced(function* (
  places: Places,
  { cursor, directory, limit: asked, words = "" }: PromptsOptions
) {
  const limit = clamp(asked, 50, 1_000)
  const terms = words.split(/\s+/).filter((word) => word !== "")
  if (words.length > lengthLimit || terms.length > itemLimit) {
    const details = `use ${lengthLimit} characters and ${itemLimit} words at most`
    return yield* new InvalidInput({ field: "words", details })
  }
  const match = promptText(terms)
  let last = cursor === undefined ? newest : yield* lastOf(cursor)
  const items: Array<PastPrompt> = []
  for (;;) {
    const matches = yield* selectMatches(places.index, match, last)
    for (const { place, prompt } of yield* read(places.log, matches, directory)) {
      if (prompt.text === "" || prompt.text === items.at(-1)?.text) continue
      if (items.length === limit) return { items, cursor: `${last.created}:${last.position}` } satisfies PromptsPage
      items.push(prompt)
      last = place
    }
    const oldest = matches.at(-1)
    if (oldest === undefined || matches.length < portion) return { items } satisfies PromptsPage
    last = oldest
  }
})
