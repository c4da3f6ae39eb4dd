/**
 * Finds entry logs: recent ones, the newest, those of a working directory, all. Reads the first 4,096 bytes of a file and
 * nothing else, so that a list costs the same whatever the size of the logs. Spec: FM-90..FM-95 in specs/formats.md
 * (OP-2..OP-6, OP-9, OP-11, D-4).
 */
import { join } from "node:path"
import { Array as Arr, Effect, Either, Option, Order, Predicate, Schema, String as Str } from "effect"
import { isHeader, isTitleSlot, readHeader, timeOf } from "../entry/Entry.ts"
import { type FileStart, SessionStorage, type StorageFailed } from "../storage/SessionStorage.ts"

// Names of entry logs and their folders: only a log's header says where a session works, because `/a/b-c` and `/a-b/c`
// share one folder.

const separators = /[/\\:]/g

/** The folder of a working directory, as seed 002 writes it. */
export const seedFolder = (cwd: string): string => `--${cwd.replace(/^[/\\]/, "").replace(separators, "-")}--`

/** The path below a folder: empty for the folder itself, undefined if it is not below. */
const below = (folder: string, path: string): string | undefined => {
  const base = folder.replace(/[/\\]+$/, "")
  if (base === "") return undefined
  if (path === base) return ""
  return path.startsWith(`${base}/`) || path.startsWith(`${base}\\`) ? path.slice(base.length + 1) : undefined
}

/** Where this user's files are, for the forms of folder names that other tools write. */
export interface Places {
  readonly home: string
  readonly temp: string
}

/** Every folder that may hold logs of a working directory; new logs go to the first. */
export const foldersOf = (cwd: string, { home, temp }: Places): ReadonlyArray<string> => {
  const [inHome, inTemp] = [below(home, cwd), below(temp, cwd)]
  return [
    seedFolder(cwd),
    ...(inHome === undefined ? [] : [`-${inHome.replace(separators, "-")}`]),
    ...(inTemp === undefined ? [] : [inTemp === "" ? "-tmp" : `-tmp-${inTemp.replace(separators, "-")}`])
  ]
}

export const logEnding = ".jsonl"

/** The name of a log: its time, so that names sort by time, and its id. */
export const logName = (time: number, id: string): string =>
  `${new Date(time).toISOString().replace(/[:.]/g, "-")}_${id}${logEnding}`

/** The id in the name of a log; undefined if the name has another form. */
export const idInName = (name: string): string | undefined => /_([^_]+)\.jsonl$/.exec(name)?.[1]

/** One line without control characters and repeated spaces; none if nothing is left. */
export const oneLine = (text: string): Option.Option<string> =>
  // oxlint-disable-next-line no-control-regex
  Option.liftPredicate(text.replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, " ").trim(), Str.isNonEmpty)

/** Characters of a name in a list. */
const nameLength = 40

/** A name for a list: one line, cut with an ellipsis, never within a character. */
export const shortName = (text: string): string => {
  if (text.length <= nameLength) return text
  // A character has at most two units.
  const characters = Array.from(text.slice(0, 2 * nameLength + 2))
  return characters.length <= nameLength ? text : `${characters.slice(0, nameLength - 1).join("")}…`
}

// What the first bytes of an entry log say about a session, for lists: the header, the title, the first prompt.

/** Bytes that are read of a log for a list. */
export const prefixBytes = 4096

export const LogSummary = Schema.Struct({
  path: Schema.String,
  id: Schema.String,
  name: Schema.String,
  cwd: Schema.optionalWith(Schema.String, { exact: true }),
  parent: Schema.optionalWith(Schema.String, { exact: true }),
  /** Milliseconds since the epoch. */
  createdAt: Schema.Finite,
  modifiedAt: Schema.Finite,
  sizeBytes: Schema.NonNegativeInt,
  /** The prefix shows a message. */
  hasMessages: Schema.Boolean
})
export type LogSummary = typeof LogSummary.Type

type JsonRecord = Readonly<Record<string, unknown>>

const parsed = (line: string): ReadonlyArray<JsonRecord> => {
  if (!line.startsWith("{")) return []
  try {
    const value: unknown = JSON.parse(line)
    return Predicate.isReadonlyRecord(value) ? [value] : []
  } catch {
    return []
  }
}

