/** Builds events as a log returns them, and folds them. */
import { readFileSync } from "node:fs"
import { Either, Option } from "effect"
import { EventID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import * as Registry from "../../../packages/log/src/events/Registry.ts"
import type { Draft, SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { toEvent } from "../../../packages/log/src/log/EventRow.ts"
import * as Fold from "../../../packages/transcript/src/Fold.ts"
import type { MessageRow } from "../../../packages/transcript/src/row/Rows.ts"

/** The drafts as stored events of the session: one second apart unless times are given. */
export const stored = (drafts: ReadonlyArray<Draft>, name = "s", times: ReadonlyArray<number> = []) =>
  drafts.map((draft, seq): SessionEvent => {
    const { data, version } = Either.getOrThrow(Registry.encode(draft))
    const envelope = {
      position: 3 * seq + 1,
      seq,
      id: EventID.make(`evt_${name}-${seq}`),
      sessionID: SessionID.make(`ses_${name}`),
      version,
      created: times[seq] ?? 1_760_000_000_000 + 1_000 * seq
    }
    // Encoding keeps the type; the registry's signature does not say so.
    return { ...envelope, type: draft.type, data } as SessionEvent
  })

/** The events of a released version's log. */
export const golden = (version: string): ReadonlyArray<SessionEvent> =>
  readFileSync(new URL(`../../golden/${version}/event.jsonl`, import.meta.url), "utf8")
    .trimEnd()
    .split("\n")
    .flatMap((line) => {
      const event = toEvent(JSON.parse(line))
      return Option.isNone(event) ? [] : [Either.getOrThrow(event.value)]
    })

/** The texts of the files; long ones are read from their events. */
export const textsFrom =
  (events: ReadonlyArray<SessionEvent>) =>
  (texts: ReadonlyArray<Fold.Text>): string =>
    texts
      .map((text) => {
        if (typeof text === "string") return text
        const event = events.find(({ seq }) => seq === text.seq)
        if (event?.type !== "session.next.text.ended") throw new Error(`event ${text.seq} ends no text`)
        return event.data.text
      })
      .join("")

const shown = (row: Fold.FoldedRow, textOf: ReturnType<typeof textsFrom>): MessageRow =>
  row.role === "assistant"
    ? {
        ...row,
        content: row.content.map((block) => (block.type === "text" ? { ...block, text: textOf([block.text]) } : block))
      }
    : row

/** The result of a fold over events, from any state. */
export const folded = (events: ReadonlyArray<SessionEvent>, from: Fold.State = Fold.initial) => {
  let state = from
  const messages: Array<MessageRow> = []
  const textOf = textsFrom(events)
  const rows: Array<Fold.Evolved["events"][number]> = []
  const blobs: Array<Fold.Blob> = []
  for (const event of events) {
    const next = Fold.evolve(state, event)
    state = next.state
    messages.push(...next.messages.map((row) => shown(row, textOf)))
    rows.push(...next.events)
    blobs.push(...next.blobs)
  }
  const latest = state.latest === undefined ? undefined : textOf(state.latest)
  return { state, messages, events: rows, blobs, latest }
}
