/**
 * Renders the live lines of a followed run: its phase, each running call with the end of its output, and a status line; and
 * draws them again in their region of the terminal. Pure: a function of the run's state, the time and the terminal's size.
 * Spec: CL-45 in specs/cli.md.
 */
import type { EventIn, LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { type Call, callText, elapsed, tail } from "./CallText.ts"
import { cut, oneLine, rowsAtWords, width } from "./Plain.ts"
import type { Style } from "./Style.ts"

/** The answer, the model's reasoning, and lines about the run. */
export type Channel = "text" | "reasoning" | "note"

/** Permanent text. */
export interface Piece {
  readonly channel: Channel
  readonly text: string
}

/** The lines below the permanent text. */
export interface Region {
  /** The unfinished row, without its prefix. */
  readonly row: string
  readonly channel: Channel
  /** Its lines as last drawn. */
  readonly drawn: ReadonlyArray<string>
}

export interface ChannelStyle {
  readonly prefix: string
  readonly paint: (row: string) => string
}

export type Looks = Readonly<Record<Channel, ChannelStyle>>

/** Nothing is drawn. */
export const empty: Region = { row: "", channel: "text", drawn: [] }

/** The last cell of a row stays empty: terminals disagree about the cursor's position after it. */
const room = (columns: number): number => Math.max(2, columns - 1)

/** Text is wrapped in pieces of this length: a model may write a megabyte without a line break. */
const pieceLength = 4_096

const rowsOnScreen = (lines: ReadonlyArray<string>, columns: number): number =>
  lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(width(line) / columns)), 0)

