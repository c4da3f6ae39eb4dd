/** What the page says in words. No DOM. Spec: SL-224, SL-225 in specs/shell.md. */
import type { ShellCloseReason } from "@daybook/log/events/LiveShellEvents"
import type { Hidden } from "./Folded.ts"

const count = (number: number, one: string): string =>
  `${number.toLocaleString("en-US")} ${one}${number === 1 ? "" : "s"}`

export const commandsText = (commands: number): string => count(commands, "command")

/** How long ago a time is: `just now`, `12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`. */
export const agoText = (at: number, now: number): string => {
  const seconds = Math.max(0, Math.floor((now - at) / 1_000))
  if (seconds < 5) return "just now"
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}

const reasons: Readonly<Record<ShellCloseReason, string>> = {
  destroyed: "on request",
  reaped: "it was idle for too long",
  exited: "the shell ended",
  timeout: "a command did not stop in time",
  lost: "its connection or its process ended",
  shutdown: "its host ended",
  processes: "it had too many processes",
  memory: "it used too much memory",
  unprotected: "a protected file was replaced"
}

/** Why a shell closed: `reaped: it was idle for too long`. */
export const reasonText = (reason: ShellCloseReason): string => `${reason}: ${reasons[reason]}`

/** What a folded text hides. */
export const hiddenText = ({ characters, lines }: Hidden): string =>
  lines > 0 ? `Show ${count(lines, "more line")}` : `Show ${count(characters, "more character")}`

export const droppedText = (dropped: number): string =>
  `${count(dropped, "older event")} of this shell ${dropped === 1 ? "is" : "are"} no longer on this page: ` +
  "daybook shell watch --output prints them."

export const filesText = (files: number): string => `${count(files, "file")} changed`
