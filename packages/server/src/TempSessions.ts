/**
 * Who uses which temp session: it lives in memory for as long as some connection does, and a run of it for as long as the
 * connection that sent it. State of one process, changed in single steps. Spec: SO-55..SO-58 in specs/socket.md (SC-2, DC-17).
 */
import { addressKey, type Address } from "@daybook/core"
import type { RunID } from "@daybook/files"

/** A session that a connection has left, and the runs that it had sent there. */
export interface Left {
  readonly address: Address
  readonly runs: ReadonlySet<RunID>
}

export interface TempSessions {
  /** The connection uses the session, from its first request on. */
  readonly use: (connection: number, address: Address) => void
  readonly sent: (connection: number, address: Address, run: RunID) => void
  /** The connection is gone; what it used. */
  readonly leave: (connection: number) => ReadonlyArray<Left>
  readonly isUsed: (address: Address) => boolean
}

export const make = (): TempSessions => {
  const used = new Map<number, Map<string, { readonly address: Address; readonly runs: Set<RunID> }>>()

  const use = (connection: number, address: Address) => {
    const sessions = used.get(connection) ?? new Map()
    used.set(connection, sessions)
    const key = addressKey(address)
    const session = sessions.get(key) ?? { address, runs: new Set<RunID>() }
    sessions.set(key, session)
    return session
  }

  return {
    use,
    sent: (connection, address, run) => {
      // A connection that has left uses nothing again.
      used.get(connection)?.get(addressKey(address))?.runs.add(run)
    },
    leave: (connection) => {
      const left = [...(used.get(connection)?.values() ?? [])]
      used.delete(connection)
      return left
    },
    isUsed: (address) => {
      const key = addressKey(address)
      return [...used.values()].some((sessions) => sessions.has(key))
    }
  }
}
