/** How numbers and times are written, why a run ended, and how hidden characters show. Pure. Spec: IP-10, IP-30. */
import { problemOfActivity, problemWords } from "@daybook/log/domain/AnswerProblem"
import type { Session } from "@daybook/log/domain/Message"

// Tab and line feed stay; a carriage return before a line feed is dropped. ZWJ and ZWNJ stay: words and emoji need them.
const invisible =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu

const pictured = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return "\u2421"
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`
}

/** The text, with each invisible character as a visible one. */
export const visible = (text: string): string => text.replaceAll("\r\n", "\n").replace(invisible, pictured)

/** A session's state as a word. `cut off`: it says that it runs, but no process runs it. */
export const stateOf = (session: Pick<Session, "activity">, isActive: boolean, isNeedy: boolean): string => {
  const { activity } = session
  if (isNeedy) return "needs you"
  if (isActive) return "running"
  if (activity === undefined) return "idle"
  const problem = problemOfActivity(session)
  if (problem !== undefined) return problemWords(problem)
  return activity.state === "running" ? "cut off" : activity.state
}

const ends = { running: "was cut off", failed: "failed", interrupted: "was interrupted" }
const reasons = { running: "its process ended", failed: "no reason was stored", interrupted: undefined }

/** Why the last run, which is over, has no whole answer; undefined if it has one, or if a person stopped it. */
export const endOf = (session: Pick<Session, "activity">): string | undefined => {
  const { activity } = session
  if (activity === undefined) return undefined
  if (activity.state === "completed") return problemOfActivity(session)?.message
  const why = activity.error?.message ?? reasons[activity.state]
  return why === undefined ? undefined : `The last run ${ends[activity.state]}: ${why}`
}

/** `950 ms`, `3.4 s`, `2 min 5 s`, `3 h 12 min`, `4 d 2 h`. */
export const durationText = (milliseconds: number): string => {
  const ms = Math.max(0, Math.round(milliseconds))
  if (ms < 1_000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const [seconds, minutes, hours] = [Math.floor(ms / 1_000), Math.floor(ms / 60_000), Math.floor(ms / 3_600_000)]
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return hours % 24 === 0 ? `${Math.floor(hours / 24)} d` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** How long ago a time is: `just now`, `12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`. */
export const agoText = (at: number, now: number): string => {
  const seconds = Math.max(0, Math.floor((now - at) / 1_000))
  if (seconds < 5) return "just now"
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}

/** `1 turn`, `2 turns`, `12,000 turns`. */
export const countText = (count: number, one: string): string =>
  `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : "s"}`

/** `$0`, `$0.0042`, `$1.23`, `$1,234.50`. */
export const costText = (cost: number): string => {
  if (cost === 0) return "$0"
  const digits = Math.abs(cost) < 0.1 ? 4 : 2
  return `$${cost.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`
}

/** `950`, `12.3k`, `4.1M`. */
export const tokensText = (tokens: number): string => {
  if (tokens < 1_000) return String(Math.round(tokens))
  return tokens < 1_000_000 ? `${(tokens / 1_000).toFixed(1)}k` : `${(tokens / 1_000_000).toFixed(1)}M`
}

export const folderText = (path: string): string => path.split("/").findLast((part) => part !== "") ?? path

/** `14:02:33`. */
export const clockText = (at: number): string => new Date(at).toLocaleTimeString("en-GB")

/** `26 Nov 2026, 14:02:33`. */
export const dateText = (at: number): string =>
  new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" })
