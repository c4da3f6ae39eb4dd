/**
 * The exporter's record, `ledger.sqlite` in its folder under the root: the cursor, and what each file was when it was
 * written. Spec: FI-65..FI-68 in specs/files.md, specs/decisions/0008-ledger.md.
 */
import type * as SqlError from "@effect/sql/SqlError"
import { Effect } from "effect"
import { immediately } from "@daybook/log/storage/Transaction"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import { LedgerFailed } from "../layout/Errors.ts"
import { type Modes, modesOf } from "../layout/Layout.ts"
import * as LedgerFile from "./LedgerFile.ts"
import * as LedgerRows from "./LedgerRows.ts"
import type { Cursor, FileRecord, SessionRecord } from "./Records.ts"

/** Opens the record and takes its lock until the scope closes. */
export const make = Effect.fn("Ledger.make")(function* (files: SafeFiles, modes: Modes = modesOf()) {
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
    setCursor: (cursor: Cursor) => run(LedgerRows.setCursor(sql, cursor)),
    session: (id: string) => run(LedgerRows.session(sql, id)),
    /** The last stored checkpoint of the session's fold, as JSON. */
    checkpoint: (id: string) => run(LedgerRows.checkpoint(sql, id)),
    /** The next records after an id, in id order. */
    sessions: (after: string, limit: number) => run(LedgerRows.sessions(sql, after, limit)),
    /** Sessions whose export failed, at most `limit`. */
    behind: (limit: number) => run(LedgerRows.behind(sql, limit)),
    setBehind: (id: string) => run(LedgerRows.setBehind(sql, id)),
    /** The entries of this index, as JSON. */
    entries: (index: string) => run(LedgerRows.entries(sql, index)),
    indexes: run(LedgerRows.indexes(sql)),
    folders: (index: string) => run(LedgerRows.folders(sql, index)),
    files: (folder: string) => run(LedgerRows.files(sql, folder)),
    keep: (
      folder: string,
      records: ReadonlyMap<string, FileRecord | undefined>,
      session?: SessionRecord,
      checkpoint?: string
    ) =>
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
    /** Deletes the session's record. The records of its files are deleted one by one, with the files. */
    forget: (id: string) =>
      Effect.asVoid(run(Effect.zipRight(immediately(sql)(LedgerRows.forget(sql, id)), LedgerFile.erase(sql, filename))))
  }
})

export type Ledger = Effect.Effect.Success<ReturnType<typeof make>>
