/**
 * What happened to a live shell, as an event to append. The constructors truncate texts and redact nothing: callers pass
 * redacted texts, as results and errors of shells hold them. Pure. `ShellRecord.ts` appends. Spec: SL-101, SL-102.
 */
import type { ShellCloseReason, ShellType } from "@daybook/log/events/LiveShellEvents"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import type { ExecResult } from "../domain/ExecResult.ts"
import type { CommandBlocked } from "../domain/ShellError.ts"
import type { Target } from "../domain/Target.ts"

/** A fact about one shell, not yet stored. */
export type ShellFact = Extract<Draft, { readonly type: ShellType }>

/** Maximum UTF-16 code units of a recorded command, or of one of its outputs. */
export const longestOutput = 100_000
/** Maximum UTF-16 code units of a title, a folder, a reason or a label. */
export const longestLine = 4_096

const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** Both ends of a longer text, with a line between them that says how much is missing. Splits no surrogate pair. */
const bounded = (text: string, limit = longestOutput): string => {
  if (text.length <= limit) return text
  const half = Math.floor((limit - 64) / 2)
  const head = isLow(text.charCodeAt(half)) ? half - 1 : half
  const from = text.length - half
  const tail = isLow(text.charCodeAt(from)) ? from + 1 : from
  return `${text.slice(0, head)}\n[${tail - head} characters are not recorded]\n${text.slice(tail)}`
}

const line = (text: string): string => bounded(text, longestLine)

/** What the target is connected to; undefined for this machine. */
const titleOf = (target: Target): string | undefined => {
  switch (target.transport) {
    case "local":
      return undefined
    case "ssh":
      return `${target.user}@${target.host}:${target.port ?? 22}`
    case "docker":
      return target.container
  }
}

/** The shell opened. `cwd` is its first working folder, if it is known. */
export const opened = (shellID: string, target: Target, cwd?: string): ShellFact => {
  const title = titleOf(target)
  return draft("session.next.shell.opened", {
    shellID,
    transport: target.transport,
    ...(title === undefined ? {} : { title }),
    ...(cwd === undefined ? {} : { cwd: line(cwd) })
  })
}

/** The command ended with this result. The result of the tool call `callID` has the output. */
export const executed = (shellID: string, command: string, result: ExecResult, callID?: string): ShellFact => {
  const { cwd, duration_ms, exit_code, late_output, output, stderr, stdout, timed_out, truncated } = result
  const isLong = [stdout, stderr, late_output ?? ""].some((text) => text.length > longestOutput)
  return draft("session.next.shell.executed", {
    shellID,
    command: bounded(command),
    stdout: bounded(stdout),
    stderr: bounded(stderr),
    exitCode: exit_code,
    durationMs: duration_ms,
    cwd: line(cwd),
    truncated: truncated || isLong,
    ...(timed_out === true ? { timedOut: true as const } : {}),
    ...(late_output === undefined || callID !== undefined ? {} : { lateOutput: bounded(late_output) }),
    ...(output === undefined ? {} : { output }),
    ...(callID === undefined ? {} : { callID })
  })
}

/** A policy refused the command. */
export const blocked = (shellID: string, command: string, { policy, reason }: CommandBlocked): ShellFact =>
  draft("session.next.shell.blocked", { shellID, command: bounded(command), policy, reason: line(reason) })

/** A checkpoint of the workspace was made. */
export const checkpointed = (shellID: string, checkpointID: string, label?: string): ShellFact =>
  draft("session.next.shell.checkpointed", {
    shellID,
    checkpointID,
    ...(label === undefined ? {} : { label: line(label) })
  })

/** The workspace is as it was at the checkpoint. */
export const restored = (shellID: string, checkpointID: string, filesChanged: number): ShellFact =>
  draft("session.next.shell.restored", { shellID, checkpointID, filesChanged })

/** The shell is closed; it is the last fact about it. */
export const closed = (shellID: string, reason: ShellCloseReason): ShellFact =>
  draft("session.next.shell.closed", { shellID, reason })