/** Erases the region from its first cell. The terminal may be narrower than when the region was drawn. */
const erase = (drawn: ReadonlyArray<string>, columns: number): string => {
  if (drawn.length === 0) return ""
  const up = rowsOnScreen(drawn, columns) - 1
  return `\r${up === 0 ? "" : `\u001b[${up}A`}\u001b[J`
}

type Written = { readonly row: string; readonly channel: Channel; readonly out: string }

const write = (state: Written, { channel, text }: Piece, columns: number, looks: Looks): Written => {
  let { out, row } = state
  const keep = (line: string, of: Channel) => {
    out += `${looks[of].paint(looks[of].prefix + line)}\n`
  }
  if (row !== "" && channel !== state.channel) {
    keep(row, state.channel)
    row = ""
  }
  const cells = Math.max(2, room(columns) - width(looks[channel].prefix))
  // A tab's width would depend on its column.
  const lines = text.replaceAll("\t", "    ").split("\n")
  for (const [at, line] of lines.entries()) {
    for (let from = 0; from < line.length; from += pieceLength) {
      const wrapped = rowsAtWords(row + line.slice(from, from + pieceLength), cells)
      for (const full of wrapped.slice(0, -1)) keep(full.trimEnd(), channel)
      row = wrapped.at(-1) ?? ""
    }
    if (at < lines.length - 1) {
      keep(row.trimEnd(), channel)
      row = ""
    }
  }
  return { row, channel, out }
}

/** Appends pieces, draws the region's lines below them, and returns the bytes to send. */
export const next = (
  region: Region,
  pieces: ReadonlyArray<Piece>,
  live: ReadonlyArray<string>,
  columns: number,
  looks: Looks
): readonly [Region, string] => {
  const { channel, out, row } = pieces.reduce<Written>((state, piece) => write(state, piece, columns, looks), {
    ...region,
    out: ""
  })
  const open = row === "" ? [] : [looks[channel].paint(looks[channel].prefix + row.trimEnd())]
  const drawn = [...open, ...live]
  const same = drawn.length === region.drawn.length && drawn.every((line, at) => line === region.drawn[at])
  if (out === "" && same) return [{ row, channel, drawn }, ""]
  return [{ row, channel, drawn }, `${erase(region.drawn, columns)}${out}${drawn.join("\n")}`]
}

export const close = (region: Region, columns: number, looks: Looks): string => {
  const { channel, row } = region
  return `${erase(region.drawn, columns)}${row === "" ? "" : `${looks[channel].paint(looks[channel].prefix + row)}\n`}`
}

/** A line of the region, truncated to the terminal. Styles are added afterwards. */
export const fit = (line: string, columns: number): string => cut(line, room(columns))

/** What the run waits for, apart from running calls. */
export type Phase =
  | { readonly type: "queued" | "waiting" | "thinking" | "answering" | "summarizing" | "stopping" }
  | { readonly type: "calling"; readonly tool: string }
  | {
      readonly type: "retrying"
      readonly attempt: number
      readonly attempts: number | undefined
      readonly until: number | undefined
    }

/** What the run waits for after the event; undefined if that does not change. */
export const phaseAfter = (event: SessionEvent | LiveEvent): Phase | undefined => {
  switch (event.type) {
    case "session.next.reasoning.started":
    case "session.next.reasoning.delta":
      return { type: "thinking" }
    case "session.next.text.started":
    case "session.next.text.delta":
      return { type: "answering" }
    case "session.next.tool.input.started":
      return { type: "calling", tool: event.data.name }
    case "session.next.compaction.started":
      return { type: "summarizing" }
    case "session.next.retried": {
      const { attempt, attempts, waitMs } = event.data
      return { type: "retrying", attempt, attempts, until: waitMs === undefined ? undefined : event.created + waitMs }
    }
    case "session.next.tool.input.delta":
    case "session.next.tool.progress":
    case "session.next.compaction.delta":
    case "session.next.shell.opened":
    case "session.next.shell.executed":
    case "session.next.shell.blocked":
    case "session.next.shell.checkpointed":
    case "session.next.shell.restored":
    case "session.next.shell.closed":
      return undefined
    default:
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions"
      >
      return { type: "waiting" }
  }
}

/** A call that has not ended. */
export interface RunningCall extends Call {
  readonly startedAt: number
  /** The end of its output. */
  readonly output: string
}

export interface Live {
  readonly startedAt: number
  readonly phase: Phase
  readonly running: ReadonlyArray<RunningCall>
  /** A call waits for a person's answer. */
  readonly asks?: boolean
  /** How to stop it. Default: Ctrl-C. */
  readonly advice?: string
}

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

/** How long each character of the spinner is shown. */
export const tickMillis = 200

/** The most calls and output lines shown; a terminal of few rows shows fewer. */
const most = { calls: 4, lines: 3 }

const doing = ({ asks = false, phase, running: calls }: Live, now: number): string => {
  if (phase.type === "stopping") return "stopping"
  if (asks) return "waiting for your answer"
  if (calls.length === 1) return `running ${oneLine(calls[0]?.tool ?? "", 40)}`
  if (calls.length > 1) return `running ${calls.length} calls`
  switch (phase.type) {
    case "queued":
      return "waiting for its turn"
    case "waiting":
      return "waiting for the model"
    case "calling":
      return `writing a call of ${oneLine(phase.tool, 40)}`
    case "retrying": {
      const left = phase.until === undefined ? 0 : phase.until - now
      const next = `attempt ${phase.attempt + 1}${phase.attempts === undefined ? "" : ` of ${phase.attempts}`}`
      return left <= 0 ? next : `${next} in ${elapsed(left + 999)}`
    }
    default:
      return phase.type
  }
}

/** A running call, truncated, with its elapsed time. */
const running = (call: RunningCall, now: number, columns: number): string => {
  const time = `  ${elapsed(now - call.startedAt)}`
  return fit(`${fit(`→ ${callText(call, columns)}`, columns - time.length)}${time}`, columns)
}

const status = (line: string, columns: number, advice = "Ctrl-C stops"): string => {
  const advised = `${line}  (${advice})`
  return fit(advised, columns) === advised ? advised : fit(line, columns)
}

export const liveLines = (
  live: Live,
  now: number,
  size: { readonly columns: number; readonly rows: number },
  style: Style
): ReadonlyArray<string> => {
  const { columns, rows } = size
  const calls = live.running.slice(0, Math.min(most.calls, Math.max(0, rows - 3)))
  // Some rows are left for the answer.
  const lines = Math.min(most.lines, Math.max(0, Math.floor((rows - 4) / Math.max(1, calls.length)) - 1))
  const more = live.running.length - calls.length
  const picture = spinner[Math.floor(now / tickMillis) % spinner.length] ?? ""
  return [
    ...calls.flatMap((call) => [
      running(call, now, columns),
      ...(call.output.trim() === "" || lines === 0
        ? []
        : tail(call.output, lines).map((line) => style.dim(fit(`  ${line}`, columns))))
    ]),
    ...(more > 0 && calls.length > 0 ? [fit(`  and ${more} more`, columns)] : []),
    status(`${picture} ${elapsed(now - live.startedAt)}  ${doing(live, now)}`, columns, live.advice)
  ]
}
