/**
 * One session of an entry log, open for writing: a tree of entries and a leaf. An append makes one entry below the
 * leaf, which becomes the new leaf. Writes are serialized; an append that fails changes neither memory nor file.
 * Sessions are created and opened in `SessionLogs.ts`. Spec: FM-87..FM-89, FM-98, FM-127, FM-129 in specs/formats.md
 * (TR-1..TR-8, PE-2..PE-6, OP-9).
 */
import { randomBytes } from "node:crypto"
import { Clock, Effect, Option, Schema } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import { BlobStore } from "../blob/BlobStore.ts"
import * as BlobUse from "../blob/BlobUse.ts"
import type { Cut } from "../blob/Truncation.ts"
import { oneLine } from "../discovery/Discovery.ts"
import { type Body, type Entry, entryOf, type Header, isEntryRecord } from "../entry/Entry.ts"
import * as SessionContext from "../entry/SessionContext.ts"
import { recordLine, type RecordRefused } from "../lines/JsonLines.ts"
import { type SessionLocked, SessionStorage, StorageFailed } from "../storage/SessionStorage.ts"
import { kept, load, type LogFile } from "./LogFile.ts"

// What a caller of an entry log can do wrong; nothing was changed.

/** No entry of the log has this id. */
export class EntryNotFound extends Schema.TaggedError<EntryNotFound>("@daybook/formats/EntryNotFound")(
  "EntryNotFound",
  { id: Schema.String }
) {
  override get message() {
    return `the session has no entry ${JSON.stringify(this.id)}`
  }
}

/** A title needs a character that can be seen. */
export class TitleEmpty extends Schema.TaggedError<TitleEmpty>("@daybook/formats/TitleEmpty")("TitleEmpty", {}) {
  override get message() {
    return "a title needs at least one visible character"
  }
}

/** The place that a log would get is taken. */
export class LogExists extends Schema.TaggedError<LogExists>("@daybook/formats/LogExists")("LogExists", {
  path: Schema.String
}) {
  override get message() {
    return `${this.path} exists already; it was not replaced`
  }
}

// Generates ids of sessions and entries in the forms of entry logs.

const epoch = 1_420_070_400_000n
const sequenceBits = 22n

/** 16 hexadecimal digits that grow with time: milliseconds since 2015, then random bits. */
export const sessionID: Effect.Effect<string> = Effect.map(Clock.currentTimeMillis, (now) => {
  const time = BigInt(Math.max(0, now)) - epoch
  const random = BigInt(`0x${randomBytes(4).toString("hex")}`) & ((1n << sequenceBits) - 1n)
  return (((time < 0n ? 0n : time) << sequenceBits) | random).toString(16).padStart(16, "0")
})

/** Eight hexadecimal digits that no entry of the log has. */
export const entryID = (isTaken: (id: string) => boolean): Effect.Effect<string> =>
  Effect.sync(() => {
    for (;;) {
      const id = randomBytes(4).toString("hex")
      if (!isTaken(id)) return id
    }
  })

/** Who chose a title. A person's title stays until a person changes it. */
export const TitleSource = Schema.Literal("user", "auto")
export type TitleSource = typeof TitleSource.Type

/** `RecordRefused`: the record could not be read back. */
export type WriteError = RecordRefused | SessionLocked | StorageFailed

export interface SessionManager {
  /** Where the log is, or will be after the first answer; undefined in memory. */
  readonly path: () => string | undefined
  readonly header: () => Header
  /** The records before the header and behind it, in file order. */
  readonly records: () => { readonly before: ReadonlyArray<JsonRecord>; readonly after: ReadonlyArray<JsonRecord> }
  /** All entries in the order of their appends; pictures are references. */
  readonly entries: () => ReadonlyArray<Entry>
  readonly entry: (id: string) => Entry | undefined
  readonly tree: () => ReadonlyArray<SessionContext.Node>
  readonly label: (id: string) => string | undefined
  /** The entry below which the next one is appended; null: it begins a tree. */
  readonly leaf: () => string | null
  /** The strings that the file holds only in part. */
  readonly cuts: () => ReadonlyArray<Cut>
  /** Whether the log is in its file. */
  readonly isWritten: () => boolean

