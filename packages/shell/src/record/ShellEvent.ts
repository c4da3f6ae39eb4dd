/** The stored events of live shells. Imports types only: a page in a browser folds them too. Spec: SL-100. */
import type { ShellType } from "@daybook/log/events/LiveShellEvents"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"

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
