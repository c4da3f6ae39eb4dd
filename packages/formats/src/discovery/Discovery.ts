/**
 * Finds entry logs: recent ones, the newest, those of a working directory, all. Reads the first 4,096 bytes of a file and
 * nothing else, so that a list costs the same whatever the size of the logs. Spec: FM-92..FM-95 (OP-2..OP-6).
 */
import { join } from "node:path"
import { Effect, Option, Order, Schema } from "effect"
import { SessionStorage } from "../storage/SessionStorage.ts"
import type { StorageFailed } from "../storage/StorageError.ts"
import { foldersOf, logEnding, type Places } from "./LogName.ts"
import { type LogSummary, prefixBytes, summaryOf } from "./LogSummary.ts"

/** No log has an id or a name with this prefix. */
export class LogNotFound extends Schema.TaggedError<LogNotFound>("@daybook/formats/LogNotFound")("LogNotFound", {
  prefix: Schema.String
}) {
  override get message() {
    return `no session has an id or a file name that begins with ${JSON.stringify(this.prefix)}`
  }
}

/** Several logs have this prefix. Give more characters. */
export class LogAmbiguous extends Schema.TaggedError<LogAmbiguous>("@daybook/formats/LogAmbiguous")("LogAmbiguous", {
  prefix: Schema.String,
  /** The paths of the first ten. */
  candidates: Schema.Array(Schema.String),
  count: Schema.Int
}) {
  override get message() {
    const names = this.candidates.map((path) => `\n  ${path}`).join("")
    return `${this.count} sessions begin with ${JSON.stringify(this.prefix)}; give more characters:${names}`
  }
}

/** Where the logs of a tool are. */
export interface Root extends Places {
  /** The folder with one folder per working directory, such as `~/.xcsh/agent/sessions`. */
  readonly sessions: string
}

interface Found {
  readonly path: string
  readonly modifiedAt: number
  readonly sizeBytes: number
}

/** The newest first; logs of the same time by name, so that the order is always the same. */
const newest: Order.Order<Found> = Order.combine(
  Order.reverse(Order.mapInput(Order.number, ({ modifiedAt }: Found) => modifiedAt)),
  Order.reverse(Order.mapInput(Order.string, ({ path }: Found) => path))
)

/** The logs of a folder, without reading them. */
const found = (folder: string): Effect.Effect<ReadonlyArray<Found>, StorageFailed, SessionStorage> =>
  Effect.gen(function* () {
    const storage = yield* SessionStorage
    const names = (yield* storage.listFiles(folder)).filter((name) => name.endsWith(logEnding))
    const stats = yield* Effect.forEach(names, (name) => {
      const path = join(folder, name)
      return storage.stat(path).pipe(
        Effect.map((stat): ReadonlyArray<Found> => [{ path, ...stat }]),
        // Removed since the folder was listed.
        Effect.catchTag("FileMissing", () => Effect.succeed<ReadonlyArray<Found>>([]))
      )
    })
    return stats.flat()
  })

const summarized = (file: Found): Effect.Effect<Option.Option<LogSummary>, never, SessionStorage> =>
  Effect.flatMap(SessionStorage, (storage) => storage.readTextPrefix(file.path, prefixBytes)).pipe(
    Effect.map((prefix) => Option.fromNullable(summaryOf(file.path, prefix, file))),
    Effect.catchAll((error) =>
      error._tag === "FileMissing" ? Effect.succeedNone : Effect.as(Effect.logWarning(error.message), Option.none())
    )
  )

/** The first `limit` logs among the files, which are tried in order. */
const first = Effect.fnUntraced(function* (files: ReadonlyArray<Found>, limit: number) {
  const logs: Array<LogSummary> = []
  for (const file of files) {
    if (logs.length >= limit) break
    const log = yield* summarized(file)
    if (Option.isSome(log)) logs.push(log.value)
  }
  return logs
})

/** The logs of a folder that changed last. Reads as many files as it returns, and those that are not logs. */
export const recent = Effect.fn("Discovery.recent")(function* (folder: string, limit: number) {
  return yield* first((yield* found(folder)).toSorted(newest), limit)
})

/** The log of a folder that changed last. */
export const mostRecent = (folder: string) => Effect.map(recent(folder, 1), (logs) => Option.fromNullable(logs[0]))

const foldersIn = (root: Root) => Effect.flatMap(SessionStorage, (storage) => storage.listDirs(root.sessions))

/** All logs, the newest first. */
export const listAll = Effect.fn("Discovery.listAll")(function* (root: Root) {
  const folders = yield* foldersIn(root)
  const files = yield* Effect.forEach(folders, (folder) => found(join(root.sessions, folder)))
  return yield* first(files.flat().toSorted(newest), Infinity)
})

/** The logs of a working directory, the newest first. Their headers decide, not the names of folders. */
export const list = Effect.fn("Discovery.list")(function* (root: Root, cwd: string) {
  const folders = foldersOf(cwd, root).map((folder) => join(root.sessions, folder))
  const files = (yield* Effect.forEach(folders, found)).flat().toSorted(newest)
  return (yield* first(files, Infinity)).filter((log) => log.cwd === undefined || log.cwd === cwd)
})

const matches = (prefix: string) => {
  const wanted = prefix.toLowerCase()
  return ({ id, path }: { readonly id: string; readonly path: string }): boolean =>
    id.toLowerCase().startsWith(wanted) ||
    path
      .slice(path.lastIndexOf("/") + 1)
      .toLowerCase()
      .startsWith(wanted)
}

/**
 * The log whose id or file name begins with the text, in any case. Logs of the working directory come first: others
 * are looked at only if none of them matches. Several matches are an error that names them.
 */
export const resolve = Effect.fn("Discovery.resolve")(function* (root: Root, cwd: string, prefix: string) {
  if (prefix === "") return yield* new LogNotFound({ prefix })
  const isWanted = matches(prefix)
  const local = (yield* list(root, cwd)).filter(isWanted)
  const logs = local.length > 0 ? local : (yield* listAll(root)).filter(isWanted)
  const [only] = logs
  if (only === undefined) return yield* new LogNotFound({ prefix })
  // A whole id wins over longer ones.
  const exact = logs.find(({ id }) => id.toLowerCase() === prefix.toLowerCase())
  if (exact !== undefined || logs.length === 1) return exact ?? only
  const candidates = logs.slice(0, 10).map(({ path }) => path)
  return yield* new LogAmbiguous({ prefix, candidates, count: logs.length })
})
