/**
 * Takes a root: opens the folder, locks the exporter's record in it, and checks that its files belong to this store.
 * Spec: FI-65..FI-68 in specs/files.md.
 */
import { chmod, realpath, stat } from "node:fs/promises"
import { Effect, Predicate, type Scope } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { EventLog } from "@daybook/log/log/EventLog"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { processUid } from "../disk/FileCalls.ts"
import * as SafeFiles from "../disk/SafeFiles.ts"
import { type RootBusy, RootOfAnotherStore, RootUnusable } from "../layout/Errors.ts"
import { type Modes, modesOf, type SharedSpaces } from "../layout/Layout.ts"
import * as Ledger from "../record/Ledger.ts"
import type { Cursor } from "../record/Records.ts"

export interface Root {
  readonly files: SafeFiles.SafeFiles
  readonly ledger: Ledger.Ledger
}

const saidBy = (error: unknown): string =>
  Predicate.hasProperty(error, "code") && error.code === "EEXIST"
    ? "it is a file; give a folder"
    : error instanceof Error
      ? error.message
      : String(error)

/**
 * The real path of the root, and the permissions below it. A new root is 0700, or 0711 if others may read a shared
 * space.
 */
export const openFolder = (
  root: string,
  shared: SharedSpaces | undefined
): Effect.Effect<{ readonly root: string; readonly modes: Modes }, RootUnusable> =>
  Effect.tryPromise({
    try: async () => {
      await makeFolders(root, 0o700)
      const real = await realpath(root)
      // Another mode is the operator's choice.
      const mode = (await stat(real)).mode & 0o7777
      const wanted = modesOf(shared).passable ? 0o711 : 0o700
      if (mode !== wanted && (mode === 0o700 || mode === 0o711)) await chmod(real, wanted)
      return { root: real, modes: modesOf(shared, mode) }
    },
    catch: (error) => new RootUnusable({ root, details: saidBy(error) })
  })

/** Checks that this process may give files to the groups of the shared spaces. */
export const checkGroups = (root: string, shared: SharedSpaces = {}): Effect.Effect<void, RootUnusable> => {
  const groups = new Set([process.getegid?.(), ...(process.getgroups?.() ?? [])])
  const foreign = Object.entries(shared).find(
    ([, { group }]) => group !== undefined && processUid !== 0 && !groups.has(group)
  )
  if (foreign === undefined) return Effect.void
  const [space, { group }] = foreign
  const details = `the files of the shared space ${space} are for group ${group}, and user ${processUid} is not a member of it: add the user to the group, or remove the space from the configuration`
  return Effect.fail(new RootUnusable({ root, details }))
}

/** Whether the ledger's cursor is on an event of this log, or of a session removed from it. */
const isOfThisStore = (log: EventLog["Type"], { eventID, position, sessionID }: Cursor) =>
  Effect.gen(function* () {
    if (position === 0) return true
    const { events } = yield* log.readFeed({ after: position - 1, limit: 1, gaps: true })
    const [event] = events
    if (event?.position === position) return event.id === eventID
    // That event was not decoded, or no longer exists.
    if (eventID === null || sessionID === null) return true
    const pruned = yield* log.read({ sessionID: SessionID.make(sessionID), limit: 1 }).pipe(
      Effect.as(false),
      Effect.catchTag("SessionNotFound", () => Effect.succeed(false)),
      Effect.catchTag("CursorExpired", () => Effect.succeed(true))
    )
    if (pruned) return true
    for (let after = 0; ;) {
      const removals = yield* log.removals({ after })
      const last = removals.at(-1)
      if (last === undefined) return false
      if (removals.some((removal) => removal.sessionID === sessionID && removal.position >= position)) return true
      after = last.number
    }
  }).pipe(Effect.catchTag("CursorAhead", () => Effect.succeed(false)))

/** Takes the root until the scope closes; fails immediately if another process has it. */
export const open = Effect.fn("Root.open")(function* (
  options: SafeFiles.SafeFilesOptions,
  modes: Modes,
  log: EventLog["Type"]
): Effect.fn.Return<Root, RootBusy | RootOfAnotherStore | RootUnusable, Scope.Scope> {
  const { root } = options
  const files = SafeFiles.make(options)
  const ledger = yield* Ledger.make(files, modes)
  const ours = yield* Effect.flatMap(ledger.cursor, (cursor) => isOfThisStore(log, cursor)).pipe(
    Effect.mapError((error) => new RootUnusable({ root, details: error.message }))
  )
  return ours ? { files, ledger } : yield* new RootOfAnotherStore({ root })
})
