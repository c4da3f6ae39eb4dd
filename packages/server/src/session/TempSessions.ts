/**
 * Tracks the users of temp sessions: a session lives while a connection uses it, a run while the connection that sent
 * it is open. In-process state, changed synchronously. Spec: SO-55, SO-56 in specs/socket.md (SC-2, DC-17).
 */
import { type Address, addressKey } from "@daybook/log/domain/Address"
import type { RunID } from "@daybook/transcript/row/Rows"

/** A session that a connection used, and the runs that it sent there. */
export interface Left {
  readonly address: Address
  readonly runs: ReadonlySet<RunID>
}

export interface TempSessions {
  /** Marks the session as used by the connection, from its first request on. */
  readonly use: (connection: number, address: Address) => void
  readonly sent: (connection: number, address: Address, run: RunID) => void
  /** Removes the connection; returns what it used. */
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
      // A connection that has left must not be added again.
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
