/**
 * Renders the live lines of a followed run: each running call with the end of its output, and a status line. Pure: a
 * function of the run's state, the time and the terminal's size. Spec: CL-45 in specs/cli.md.
 */
import { type Call, callText, elapsed, tail } from "./CallText.ts"
import type { Phase } from "./Phase.ts"
import { oneLine } from "./Plain.ts"
import { fit } from "./Region.ts"
import type { Style } from "./Style.ts"

/** A call that has not ended. */
export interface RunningCall extends Call {
  readonly startedAt: number
  /** The end of its output. */
  readonly output: string
}

/** The state of the run. */
export interface Live {
  readonly startedAt: number
  readonly phase: Phase
  readonly running: ReadonlyArray<RunningCall>
  /** How to stop it. Default: Ctrl-C. */
  readonly advice?: string
}

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

/** How long each character of the spinner is shown. */
export const tickMillis = 200

/** The most calls and output lines shown; a terminal of few rows shows fewer. */
const most = { calls: 4, lines: 3 }

const doing = ({ phase, running: calls }: Live, now: number): string => {
  if (phase.type === "stopping") return "stopping"
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

/** The status line, with advice if it fits. */
const status = (line: string, columns: number, advice = "Ctrl-C stops"): string => {
  const advised = `${line}  (${advice})`
  return fit(advised, columns) === advised ? advised : fit(line, columns)
}

/** The live lines, each truncated to the terminal. */
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
