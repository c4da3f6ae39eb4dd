/**
 * The exporter's record, `ledger.sqlite` in its folder under the root: the cursor, and what each file was when it was
 * written. Spec: FI-65..FI-68 in specs/files.md, specs/decisions/0008-ledger.md.
 */
import type * as SqlError from "@effect/sql/SqlError"
import { Effect, type Scope } from "effect"
import { immediately } from "@daybook/log/storage/Transaction"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import { LedgerFailed, type RootBusy, type RootUnusable } from "../layout/Errors.ts"
import { type Modes, modesOf } from "../layout/Layout.ts"
import * as LedgerFile from "./LedgerFile.ts"
import * as LedgerRows from "./LedgerRows.ts"
import type { Cursor, FileRecord, FileRecords, SessionRecord } from "./Records.ts"

export interface Ledger {
  readonly isHeld: Effect.Effect<boolean, LedgerFailed>
  readonly cursor: Effect.Effect<Cursor, LedgerFailed>
  readonly setCursor: (cursor: Cursor) => Effect.Effect<void, LedgerFailed>
  readonly session: (id: string) => Effect.Effect<SessionRecord | undefined, LedgerFailed>
  /** The last stored checkpoint of the session's fold, as JSON. */
  readonly checkpoint: (id: string) => Effect.Effect<string | undefined, LedgerFailed>
  /** The next records after an id, in id order. */
  readonly sessions: (after: string, limit: number) => Effect.Effect<ReadonlyArray<SessionRecord>, LedgerFailed>
  /** Sessions whose export failed, at most `limit`. */
  readonly behind: (limit: number) => Effect.Effect<ReadonlyArray<string>, LedgerFailed>
  readonly setBehind: (id: string) => Effect.Effect<void, LedgerFailed>
  readonly entries: (index: string) => Effect.Effect<ReadonlyArray<string>, LedgerFailed>
  readonly indexes: Effect.Effect<ReadonlyArray<string>, LedgerFailed>
  readonly folders: (index: string) => Effect.Effect<ReadonlySet<string>, LedgerFailed>
  readonly files: (folder: string) => Effect.Effect<FileRecords, LedgerFailed>
  readonly keep: (
    folder: string,
    files: ReadonlyMap<string, FileRecord | undefined>,
    session?: SessionRecord,
    checkpoint?: string
  ) => Effect.Effect<void, LedgerFailed>
  /** Deletes the session's record. The records of its files are deleted one by one, with the files. */
  readonly forget: (id: string) => Effect.Effect<void, LedgerFailed>
}

/** Opens the record and takes its lock until the scope closes. */
export const make = Effect.fn("Ledger.make")(function* (
  files: SafeFiles,
  modes: Modes = modesOf()
): Effect.fn.Return<Ledger, RootBusy | RootUnusable, Scope.Scope> {
  const { filename, isHeld, sql } = yield* LedgerFile.open(files, modes)
  const run = <A>(effect: Effect.Effect<A, SqlError.SqlError>): Effect.Effect<A, LedgerFailed> =>
    effect.pipe(
      Effect.mapError(({ cause }) => cause),
      // The driver throws on some disk faults.
      Effect.catchAllDefect(Effect.fail),
      Effect.mapError((cause) => new LedgerFailed({ path: filename, cause })),
      Effect.uninterruptible
    )
  return {
    isHeld,
    cursor: run(LedgerRows.cursor(sql)),
    setCursor: (cursor) => run(LedgerRows.setCursor(sql, cursor)),
    session: (id) => run(LedgerRows.session(sql, id)),
    checkpoint: (id) => run(LedgerRows.checkpoint(sql, id)),
    sessions: (after, limit) => run(LedgerRows.sessions(sql, after, limit)),
    behind: (limit) => run(LedgerRows.behind(sql, limit)),
    setBehind: (id) => run(LedgerRows.setBehind(sql, id)),
    entries: (index) => run(LedgerRows.entries(sql, index)),
    indexes: run(LedgerRows.indexes(sql)),
    folders: (index) => run(LedgerRows.folders(sql, index)),
    files: (folder) => run(LedgerRows.files(sql, folder)),
    keep: (folder, records, session, checkpoint) =>
      records.size === 0 && session === undefined
        ? Effect.void
        : run(
            immediately(sql)(
              Effect.zipRight(
                LedgerRows.putFiles(sql, folder, records),
                session === undefined ? Effect.void : LedgerRows.putSession(sql, session, checkpoint)
              )
            )
          ),
    forget: (id) =>
      Effect.asVoid(run(Effect.zipRight(immediately(sql)(LedgerRows.forget(sql, id)), LedgerFile.erase(sql, filename))))
  }
})
