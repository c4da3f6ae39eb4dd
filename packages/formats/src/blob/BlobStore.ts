/**
 * Blobs, kept by the SHA-256 of their bytes: their references, the contract of a store, and stores on disk and in
 * memory. A blob is verified when it is read, and deleted only by an explicit sweep. Which blobs are in use:
 * `BlobUse.ts`. Spec: FM-82..FM-86 (PE-8, PE-9).
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import { Clock, Context, Duration, Effect, Layer, Option, Schema } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import { codeOf } from "@daybook/log/support/SystemError"
import * as FileSessionStorage from "../storage/FileSessionStorage.ts"
import { failed, type StorageFailed } from "../storage/SessionStorage.ts"
import { attempt } from "../storage/FileSessionStorage.ts"

/** The SHA-256 of a blob, in lower-case hex. It names the blob's file, so nothing else may reach a path. */
export const BlobHash = Schema.String.pipe(Schema.pattern(/^[0-9a-f]{64}$/), Schema.brand("BlobHash"))
export type BlobHash = typeof BlobHash.Type

const refPrefix = "blob:sha256:"
/** Characters of a reference. */
export const refLength = refPrefix.length + 64
const refPattern = /^blob:sha256:([0-9a-f]{64})$/

export const hashOf = (bytes: Uint8Array): BlobHash =>
  BlobHash.make(createHash("sha256").update(bytes).digest("hex"), { disableValidation: true })

export const refOf = (hash: BlobHash): string => `${refPrefix}${hash}`

/** The blob that a text refers to; undefined if the text is not exactly a reference. */
export const parseRef = (text: string): BlobHash | undefined => {
  const hash = refPattern.exec(text)?.[1]
  return hash === undefined ? undefined : BlobHash.make(hash, { disableValidation: true })
}

/** Every reference in a text, such as a line of a log, wherever it stands. */
export const allIn = (text: string): ReadonlyArray<BlobHash> =>
  text.includes(refPrefix)
    ? [...text.matchAll(/blob:sha256:([0-9a-f]{64})/g)].map(([, hash]) =>
        BlobHash.make(hash ?? "", { disableValidation: true })
      )
    : []

const isHash: (text: string) => text is BlobHash = Schema.is(BlobHash)

/** The bytes of a blob are not the ones that it is named after. */
export class BlobDamaged extends Schema.TaggedError<BlobDamaged>("@daybook/formats/BlobDamaged")("BlobDamaged", {
  hash: BlobHash
}) {
  override get message() {
    return `the blob ${this.hash} is damaged: its bytes have another SHA-256; restore it from a backup`
  }
}

export const Swept = Schema.Struct({
  deleted: Schema.NonNegativeInt,
  deletedBytes: Schema.NonNegativeInt,
  kept: Schema.NonNegativeInt
})
export type Swept = typeof Swept.Type

/** What `BlobStore` offers. */
export interface Service {
  /** Stores the bytes durably, unless they are there, and marks the blob as used now. */
  readonly put: (bytes: Uint8Array) => Effect.Effect<BlobHash, StorageFailed>
  /** The verified bytes; none if the blob is missing. */
  readonly get: (hash: BlobHash) => Effect.Effect<Option.Option<Uint8Array>, BlobDamaged | StorageFailed>
  readonly list: Effect.Effect<ReadonlyArray<BlobHash>, StorageFailed>
  /**
   * Deletes the blobs that are not in use and were last put longer ago than `age`. A log that is being written puts
   * its blobs first: `age` must exceed the time from there to its line, and the time that `inUse` took to read.
   */
  readonly sweep: (inUse: ReadonlySet<BlobHash>, age: Duration.Duration) => Effect.Effect<Swept, StorageFailed>
}

/**
 * Large contents, by their hash.
 *
 * @example
 * ```ts
 * import { BlobStore } from "@daybook/formats"
 * import { Effect } from "effect"
 *
 * export const keep = (bytes: Uint8Array) => Effect.flatMap(BlobStore.BlobStore, ({ put }) => put(bytes))
 * ```
 */
export class BlobStore extends Context.Tag("@daybook/formats/BlobStore")<BlobStore, Service>() {}

// Blobs in memory: for tests, and for sessions that are not kept.

type MemoryBlob = { readonly bytes: Uint8Array; readonly putAt: number }

const makeInMemory = () => {
  const blobs = new Map<BlobHash, MemoryBlob>()
  return BlobStore.of({
    put: (bytes) =>
      Effect.map(Clock.currentTimeMillis, (putAt) => {
        const hash = hashOf(bytes)
        blobs.set(hash, { bytes: bytes.slice(), putAt })
        return hash
      }),
    get: (hash) => Effect.sync(() => Option.map(Option.fromNullable(blobs.get(hash)), ({ bytes }) => bytes)),
    list: Effect.sync(() => [...blobs.keys()].toSorted()),
    sweep: (inUse, age) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const before = now - Duration.toMillis(age)
        const unused = [...blobs].filter(([hash, { putAt }]) => !inUse.has(hash) && putAt <= before)
        for (const [hash] of unused) blobs.delete(hash)
        const deletedBytes = unused.reduce((total, [, { bytes }]) => total + bytes.length, 0)
        return { deleted: unused.length, deletedBytes, kept: blobs.size }
      })
  })
}

