/**
 * The files of one folder that are replaced as wholes: tells those that other hands came to from those that a kill left
 * half done, and brings all to what is wanted. What is about to be written is recorded first, so that it is known again
 * after a kill; what nobody here wrote is moved aside and reported. It knows nothing of sessions.
 * Spec: FI-70..FI-72 in specs/files.md.
 */
import { crc32 } from "node:zlib"
import { Effect, Stream } from "effect"
import type { Finding, FindingKind, LedgerFailed, SafeError } from "./Errors.ts"
import { recordOf, type FileRecord, type Ledger } from "./Ledger.ts"
import { isPermitted, type Modes } from "./Modes.ts"
import type { SafeFiles, Stamp, Sum } from "./SafeFiles.ts"

/** What keeping files needs. */
export interface Keeper {
  readonly files: SafeFiles
  readonly ledger: Ledger
  readonly modes: Modes
  readonly report: (finding: Finding) => Effect.Effect<void>
}

/** A content of any length, made as it is written. */
export interface Streamed<E = never> {
  readonly sum: Sum
  readonly bytes: Stream.Stream<Uint8Array, E>
}
export type Content<E = never> = string | Uint8Array | Streamed<E>
export type KeepError = SafeError | LedgerFailed

/** Files by their names in a folder; a name may lie in a folder below. */
export interface Folder {
  /** Relative to the root. */
  readonly path: string
  readonly sessionID?: string | undefined
  /** What is known of its files; brought up to date in place, as they change. */
  readonly records: Map<string, FileRecord>
}

const isStreamed = <E>(content: Content<E>): content is Streamed<E> =>
  typeof content === "object" && !(content instanceof Uint8Array)

export const sumOf = (content: Content<unknown>): Sum => {
  if (isStreamed(content)) return content.sum
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content
  return { size: bytes.length, crc: crc32(bytes) }
}

export const same = (a: Sum, b: Sum | null | undefined): boolean =>
  b !== null && b !== undefined && a.size === b.size && a.crc === b.crc

/** Reports what was found of a file, in the log too. */
export const report = (
  { report }: Keeper,
  folder: Folder,
  name: string,
  kind: FindingKind,
  details: string,
  aside?: string
): Effect.Effect<void> =>
  report({
    kind,
    path: name === "" ? folder.path : `${folder.path}/${name}`,
    ...(folder.sessionID === undefined ? {} : { sessionID: folder.sessionID }),
    details,
    ...(aside === undefined ? {} : { aside })
  })

/** Records changes of files in the folder, here and in the ledger. */
export const remember = (
  { ledger }: Keeper,
  folder: Folder,
  changes: ReadonlyMap<string, FileRecord | undefined>
): Effect.Effect<void, LedgerFailed> =>
  Effect.zipRight(
    ledger.keep(folder.path, changes),
    Effect.sync(() => {
      for (const [name, record] of changes) {
        if (record === undefined) folder.records.delete(name)
        else folder.records.set(name, record)
      }
    })
  )

/** Makes the folder and those that the names lie in, each with its permissions and group. */
export const ensureFolders = (
  keeper: Keeper,
  folder: Folder,
  names: Iterable<string> = []
): Effect.Effect<void, SafeError> => {
  const below = [...names].flatMap((name) => {
    const cut = name.lastIndexOf("/")
    return cut === -1 ? [] : [`${folder.path}/${name.slice(0, cut)}`]
  })
  return Effect.flatMap(keeper.files.ensureFolders([folder.path, ...below], keeper.modes), (changed) =>
    Effect.forEach(
      changed,
      (path) =>
        report(keeper, { ...folder, path }, "", "mode", "the folder's permissions were changed; they were put back"),
      { discard: true }
    )
  )
}

/** Files of other hands, and files that are gone. */
export interface Inspection {
  readonly foreign: ReadonlySet<string>
  readonly missing: ReadonlySet<string>
}

/**
 * Looks at the named files. First at all of them without reading: whatever is no regular file is refused before anything
 * changes (SC-3). A content that was written, was about to be, or is wanted, is ours.
 */