  /** Appends one entry of any type below the leaf; the entry becomes the leaf. */
  readonly append: (body: Body) => Effect.Effect<Entry, WriteError>
  /** Moves the leaf; existing entries stay. */
  readonly branch: (id: string) => Effect.Effect<void, EntryNotFound>
  /** The next entry begins a tree. */
  readonly resetLeaf: Effect.Effect<void>
  /** Moves the leaf to the target (null: before all entries) and appends a summary of the branch that is left. */
  readonly branchWithSummary: (
    target: string | null,
    summary: string,
    details?: unknown
  ) => Effect.Effect<Entry, EntryNotFound | WriteError>
  /** Names an entry; without a label, removes its name. */
  readonly setLabel: (target: string, label?: string) => Effect.Effect<Entry, EntryNotFound | WriteError>
  /** Titles the session. False if a person's title stands against an automatic one. */
  readonly setTitle: (title: string, source?: TitleSource) => Effect.Effect<boolean, TitleEmpty | WriteError>
  /** What the model is shown at the leaf, or at another entry, with its pictures. */
  readonly context: (
    leaf?: string | null,
    options?: SessionContext.Options
  ) => Effect.Effect<SessionContext.SessionContext, StorageFailed>
  /** Makes the entries durable. */
  readonly flush: Effect.Effect<void, StorageFailed>
  /** Runs a change of the header or the place; for `SessionLogs.ts`. */
  readonly change: <A, E, R>(
    use: (
      file: LogFile | undefined,
      changeHeader: (change: (header: Header) => Header) => Effect.Effect<void, WriteError>
    ) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
}

/** What a session starts with. */
export interface Initial {
  readonly before: ReadonlyArray<JsonRecord>
  readonly header: Header
  readonly records: ReadonlyArray<JsonRecord>
}

const isAnswer = (record: JsonRecord): boolean => {
  const { message, type } = record
  return (
    type === "message" &&
    typeof message === "object" &&
    message !== null &&
    "role" in message &&
    message.role === "assistant"
  )
}

/** Whether records are written: some model answered. */
export const isWorthKeeping = (records: ReadonlyArray<JsonRecord>): boolean => records.some(isAnswer)

const changedFile = (path: string, details: string) =>
  Effect.fail(new StorageFailed({ operation: "rewrite", path, code: "ECHANGED", details }))

/** A session over its records; without a file, in memory. */
export const make = Effect.fnUntraced(function* (
  initial: Initial,
  file: LogFile | undefined
): Effect.fn.Return<SessionManager, never, BlobStore | SessionStorage> {
  const [blobs, storage] = [yield* BlobStore, yield* SessionStorage]
  const mutex = yield* Effect.makeSemaphore(1)
  let { before, header } = initial
  let records = [...initial.records]
  const treeOf = (of: ReadonlyArray<JsonRecord>) => SessionContext.make(of.filter(isEntryRecord).map(entryOf))
  let tree = treeOf(records)
  let leaf: string | null = tree.last()?.id ?? null

  const serially = <A, E, R>(use: Effect.Effect<A, E, R>) => mutex.withPermits(1)(Effect.uninterruptible(use))
  /** Writes a record, or all of them with it at the first answer; then memory follows. */
  const commit = Effect.fnUntraced(function* (record: JsonRecord) {
    if (file?.isWritten() === true) {
      const { line, value } = yield* file.stored(record)
      yield* file.append(line)
      records.push(value)
      return tree.add(entryOf(value))
    }
    yield* kept(record)
    if (file !== undefined && (isAnswer(record) || isWorthKeeping(records))) {
      const stored = yield* Effect.forEach([...records, record], file.stored)
      const all = stored.map(({ value }) => value)
      yield* file.rewrite([...before, header, ...all])
      records = all
      tree = treeOf(all)
      return
    }
    records.push(record)
    tree.add(entryOf(record))
  })

  const appendBelow = Effect.fnUntraced(function* (parentId: string | null, { type, ...fields }: Body) {
    const id = yield* entryID((taken) => tree.get(taken) !== undefined)
    const timestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
    yield* commit({ type, id, parentId, timestamp, ...fields })
    leaf = id
    return tree.get(id) ?? (yield* Effect.dieMessage("an appended entry is missing"))
  })

  const found = (id: string): Effect.Effect<Entry, EntryNotFound> =>
    Effect.suspend(() => {
      const entry = tree.get(id)
      return entry === undefined ? new EntryNotFound({ id }) : Effect.succeed(entry)
    })

  /** The log as its file has it now: another tool may have changed it. */
  const current = (path: string) =>
    load(path).pipe(
      Effect.provideService(SessionStorage, storage),
      Effect.catchTags({
        FileMissing: () => Effect.succeed(undefined),
        NotASession: ({ message }) => changedFile(path, message),
        SessionVersionTooNew: ({ message }) => changedFile(path, message)
      })
    )

  /** Changes the header. The rest stays as the file has it, also what another tool appended. */
  const changeHeader = (change: (header: Header) => Header) =>
    Effect.gen(function* () {
      const log = file?.isWritten() === true ? yield* current(file.path()) : undefined
      const next = change(log?.header ?? header)
      // A slot holds a title too: the header's takes its place.
      const first = next["title"] === (log?.header ?? header)["title"] ? (log?.before ?? before) : []
      yield* recordLine(next)
      if (file?.isWritten() === true) {
        // A line that is not complete stays.
        const isDamaged = log?.problems.some(({ kind }) => kind !== "torn-line") === true
        const backup = isDamaged ? "damaged" : undefined
        const all = log?.records ?? records
        yield* file.rewrite([...first, next, ...all], log === undefined ? {} : { backup, tail: log.end })
        records = [...all]
        tree = treeOf(records)
        if (leaf !== null && tree.get(leaf) === undefined) leaf = tree.last()?.id ?? null
      }
      header = next
      before = first
    })

  return {
    path: () => file?.path(),
    header: () => header,
    records: () => ({ before, after: records }),
    entries: () => tree.entries,
    entry: (id) => tree.get(id),
    tree: () => tree.roots(),
    label: (id) => tree.label(id),
    leaf: () => leaf,
    cuts: () => file?.cuts() ?? [],
    isWritten: () => file?.isWritten() ?? false,
    append: (body) => serially(Effect.suspend(() => appendBelow(leaf, body))),
    branch: (id) => serially(Effect.map(found(id), (entry) => void (leaf = entry.id))),
    resetLeaf: serially(Effect.sync(() => void (leaf = null))),
    branchWithSummary: (target, summary, details) =>
      serially(
        Effect.gen(function* () {
          if (target !== null) yield* found(target)
          const given = details === undefined ? {} : { details }
          return yield* appendBelow(target, { type: "branch_summary", fromId: target ?? "root", summary, ...given })
        })
      ),
    setLabel: (target, label) =>
      serially(
        Effect.gen(function* () {
          yield* found(target)
          const named = Option.flatMap(Option.fromNullable(label), oneLine)
          const given = Option.match(named, { onNone: () => ({}), onSome: (label) => ({ label }) })
          return yield* appendBelow(leaf, { type: "label", targetId: target, ...given })
        })
      ),
    setTitle: (title, source = "user") =>
      serially(
        Effect.gen(function* () {
          const line = oneLine(title)
          if (Option.isNone(line)) return yield* new TitleEmpty()
          if (source === "auto" && header["titleSource"] === "user") return false
          yield* changeHeader((header) => ({ ...header, title: line.value, titleSource: source }))
          return true
        })
      ),
    context: (at = leaf, options) =>
      Effect.suspend(() => {
        const context = SessionContext.at(tree, at, options)
        return Effect.map(
          Effect.provideService(BlobUse.moveIn(context.messages), BlobStore, blobs),
          ({ entry: messages }) => ({ ...context, messages })
        )
      }),
    flush: serially(file?.flush ?? Effect.void),
    change: (use) => serially(use(file, changeHeader))
  }
})