const contentText = (content: unknown): string | undefined => {
  if (Predicate.isString(content)) return content
  if (!Array.isArray(content)) return undefined
  const block: unknown = content.find((part) => Predicate.isRecord(part) && part["type"] === "text")
  return Predicate.isRecord(block) && Predicate.isString(block["text"]) ? block["text"] : undefined
}

/** The text of the first prompt in a line that the prefix cuts. */
const cutPrompt = (line: string): string | undefined => {
  if (!/^\{"type":"message",.*?"role":"user"/.test(line)) return undefined
  const text = /"(?:text|content)":"((?:[^"\\]|\\.)*)/.exec(line)?.[1]
  return text === undefined ? undefined : parsedText(text)
}

const parsedText = (escaped: string): string | undefined => {
  try {
    const text: unknown = JSON.parse(`"${escaped.replace(/\\u[0-9a-fA-F]{0,3}$/, "")}"`)
    return Predicate.isString(text) ? text : undefined
  } catch {
    return undefined
  }
}

const roleOf = ({ message, type }: JsonRecord): unknown =>
  type === "message" && Predicate.isReadonlyRecord(message) ? message["role"] : undefined

function* linesWith(text: string, word: string): Generator<string> {
  for (let at = text.indexOf(word); at >= 0;) {
    const end = text.indexOf("\n", at)
    yield text.slice(text.lastIndexOf("\n", at) + 1, end < 0 ? undefined : end).trim()
    at = end < 0 ? end : text.indexOf(word, end)
  }
}

/** The text of the first prompt. Only lines that may hold it are parsed. */
const promptOf = (entries: string, cut: string): string | undefined => {
  for (const line of linesWith(entries, '"user"')) {
    const [record] = parsed(line)
    if (record === undefined || roleOf(record) !== "user") continue
    const { message } = record
    return Predicate.isReadonlyRecord(message) ? contentText(message["content"]) : undefined
  }
  return cutPrompt(cut)
}

/** The latest title that an entry gives. */
const titleIn = (entries: string): string | undefined => {
  // A short word is found fastest; the type says whether it is one.
  const titles = [...linesWith(entries, '_info"')]
    .flatMap(parsed)
    .flatMap(({ name, type }) =>
      type === "session_info" && Predicate.isString(name) && name.trim() !== "" ? [name] : []
    )
  return titles.at(-1)
}

const isMessage = (text: string): boolean => text.includes('"type":"message"')

/** The start of a text as one line, for a name. */
const lineOf = (text: string) => oneLine(text.slice(0, 400))

/** The first line that is not blank, and what follows it. */
const firstLine = (text: string): readonly [line: string, rest: string] => {
  const written = text.trimStart()
  const end = written.indexOf("\n")
  return end < 0 ? [written.trim(), ""] : [written.slice(0, end).trim(), written.slice(end + 1)]
}

/** Reads the start of a file; undefined if it does not begin an entry log. */
export const summaryOf = (path: string, { modifiedAt, sizeBytes, text }: FileStart): LogSummary | undefined => {
  const whole = sizeBytes > prefixBytes ? text.lastIndexOf("\n") + 1 : text.length
  // A byte order mark is white space.
  const [line, others] = firstLine(text.slice(0, whole))
  const [first] = parsed(line)
  const slot = first !== undefined && isTitleSlot(first) ? first : undefined
  const [second, afterSlot] = slot === undefined ? ["", ""] : firstLine(others)
  const header = slot === undefined ? first : parsed(second)[0]
  if (header === undefined || !isHeader(header)) return undefined
  const [entries, cut] = [slot === undefined ? others : afterSlot, text.slice(whole)]
  const { cwd, id, parent, title } = readHeader(header, slot)
  const named = (text: string | undefined) => Option.flatMap(Option.fromNullable(text), lineOf)
  const name = named(titleIn(entries)).pipe(
    Option.orElse(() => named(title)),
    Option.orElse(() => named(promptOf(entries, cut))),
    Option.getOrElse(() => id)
  )
  return {
    path,
    id,
    name: shortName(name),
    ...(cwd === undefined ? {} : { cwd }),
    ...(parent === undefined ? {} : { parent }),
    createdAt: timeOf(header["timestamp"]) ?? modifiedAt,
    modifiedAt,
    sizeBytes,
    hasMessages: isMessage(entries) || isMessage(cut)
  }
}

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

type Changed = { readonly path: string; readonly modifiedAt: number }

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

/** The logs of a folder that changed last. Reads as many files as it returns, besides files that are not logs. */
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