export const layerMemory = Layer.sync(BlobStore, makeInMemory)

// Blobs as files of one folder, named by their SHA-256, without an extension.

const unlessMissing = <A>(use: () => A): A | undefined => {
  try {
    return use()
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return undefined
    throw cause
  }
}

/** Marks the blob as used now. False if it is missing, or has another size: it was cut off. */
const touch = (path: string, size: number, now: number): boolean =>
  unlessMissing(() => {
    if (fs.statSync(path).size !== size) return false
    fs.utimesSync(path, now / 1000, now / 1000)
    return true
  }) ?? false

const write = (path: string, bytes: Uint8Array, now: number): void => {
  const temporary = FileSessionStorage.reserveTemporary(path)
  try {
    const file = fs.openSync(temporary, "wx", 0o600)
    try {
      fs.writeFileSync(file, bytes)
      fs.futimesSync(file, now / 1000, now / 1000)
      fs.fsyncSync(file)
    } finally {
      fs.closeSync(file)
    }
    fs.renameSync(temporary, path)
  } finally {
    FileSessionStorage.releaseTemporary(temporary)
  }
}

/** Where a sweep moves a blob before it decides. */
const asideOf = (folder: string, hash: string): string => join(folder, `.${hash}.swept`)

/**
 * Deletes the blob unless it was put since `before`: returns the deleted bytes. The blob is moved first, so that a
 * `put` at the same time either marks it before the decision or stores it again.
 */
const discard = (folder: string, hash: BlobHash, before: number): number | undefined => {
  const [path, aside] = [join(folder, hash), asideOf(folder, hash)]
  if ((unlessMissing(() => fs.statSync(path).mtimeMs) ?? Infinity) > before) return undefined
  return unlessMissing(() => {
    fs.renameSync(path, aside)
    const { mtimeMs, size } = fs.statSync(aside)
    if (mtimeMs > before) {
      fs.renameSync(aside, path)
      return undefined
    }
    fs.rmSync(aside)
    return size
  })
}

/** Returns blobs that a killed sweep left aside. */
const restoreAside = (folder: string): void => {
  for (const name of unlessMissing(() => fs.readdirSync(folder)) ?? []) {
    const hash = /^\.([0-9a-f]{64})\.swept$/.exec(name)?.[1]
    if (hash !== undefined) fs.renameSync(join(folder, name), join(folder, hash))
  }
}

/** The blobs of this folder, which is created with the first blob. */
export const makeOnDisk = (folder: string) => {
  const list = attempt("list", folder, () =>
    (unlessMissing(() => fs.readdirSync(folder)) ?? []).filter(isHash).toSorted()
  )
  return BlobStore.of({
    put: Effect.fn("BlobStore.put")(function* (bytes) {
      const [hash, now] = [hashOf(bytes), yield* Clock.currentTimeMillis]
      const path = join(folder, hash)
      if (yield* attempt("look at", path, () => touch(path, bytes.length, now))) return hash
      yield* Effect.tryPromise({
        try: () => makeFolders(folder, 0o700),
        catch: (cause) => failed("create", folder, cause)
      })
      yield* attempt("write", path, () => write(path, bytes, now))
      return hash
    }),
    get: Effect.fn("BlobStore.get")(function* (hash) {
      const path = join(folder, hash)
      const bytes = yield* attempt("read", path, () => unlessMissing(() => fs.readFileSync(path)))
      if (bytes === undefined) return Option.none()
      return hashOf(bytes) === hash ? Option.some(bytes) : yield* new BlobDamaged({ hash })
    }),
    list,
    sweep: Effect.fn("BlobStore.sweep")(function* (inUse, age) {
      yield* attempt("list", folder, () => {
        restoreAside(folder)
        FileSessionStorage.sweepTemporaries(folder)
      })
      const [stored, before] = [yield* list, (yield* Clock.currentTimeMillis) - Duration.toMillis(age)]
      let [deleted, deletedBytes] = [0, 0]
      for (const hash of stored) {
        if (inUse.has(hash)) continue
        const size = yield* attempt("remove", join(folder, hash), () => discard(folder, hash, before))
        if (size === undefined) continue
        deleted += 1
        deletedBytes += size
      }
      return { deleted, deletedBytes, kept: stored.length - deleted }
    })
  })
}

export const layerFiles = (folder: string) => Layer.sync(BlobStore, () => makeOnDisk(folder))
