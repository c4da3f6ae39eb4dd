/**
 * Finds entry logs: recent ones, the newest, those of a working directory, all. Reads the first 4,096 bytes of a file and
 * nothing else, so that a list costs the same whatever the size of the logs. Spec: FM-92..FM-95 (OP-2..OP-6).
 */
import { join } from "node:path"
import { Array as Arr, Effect, Either, Option, Order, Schema } from "effect"
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

interface Changed {
  readonly path: string
  readonly modifiedAt: number
}

/** The newest first; logs of the same time by name, so that the order is always the same. */
const newest: Order.Order<Changed> = Order.combine(
  Order.reverse(Order.mapInput(Order.number, ({ modifiedAt }: Changed) => modifiedAt)),
  Order.reverse(Order.mapInput(Order.string, ({ path }: Changed) => path))
)

/** The paths of the files of a folder that may be logs. */
const pathsIn = (folder: string): Effect.Effect<ReadonlyArray<string>, StorageFailed, SessionStorage> =>
  Effect.map(
    Effect.flatMap(SessionStorage, (storage) => storage.listFiles(folder)),
    (names) => names.filter((name) => name.endsWith(logEnding)).map((name) => join(folder, name))
  )

/** So many files are read together; other work may run in between. */
const batch = 64

/** The logs among files, of which some may have been removed since their folder was listed. */
const logsAt = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const storage = yield* SessionStorage
  const logs: Array<LogSummary> = []
  for (const some of Arr.chunksOf(paths, batch)) {
    const starts = yield* storage.readStarts(some, prefixBytes)
    for (const [path, start] of Arr.zip(some, starts)) {
      const log = Either.isRight(start) ? summaryOf(path, start.right) : undefined
      if (log !== undefined) logs.push(log)
      else if (Either.isLeft(start) && start.left._tag !== "FileMissing") yield* Effect.logWarning(start.left.message)
    }
  }
  return logs
})

/** The logs of a folder that changed last. Reads as many files as it returns, and those that are not logs. */
export const recent = Effect.fn("Discovery.recent")(function* (folder: string, limit: number) {
  const storage = yield* SessionStorage
  const files = yield* Effect.forEach(yield* pathsIn(folder), (path) =>
    Effect.map(storage.stat(path), ({ modifiedAt }): Changed => ({ path, modifiedAt })).pipe(
      Effect.asSome,
      Effect.catchTag("FileMissing", () => Effect.succeedNone)
    )
  )
  const left = Arr.getSomes(files).toSorted(newest)
  const logs: Array<LogSummary> = []
  while (logs.length < limit && left.length > 0) {
    const next = left.splice(0, limit - logs.length)
    logs.push(...(yield* logsAt(next.map(({ path }) => path))))
  }
  return logs
})

/** The log of a folder that changed last. */
export const mostRecent = (folder: string) => Effect.map(recent(folder, 1), (logs) => Option.fromNullable(logs[0]))

/** All logs of the folders, the newest first. Each file is opened once, and its time is read from there. */
const allIn = Effect.fnUntraced(function* (folders: ReadonlyArray<string>) {
  return (yield* logsAt((yield* Effect.forEach(folders, pathsIn)).flat())).toSorted(newest)
})

/** All logs, the newest first. */
export const listAll = Effect.fn("Discovery.listAll")(function* (root: Root) {
  const storage = yield* SessionStorage
  return yield* allIn((yield* storage.listDirs(root.sessions)).map((folder) => join(root.sessions, folder)))
})

/** The logs of a working directory, the newest first. Their headers decide, not the names of folders. */
export const list = Effect.fn("Discovery.list")(function* (root: Root, cwd: string) {
  const logs = yield* allIn(foldersOf(cwd, root).map((folder) => join(root.sessions, folder)))
  return logs.filter((log) => log.cwd === undefined || log.cwd === cwd)
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
