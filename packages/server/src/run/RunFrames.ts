/**
 * Converts the rows and texts of a run into frames, for one run or all. Pure. Spec: SO-20..SO-25 in specs/socket.md
 * (FR-7, FR-9, FL-5, IX-6).
 */
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { clip } from "@daybook/transcript/Fold"
import type { EventRow } from "@daybook/transcript/row/Rows"
import * as RunStream from "@daybook/transcript/RunStream"
import type { Frame } from "../wire/Wire.ts"

/** An output: a piece of a run's text or reasoning, or a frame and the position of its event. */
export type Told = RunStream.TextItem | { readonly type: "frame"; readonly frame: Frame; readonly position: number }

/** Takes one event and returns the frames: those of the followed run, or all rows as in the file. */
export const step = (
  state: RunStream.State,
  event: SessionEvent | LiveEvent
): readonly [RunStream.State, ReadonlyArray<Told>] => {
  const [next, items] = RunStream.step(state, event)
  return [next, items.flatMap((item) => toldOf(state.followed, item))]
}

const toldOf = (followed: RunStream.Followed | undefined, item: RunStream.Item): ReadonlyArray<Told> => {
  if (item.type !== "row") return [item]
  const { event, row } = item
  const frame = followed === undefined ? row : frameOf(row, followed, event)
  return frame === undefined ? [] : [{ type: "frame", frame, position: event.position }]
}

/** Code units of a tool result in a frame, at most. */
const longestResult = 65_536

/** The content that the model was shown, as far as a frame holds it; files by name. */
const resultOf = (event: SessionEvent) => {
  if (event.type !== "session.next.tool.success") return { content: [] }
  const { content, result, structured } = event.data
  const shown = content.map((part) => (part.type === "text" ? part.text : `[${part.mime} ${part.name ?? ""}]`))
  const whole = shown.length > 0 ? shown.join("\n") : JSON.stringify(result ?? structured)
  const text = clip(whole, longestResult)
  return {
    content: [{ type: "text" as const, text }],
    ...(text.length === whole.length ? {} : { truncated: true as const, length: whole.length })
  }
}

/** A row of the followed run as a frame; undefined for rows that only `resume` shows. */
const frameOf = (row: EventRow, { id, run }: RunStream.Followed, event: SessionEvent): Frame | undefined => {
  const ofRun = { ...(id === undefined ? {} : { id }), run, event: row.id }
  switch (row.type) {
    case "start":
      return { type: row.type, ...ofRun, ...(row.model === undefined ? {} : { model: row.model }) }
    case "message": {
      const { content, length, problem, role, truncated, type } = row
      return {
        type,
        ...ofRun,
        role,
        content: content.map(({ text }) => ({ type: "text", text })),
        ...(truncated === undefined ? {} : { truncated }),
        ...(length === undefined ? {} : { length }),
        ...(problem === undefined ? {} : { problem })
      }
    }
    case "tool_call": {
      const { input, name, tool_call_id, type } = row
      return { type, ...ofRun, tool_call_id, name, input }
    }
    case "tool_result": {
      const { name, tool_call_id, type } = row
      return { type, ...ofRun, tool_call_id, name, ...resultOf(event) }
    }
    case "error": {
      const { code, message, recoverable, tool, tool_call_id, type } = row
      return {
        type,
        ...ofRun,
        ...(tool === undefined ? {} : { tool }),
        ...(tool_call_id === undefined ? {} : { tool_call_id }),
        code,
        message,
        ...(recoverable === undefined ? {} : { recoverable })
      }
    }
    case "done":
      return { type: row.type, ...ofRun, status: row.status }
    case "state":
      return undefined
    default:
      return row satisfies never
  }
}
