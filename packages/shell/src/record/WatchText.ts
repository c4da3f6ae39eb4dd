/**
 * Renders the events of live shells as lines for a person who watches: `[1_local] /home/u $ npm run build`, then
 * `exit 1 in 3.4 s`. Pure. Callers make the lines safe for a terminal. Spec: SL-110..SL-112 in specs/shell.md.
 */
import type { EventOfType } from "@daybook/log/events/SessionEvents"
import type { ShellEvent } from "./ShellList.ts"

type Executed = EventOfType<"session.next.shell.executed">["data"]

/** `120 ms`, `3.4 s`, `2 min 5 s`. */
export const durationText = (ms: number): string => {
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** How a command ended: `exit 1 in 3.4 s`. */
const endText = ({ durationMs, exitCode, timedOut }: Executed): string =>
  `exit ${exitCode} in ${durationText(durationMs)}${timedOut === true ? " (timed out)" : ""}`

export const blockText = ({ policy, reason }: EventOfType<"session.next.shell.blocked">["data"]): string =>
  `blocked by the ${policy}'s policy: ${reason}`

/** Lines of a command that are shown. */
const mostLines = 20

/** The command behind its prompt, a line each; a longer one is cut. */
const commandLines = (prompt: string, command: string): ReadonlyArray<string> => {
  const [first = "", ...rest] = command.split("\n")
  const shown = rest.slice(0, mostLines - 1).map((line) => `> ${line}`)
  const more = rest.length - shown.length
  return [`${prompt}$ ${first}`, ...shown, ...(more === 0 ? [] : [`> (${more} more lines)`])]
}

const marked = (mark: string, text = ""): ReadonlyArray<string> =>
  text === "" ? [] : text.split("\n").map((line) => `${mark} ${line}`)

/** What a command printed. */
const outputLines = ({ callID, lateOutput, stderr, stdout, truncated }: Executed): ReadonlyArray<string> => [
  ...(callID === undefined || !truncated ? [] : [`| (in the result of call ${callID})`]),
  ...marked("~", lateOutput),
  ...marked("|", stdout),
  ...marked("!", stderr)
]

/** The event as lines; a command's prompt names `folder`, where it started, if that is known. */
const eventLines = (event: ShellEvent, folder: string | undefined, output: boolean): ReadonlyArray<string> => {
  const prompt = `[${event.data.shellID}] `
  const at = folder === undefined ? "" : `${folder} `
  switch (event.type) {
    case "session.next.shell.opened":
      return [[`${prompt}opened`, event.data.title].filter((part) => part !== undefined).join(": ")]
    case "session.next.shell.executed":
      return [
        ...commandLines(`${prompt}${at}`, event.data.command),
        ...(output ? outputLines(event.data) : []),
        endText(event.data)
      ]
    case "session.next.shell.blocked":
      return [...commandLines(`${prompt}${at}`, event.data.command), blockText(event.data)]
    case "session.next.shell.checkpointed": {
      const { checkpointID, label } = event.data
      return [`${prompt}checkpoint ${checkpointID}${label === undefined ? "" : ` (${label})`}`]
    }
    case "session.next.shell.restored": {
      const { checkpointID, filesChanged } = event.data
      return [`${prompt}restored ${checkpointID}: ${filesChanged} ${filesChanged === 1 ? "file" : "files"} changed`]
    }
    case "session.next.shell.closed":
      return [`${prompt}closed: ${event.data.reason}`]
    default:
      return event satisfies never
  }
}

/** The event on a line of its own, without what events before it say. `short` truncates a command. */
export const eventLine = (event: ShellEvent, short: (command: string) => string): string => {
  const prompt = `[${event.data.shellID}] `
  switch (event.type) {
    case "session.next.shell.executed":
      return `${prompt}$ ${short(event.data.command)}: ${endText(event.data)}, now in ${event.data.cwd}`
    case "session.next.shell.blocked":
      return `${prompt}$ ${short(event.data.command)}: ${blockText(event.data)}`
    case "session.next.shell.opened":
    case "session.next.shell.checkpointed":
    case "session.next.shell.restored":
    case "session.next.shell.closed":
      return eventLines(event, undefined, false).join(" ")
    default:
      return event satisfies never
  }
}

/** What the viewer has seen that later lines depend on. */
export interface Seen {
  /** The session of the last line. */
  readonly session: string | undefined
  /** Where the next command of an open shell starts, by session and shell. */
  readonly folders: ReadonlyMap<string, string>
}

export const nothingSeen: Seen = { session: undefined, folders: new Map() }

export interface WatchOptions {
  /** Names the session before its lines, whenever another one was shown before. */
  readonly sessions: boolean
  /** Shows what commands printed: `~` before late output of earlier ones, `|` before output, `!` before errors. */
  readonly output: boolean
}

/** Where the shell's next command starts after the event; undefined if that is unknown, or nothing follows. */
export const folderAfter = (event: ShellEvent, folder: string | undefined): string | undefined => {
  switch (event.type) {
    case "session.next.shell.opened":
    case "session.next.shell.executed":
      return event.data.cwd
    case "session.next.shell.closed":
      return undefined
    case "session.next.shell.blocked":
    case "session.next.shell.checkpointed":
    case "session.next.shell.restored":
      return folder
    default:
      return event satisfies never
  }
}

/** The lines of an event, and what is seen after it. */
export const watched = (
  seen: Seen,
  event: ShellEvent,
  { output, sessions }: WatchOptions
): readonly [seen: Seen, lines: ReadonlyArray<string>] => {
  const key = `${event.sessionID} ${event.data.shellID}`
  const folder = seen.folders.get(key)
  const after = folderAfter(event, folder)
  const folders = new Map(seen.folders)
  if (after === undefined) folders.delete(key)
  else folders.set(key, after)
  const head = sessions && seen.session !== event.sessionID ? [`== ${event.sessionID} ==`] : []
  // A folder, title or label with a line break must not look like another shell's line.
  const lines = eventLines(event, folder, output).map((line) => line.replaceAll(/[\r\n]+/g, " "))
  return [{ session: event.sessionID, folders }, [...head, ...lines]]
}
