/**
 * Keeps threads as folders: creates and lists them, and opens one for writing. `Thread.ts` appends to an open thread.
 * Spec: FM-100..FM-105 (seed 003, 7.1..7.3, 7.6; TH-1..TH-5, TH-15).
 */
import { join } from "node:path"
import { Clock, Context, Effect, Either, Layer, Order, RcMap, Schema, type Scope } from "effect"
import { Identifiers } from "@daybook/log/domain/Identifiers"
import { describeIssues } from "@daybook/log/support/Issues"
import { type FileMissing, type SessionLocked, SessionStorage, type StorageFailed } from "../storage/SessionStorage.ts"
import * as Thread from "./Thread.ts"
import {
  check,
  decodeMetadata,
  InvalidThreadID,
  metadataFile,
  recordsFile,
  ThreadID,
  ThreadMetadata
} from "./ThreadRecord.ts"

/** There is no thread with this id. */
export class ThreadNotFound extends Schema.TaggedError<ThreadNotFound>("@daybook/formats/ThreadNotFound")(
  "ThreadNotFound",
  { id: ThreadID }
) {
  override get message() {
    return `there is no thread ${this.id}`
  }
}

/** The metadata of the thread cannot be read. It is left as it is; repair or remove the file. */
export class ThreadUnreadable extends Schema.TaggedError<ThreadUnreadable>("@daybook/formats/ThreadUnreadable")(
  "ThreadUnreadable",
  { id: ThreadID, details: Schema.String }
) {
  override get message() {
    return `the metadata of thread ${this.id} cannot be read: ${this.details}`
  }
}

/** What a new thread starts with. `cronJobId` makes its source `cron`. */
export const NewThread = Schema.Struct({
  model: Schema.String,
  name: Schema.optionalWith(Schema.String, { exact: true }),
  cronJobId: Schema.optionalWith(Schema.NonEmptyString, { exact: true }),
  systemPromptOverride: Schema.optionalWith(Schema.String, { exact: true })
})
export type NewThread = typeof NewThread.Type

/** The threads of a folder, and those whose metadata cannot be read. */
export const ThreadList = Schema.Struct({
  /** The latest message first. */
  threads: Schema.Array(ThreadMetadata),
  unreadable: Schema.Array(Schema.Struct({ id: ThreadID, details: Schema.String }))
})
export type ThreadList = typeof ThreadList.Type

type IdError = InvalidThreadID | ThreadNotFound | ThreadUnreadable | StorageFailed

/** What `ThreadStore` offers. */
export interface Service {
  /** Creates a folder with an empty `session.jsonl` and `metadata.json` under a new ULID. */
  readonly create: (options: NewThread) => Effect.Effect<ThreadMetadata, StorageFailed>
  /** The metadata as the file has it. An id that is not a ULID fails before any path is built. */
  readonly get: (id: string) => Effect.Effect<ThreadMetadata, IdError>
  /** All threads, by their last message. Reads metadata only. */
  readonly list: Effect.Effect<ThreadList, StorageFailed>
  /** Opens a thread for writing. Scopes of this process share it; another process gets `SessionLocked`. */
  readonly open: (id: string) => Effect.Effect<Thread.Thread, IdError | FileMissing | SessionLocked, Scope.Scope>
}

/**
 * Threads as files of one folder.
 *
 * @example
 * ```ts
 * import { ThreadStore } from "@daybook/formats"
 * import { Effect } from "effect"
 *
 * export const threads = Effect.flatMap(ThreadStore.ThreadStore, ({ list }) => list)
 * ```
 */
export class ThreadStore extends Context.Tag("@daybook/formats/ThreadStore")<ThreadStore, Service>() {}

const byLastMessage = Order.combine(
  Order.reverse(Order.mapInput(Order.number, ({ lastMessageAt }: ThreadMetadata) => Date.parse(lastMessageAt))),
  Order.reverse(Order.mapInput(Order.string, ({ id }: ThreadMetadata) => id))
)

const make = Effect.fnUntraced(function* (root: string) {
  const storage = yield* SessionStorage
  const identifiers = yield* Identifiers

  const metadataOf = (id: ThreadID): Effect.Effect<ThreadMetadata, ThreadNotFound | ThreadUnreadable | StorageFailed> =>
    Effect.gen(function* () {
      const text = yield* Effect.catchTag(storage.readText(join(root, id, metadataFile)), "FileMissing", () =>
        Effect.flatMap(
          storage.exists(join(root, id)),
          (exists): Effect.Effect<never, ThreadNotFound | ThreadUnreadable> =>
            exists ? new ThreadUnreadable({ id, details: "the file is missing" }) : new ThreadNotFound({ id })
        )
      )
      const metadata = yield* Either.mapLeft(
        decodeMetadata(text),
        (error) => new ThreadUnreadable({ id, details: describeIssues(error, metadataFile) })
      )
      return metadata.id === id
        ? metadata
        : yield* new ThreadUnreadable({ id, details: `it is that of thread ${metadata.id}` })
    })

  const opened = yield* RcMap.make({
    lookup: (id: ThreadID) =>
      Effect.flatMap(metadataOf(id), (metadata) => Thread.open(join(root, id), metadata)).pipe(
        Effect.provideService(SessionStorage, storage)
      )
  })

  return ThreadStore.of({
    create: Effect.fn("ThreadStore.create")(function* ({ cronJobId, model, name, systemPromptOverride }) {
      const id = ThreadID.make((yield* identifiers.session).slice("ses_".length))
      const now = new Date(yield* Clock.currentTimeMillis).toISOString()
      const metadata: ThreadMetadata = {
        id,
        ...(name === undefined ? {} : { name }),
        createdAt: now,
        lastMessageAt: now,
        model,
        messageCount: 0,
        source: cronJobId === undefined ? "interactive" : "cron",
        ...(cronJobId === undefined ? {} : { cronJobId }),
        ...(systemPromptOverride === undefined ? {} : { systemPromptOverride }),
        nextSeq: 1
      }
      yield* storage.ensureDir(join(root, id))
      yield* storage.writeText(join(root, id, recordsFile), "")
      yield* storage.writeText(join(root, id, metadataFile), Thread.metadataText(metadata))
      return metadata
    }),
    get: Effect.fn("ThreadStore.get")((id) => Effect.flatMap(check(id), metadataOf)),
    list: Effect.gen(function* () {
      const ids = (yield* storage.listDirs(root)).flatMap((name) =>
        Either.getOrElse(
          Either.map(check(name), (id) => [id]),
          () => []
        )
      )
      const unreadable: Array<ThreadList["unreadable"][number]> = []
      const threads: Array<ThreadMetadata> = []
      for (const id of ids) {
        const found = yield* Effect.either(metadataOf(id))
        if (Either.isRight(found)) threads.push(found.right)
        else if (found.left._tag === "StorageFailed") return yield* found.left
        else if (found.left._tag === "ThreadUnreadable") unreadable.push({ id, details: found.left.details })
      }
      return { threads: threads.toSorted(byLastMessage), unreadable }
    }).pipe(Effect.withSpan("ThreadStore.list")),
    open: Effect.fn("ThreadStore.open")((id) => Effect.flatMap(check(id), (checked) => RcMap.get(opened, checked)))
  })
})

export const layer = (root: string): Layer.Layer<ThreadStore, never, SessionStorage | Identifiers> =>
  Layer.scoped(ThreadStore, make(root))
