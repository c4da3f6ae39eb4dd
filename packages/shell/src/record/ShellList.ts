/**
 * Folds the events of a session's live shells to the list of its shells. Pure, and without a library: a page in a browser folds
 * them too. A shell whose opening was pruned from the log is listed with its next event. Spec: SL-100, SL-105, SL-106
 * in specs/shell.md.
 */
import type { ShellCloseReason, ShellTransport, ShellType } from "@daybook/log/events/LiveShellEvents"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"

// The stored events of live shells, by types only: a page in a browser folds them too.

/** A stored event of a live shell. */
export type ShellEvent = Extract<SessionEvent, { readonly type: ShellType }>

const types: Readonly<Record<ShellType, true>> = {
  "session.next.shell.opened": true,
  "session.next.shell.executed": true,
  "session.next.shell.blocked": true,
  "session.next.shell.checkpointed": true,
  "session.next.shell.restored": true,
  "session.next.shell.closed": true
}

export const isShellEvent = (event: SessionEvent): event is ShellEvent => Object.hasOwn(types, event.type)

/** One shell; times are in milliseconds since the epoch. */
export interface ListedShell {
  readonly shellID: string
  /** Absent if the opening is no longer in the log. */
  readonly transport?: ShellTransport
  readonly title?: string
  readonly openedAt?: number
  /** The working folder, once it is known. */
  readonly cwd?: string
  /** Commands that ended, as far as the log has them. */
  readonly commands: number
  readonly lastEndAt?: number
  /** Absent while the shell is open. */
  readonly closed?: { readonly at: number; readonly reason: ShellCloseReason }
}

/** Shells by id: the open ones in the order of their opening, and the last closed ones. */
export type ShellList = ReadonlyMap<string, ListedShell>

/** Closed shells that stay in the list. */
export const mostClosed = 100

export const initial: ShellList = new Map()

/** The list with this state of a shell. An opened and a closed shell move to the end. */
const put = (list: ShellList, shell: ListedShell, moves: boolean): ShellList => {
  const next = new Map(list)
  if (moves) next.delete(shell.shellID)
  next.set(shell.shellID, shell)
  if (shell.closed === undefined) return next
  const closed = [...next.values()].filter((each) => each.closed !== undefined)
  for (const { shellID } of closed.slice(0, Math.max(0, closed.length - mostClosed))) next.delete(shellID)
  return next
}

const changed = (shell: ListedShell, event: Exclude<ShellEvent, { readonly type: "session.next.shell.opened" }>) => {
  switch (event.type) {
    case "session.next.shell.executed":
      return { ...shell, cwd: event.data.cwd, commands: shell.commands + 1, lastEndAt: event.created }
    case "session.next.shell.closed":
      return { ...shell, closed: { at: event.created, reason: event.data.reason } }
    case "session.next.shell.blocked":
    case "session.next.shell.checkpointed":
    case "session.next.shell.restored":
      return shell
    default:
      return event satisfies never
  }
}

/** The list after one event. Events of a session in order; those of other types change nothing. */
export const evolve = (list: ShellList, event: SessionEvent): ShellList => {
  if (!isShellEvent(event)) return list
  const { shellID } = event.data
  if (event.type === "session.next.shell.opened") {
    const { cwd, title, transport } = event.data
    const texts = { ...(title === undefined ? {} : { title }), ...(cwd === undefined ? {} : { cwd }) }
    // A shell of this id that is still open ended with its process.
    return put(list, { shellID, transport, ...texts, openedAt: event.created, commands: 0 }, true)
  }
  const shell = list.get(shellID) ?? { shellID, commands: 0 }
  // Nothing follows a close: a late event does not open the shell again.
  if (shell.closed !== undefined) return list
  return put(list, changed(shell, event), event.type === "session.next.shell.closed")
}

export const open = (list: ShellList): ReadonlyArray<ListedShell> =>
  [...list.values()].filter((shell) => shell.closed === undefined)

export const idleSeconds = ({ lastEndAt, openedAt }: ListedShell, now: number): number | undefined => {
  const since = lastEndAt ?? openedAt
  return since === undefined ? undefined : Math.max(0, Math.floor((now - since) / 1_000))
}
