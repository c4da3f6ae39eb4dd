/** Blobs as files of one folder, named by their SHA-256, without an extension. Spec: FM-82..FM-86. */
import * as fs from "node:fs"
import { join } from "node:path"
import { Clock, Duration, Effect, Layer, Option } from "effect"
import { makeFolders } from "@daybook/log/storage/PrivateFile"
import * as Temporaries from "../storage/Temporaries.ts"
import { codeOf, failed, type StorageFailed } from "../storage/StorageError.ts"
import { type BlobHash, hashOf, isHash } from "./BlobRef.ts"
import { BlobDamaged, BlobStore } from "./BlobStore.ts"

const attempt = <A>(operation: string, path: string, use: () => A): Effect.Effect<A, StorageFailed> =>
  Effect.try({ try: use, catch: (cause) => failed(operation, path, cause) })

/** The result, or undefined if the file does not exist. */
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
  const temporary = Temporaries.reserve(path)
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
    Temporaries.release(temporary)
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
export const make = (folder: string) => {
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
        Temporaries.sweep(folder)
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

/** Blobs in this folder. */
export const layer = (folder: string) => Layer.sync(BlobStore, () => make(folder))
