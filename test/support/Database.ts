/**
 * Opens databases for tests: in memory, in a temporary file, or in a named file that several layers share. Each layer provides
 * the event log and everything below it.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import * as Identifiers from "../../packages/log/src/domain/Identifiers.ts"
import * as SqlEventLog from "../../packages/log/src/log/SqlEventLog.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"

/** The event log on the given file, with its database and identifiers. Two layers are two connections. */
export const logAt = (filename: string, options: SqlEventLog.Options = {}) =>
  SqlEventLog.layer(options).pipe(Layer.provideMerge(Layer.mergeAll(Database.layer({ filename }), Identifiers.layer)))

/** The event log in memory: one connection, nothing on disk. */
export const memoryLog = logAt(":memory:")

/** A new, empty log with its database: contracts of maintenance and retention run on each kind. */
export type LogLayer = Layer.Layer<Layer.Layer.Success<typeof memoryLog>, unknown>

/** A temporary folder that is removed with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-test-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** The path of a database that does not exist yet, in a temporary folder that is removed with the scope. */
export const temporaryDatabase = Effect.map(temporaryFolder, (folder) => join(folder, "daybook.db"))

/** The event log on a new file in a temporary folder; both are removed with the layer. */
export const fileLog = Layer.unwrapScoped(Effect.map(temporaryDatabase, (filename) => logAt(filename)))

/** The stores on which every law of the log is tested. */
export const stores = { memory: memoryLog, file: fileLog }