export const inspect = Effect.fnUntraced(function* (
  keeper: Keeper,
  folder: Folder,
  names: Iterable<string>,
  wanted: ReadonlyMap<string, Sum>
): Effect.fn.Return<Inspection, KeepError> {
  const { modes } = keeper
  const stamps = yield* Effect.forEach(
    new Set(names),
    (name) => Effect.map(keeper.files.stamp(`${folder.path}/${name}`), (stamp) => [name, stamp] as const),
    { concurrency: 8 }
  )
  const [foreign, missing] = [new Set<string>(), new Set<string>()]
  const changes = new Map<string, FileRecord | undefined>()
  for (const [name, found] of stamps) {
    const record = folder.records.get(name)
    const known = record !== undefined && record.stamp !== ""
    if (found === undefined) {
      if (record === undefined) continue
      missing.add(name)
      // Still recorded: after a kill, too, it is known that it has to be there.
      changes.set(name, { ...record, stamp: "", next: null })
      if (known) yield* report(keeper, folder, name, "missing", "the file was gone; it is written again")
      continue
    }
    const permitted = isPermitted(modes, folder.path, found)
    if (known && record.stamp === found.text && permitted) continue
    const path = `${folder.path}/${name}`
    const sum = known && record.stamp === found.text ? record : yield* keeper.files.sum(path)
    if (!same(sum, record) && !same(sum, record?.next) && !same(sum, wanted.get(name))) {
      foreign.add(name)
      continue
    }
    let stamp: Stamp = found
    if (!permitted) {
      stamp = yield* keeper.files.permit(path, modes.file(path), modes.group(path))
      if (known) {
        yield* report(keeper, folder, name, "mode", "the file's permissions were changed; they were put back")
      }
    }
    changes.set(name, recordOf(sum, stamp, record?.lasting ?? false))
  }
  yield* remember(keeper, folder, changes)
  return { foreign, missing }
})

/** Moves a file of other hands aside, and says so. */
export const setAside = Effect.fnUntraced(function* (keeper: Keeper, folder: Folder, name: string) {
  const aside = yield* keeper.files.keepAside(`${folder.path}/${name}`)
  const details = `the file was changed by other hands; it was kept as ${aside} and written again`
  yield* report(keeper, folder, name, "changed", details, aside)
})

/** Replaces the file's content in one step. */
const replace = <E>(
  { files }: Keeper,
  path: string,
  content: Content<E>,
  mode: number
): Effect.Effect<Stamp, SafeError | E> =>
  isStreamed(content)
    ? Effect.scoped(
        Effect.flatMap(files.begin(path, mode), ({ place, write }) =>
          Effect.zipRight(Stream.runForEach(content.bytes, write), place)
        )
      )
    : files.replace(path, content, mode)

/**
 * Brings the inspected files to what is wanted, in the order of `wanted`: what is there already is left, what is not
 * wanted goes. `spared` names are not touched.
 */
export const bring = <E = never>(
  keeper: Keeper,
  folder: Folder,
  wanted: ReadonlyMap<string, Content<E>>,
  { foreign }: Inspection,
  spared: (name: string) => boolean = () => false,
  lasting = false
): Effect.Effect<boolean, KeepError | E> =>
  Effect.gen(function* () {
    const mode = keeper.modes.file(folder.path)
    const changed = [...wanted].flatMap(([name, content]) => {
      const sum = sumOf(content)
      const record = folder.records.get(name)
      const there = record !== undefined && record.stamp !== "" && same(sum, record) && !foreign.has(name)
      return there ? [] : [{ name, content, sum }]
    })
    const gone = [...folder.records.keys()].filter((name) => !wanted.has(name) && !spared(name))
    if (changed.length === 0 && gone.length === 0) return false
    yield* remember(
      keeper,
      folder,
      new Map(
        changed.map(({ name, sum }) => {
          const record = folder.records.get(name) ?? { size: 0, crc: 0, stamp: "", next: null, lasting }
          return [name, { ...record, next: sum }]
        })
      )
    )
    yield* ensureFolders(
      keeper,
      folder,
      changed.map(({ name }) => name)
    )
    const changes = new Map<string, FileRecord | undefined>()
    for (const { content, name, sum } of changed) {
      if (foreign.has(name)) yield* setAside(keeper, folder, name)
      const stamp = yield* replace(keeper, `${folder.path}/${name}`, content, mode)
      changes.set(name, recordOf(sum, stamp, lasting || folder.records.get(name)?.lasting === true))
    }
    for (const name of gone) {
      if (foreign.has(name)) yield* setAside(keeper, folder, name)
      else yield* keeper.files.remove(`${folder.path}/${name}`)
      changes.set(name, undefined)
    }
    yield* remember(keeper, folder, changes)
    return true
  })

/** Removes what a kill left of files that were being written, in the folder and in those below it that are ours. */
export const sweepLeftovers = Effect.fnUntraced(function* (keeper: Keeper, folder: Folder) {
  const below = new Set([""])
  for (const name of folder.records.keys()) {
    const cut = name.lastIndexOf("/")
    if (cut !== -1) below.add(`/${name.slice(0, cut)}`)
  }
  for (const sub of below) {
    // What is refused there is met again when its files are looked at.
    const there = Effect.catchTag(keeper.files.reach(folder.path + sub), "PathRefused", () => Effect.succeed(false))
    if (!(yield* there)) continue
    for (const entry of yield* keeper.files.list(folder.path + sub)) {
      if (/^\..+\.tmp$/.test(entry.name) && !entry.folder) {
        yield* keeper.files.remove(`${folder.path}${sub}/${entry.name}`)
      }
    }
  }
})
