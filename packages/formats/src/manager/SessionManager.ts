/**
 * One session of an entry log, open for writing: a tree of entries and a leaf. An append makes one entry below the leaf and
 * moves it there. Writes are serialized; an append that fails changes neither memory nor file. Sessions are created and
 * opened in `SessionLogs.ts`. Spec: FM-87..FM-89, FM-98, FM-129 (TR-1..TR-8, PE-2..PE-6, OP-9).
 */
import { Clock, Effect, Option, Schema } from "effect"
import type { JsonRecord } from "@daybook/log/domain/Json"
import { BlobStore } from "../blob/BlobStore.ts"
import * as BlobUse from "../blob/BlobUse.ts"
import type { Cut } from "../blob/Truncation.ts"
import { oneLine } from "../discovery/LogName.ts"
import { type Body, type Entry, entryOf, isEntryRecord } from "../entry/Entry.ts"
import * as EntryTree from "../entry/EntryTree.ts"
import type { Header } from "../entry/Header.ts"
import * as SessionContext from "../entry/SessionContext.ts"
import type { SessionLocked, StorageFailed } from "../storage/StorageError.ts"
import { entryID } from "./EntryID.ts"
import type { LogFile } from "./LogFile.ts"
import { EntryNotFound, TitleEmpty } from "./ManagerError.ts"

/** Who chose a title. A person's title stays until a person changes it. */
export const TitleSource = Schema.Literal("user", "auto")
export type TitleSource = typeof TitleSource.Type

type WriteError = SessionLocked | StorageFailed

export interface SessionManager {
  /** Where the log is, or will be after the first answer; undefined in memory. */
  readonly path: () => string | undefined
  readonly header: () => Header
  /** The records before the header and behind it, in file order. */
  readonly records: () => { readonly before: ReadonlyArray<JsonRecord>; readonly after: ReadonlyArray<JsonRecord> }
  /** All entries in the order of their appends; pictures are references. */
  readonly entries: () => ReadonlyArray<Entry>
  readonly entry: (id: string) => Entry | undefined
  readonly tree: () => ReadonlyArray<EntryTree.Node>
  readonly label: (id: string) => string | undefined
  /** The entry below which the next one is appended; null: it begins a tree. */
  readonly leaf: () => string | null
  /** The strings that the file holds only in part. */
  readonly cuts: () => ReadonlyArray<Cut>
  /** Whether the log is in its file. */
  readonly isWritten: () => boolean

  /** Appends one entry of any type below the leaf, which it becomes. */
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
      replaceHeader: (header: Header) => Effect.Effect<void, WriteError>
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

/** A session over its records; without a file, in memory. */
export const make = Effect.fnUntraced(function* (
  initial: Initial,
  file: LogFile | undefined
): Effect.fn.Return<SessionManager, never, BlobStore> {
  const blobs = yield* BlobStore
  const mutex = yield* Effect.makeSemaphore(1)
  let { before, header } = initial
  let records = [...initial.records]
  const treeOf = (of: ReadonlyArray<JsonRecord>) => EntryTree.make(of.filter(isEntryRecord).map(entryOf))
  let tree = treeOf(records)
  let leaf: string | null = tree.last()?.id ?? null

  const serially = <A, E, R>(use: Effect.Effect<A, E, R>) => mutex.withPermits(1)(Effect.uninterruptible(use))
  const whole = (of: ReadonlyArray<JsonRecord>, as: Header = header, first = before) => [...first, as, ...of]

  /** Writes a record, or all of them with it at the first answer; then memory follows. */
  const commit = Effect.fnUntraced(function* (record: JsonRecord) {
    if (file?.isWritten() === true) {
      const stored = yield* file.stored(record)
      yield* file.append(stored)
      records.push(stored)
      return tree.add(entryOf(stored))
    }
    if (file !== undefined && (isAnswer(record) || isWorthKeeping(records))) {
      const all = yield* Effect.forEach([...records, record], file.stored)
      yield* file.rewrite(whole(all))
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

  const replaceHeader = (next: Header) =>
    Effect.gen(function* () {
      // A slot holds a title too: the header's takes its place.
      const first = next["title"] === header["title"] ? before : []
      if (file?.isWritten() === true) yield* file.rewrite(whole(records, next, first))
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
          yield* replaceHeader({ ...header, title: line.value, titleSource: source })
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
    change: (use) => serially(use(file, replaceHeader))
  }
})
