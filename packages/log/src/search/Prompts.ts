/** Lists the prompts that people typed, the newest first: from the index, so that there is no second copy. Spec: SE-50..SE-53. */
import { Array as Arr, Effect, Option, Schema } from "effect"
import { InvalidInput } from "../domain/InvalidInput.ts"
import { SessionID } from "../domain/Identifiers.ts"
import { clamp } from "../support/Clamp.ts"
import { readDocuments } from "./Documents.ts"
import { type Places, progress } from "./Indexing.ts"
import { newest } from "./Matching.ts"
import { itemLimit, lengthLimit, promptText } from "./Query.ts"
import type { PastPrompt, PromptsOptions, PromptsPage } from "./Search.ts"

/** Matches that are read at once. */
const portion = 200

const Cursor = Schema.NumberFromString.pipe(Schema.int(), Schema.nonNegative())

interface Row {
  readonly session: number
  readonly id: string
  readonly directory: string
}

interface Match {
  readonly position: number
  readonly session: number
  readonly seq: number
}

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
  return Arr.filterMap(shown, ({ position, row, seq, sessionID }) =>
    Option.map(Option.fromNullable(documents.get(position)), ({ created, text }) => ({
      position,
      prompt: { sessionID, seq, created, directory: row.directory, text: text.trim() } satisfies PastPrompt
    }))
  )
})

const cursorOf = (cursor: string) =>
  Effect.mapError(
    Schema.decodeUnknown(Cursor)(cursor),
    () => new InvalidInput({ field: "cursor", details: "use the cursor of the previous page, unchanged" })
  )

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
  let last = cursor === undefined ? (yield* progress(places)).position : (yield* cursorOf(cursor)) - 1
  const items: Array<PastPrompt> = []
  while (last > 0) {
    const matches = yield* places.index<Match>`SELECT d.position, d.session, d.seq
      FROM (${newest(places.index, match, { first: 0, last }, portion)}) m CROSS JOIN document d ON d.position = m.position`
    for (const { position, prompt } of yield* read(places.log, matches, directory)) {
      if (prompt.text === "" || prompt.text === items.at(-1)?.text) continue
      if (items.length === limit) return { items, cursor: String(last) } satisfies PromptsPage
      items.push(prompt)
      last = position
    }
    const oldest = matches.at(-1)
    if (oldest === undefined || matches.length < portion) return { items } satisfies PromptsPage
    last = oldest.position - 1
  }
  return { items } satisfies PromptsPage
})
