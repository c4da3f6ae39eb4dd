/**
 * Replaces whole files in one folder. It records the next content before each write, so that after a kill it can tell
 * its own half-done writes from changes by other programs. A file that it did not write is moved aside and reported. It
 * knows nothing of sessions. Spec: FI-70..FI-72, FI-75 in specs/files.md (FL-7).
 */
import { crc32 } from "node:zlib"
import { Effect, Stream } from "effect"
import type { SafeFiles, Stamp, Sum } from "../disk/SafeFiles.ts"
import type { Finding, FindingKind, LedgerFailed, SafeError } from "../layout/Errors.ts"
import { isPermitted, type Modes } from "../layout/Layout.ts"
import type { Source } from "../render/Pieces.ts"
import type { Ledger } from "./Ledger.ts"
import { type FileRecord, recordOf, type SessionRecord } from "./Records.ts"

/** The services that every operation needs. */
export interface Tracker {
  readonly files: SafeFiles
  readonly ledger: Ledger
  readonly modes: Modes
  readonly report: (finding: Finding) => Effect.Effect<void>
}

/** Content of any length, produced while it is written. */
export interface Streamed<E = never> {
  readonly sum: Sum
  readonly bytes: Stream.Stream<Uint8Array, E>
}
export type Content<E = never> = string | Uint8Array | Streamed<E>
export type TrackError = SafeError | LedgerFailed

/** A folder with its recorded files, by name; a name may contain a subfolder. */
export interface Folder {
  /** Relative to the root. */
  readonly path: string
  readonly sessionID?: string | undefined
  /** The records of its files; updated in place as the files change. */
  readonly records: Map<string, FileRecord>
}

/** The folder of a session with the records of its files. */
export const recorded = (ledger: Ledger, { folder, id }: Pick<SessionRecord, "folder" | "id">) =>
  Effect.map(ledger.files(folder), (records): Folder => ({ path: folder, sessionID: id, records: new Map(records) }))

const isStreamed = <E>(content: Content<E>): content is Streamed<E> =>
  typeof content === "object" && !(content instanceof Uint8Array)

export const sumOf = (content: Content<unknown>): Sum => {
  if (isStreamed(content)) return content.sum
  const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content
  return { size: bytes.length, crc: crc32(bytes) }
}

export const same = (a: Sum, b: Sum | null | undefined): boolean =>
  b !== null && b !== undefined && a.size === b.size && a.crc === b.crc

/** Publishes a finding about a file. */
export const report = (
  { report }: Tracker,
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

/** Updates the records of files in the folder, in memory and in the ledger. */
export const remember = (
  { ledger }: Tracker,
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

/** Creates the folder and the subfolders of the names, with their permissions and group. */
export const ensureFolders = (
  tracker: Tracker,
  folder: Folder,
  names: Iterable<string> = []
): Effect.Effect<void, SafeError> => {
  const below = [...names].flatMap((name) => {
    const cut = name.lastIndexOf("/")
    return cut === -1 ? [] : [`${folder.path}/${name.slice(0, cut)}`]
  })
  return Effect.flatMap(tracker.files.ensureFolders([folder.path, ...below], tracker.modes), (changed) =>
    Effect.forEach(
      changed,
      (path) =>
        report(tracker, { ...folder, path }, "", "mode", "the folder's permissions were changed; they were restored"),
      { discard: true }
    )
  )
}

/** Files that Daybook did not write as they are, and files that are gone. */
export interface Inspection {
  readonly foreign: ReadonlySet<string>
  readonly missing: ReadonlySet<string>
}

/**
 * Checks the named files. It takes all stamps before it reads or changes a file, so that anything but a regular file is
 * refused first (SC-3). Content is ours if it was written, was about to be written, or is wanted.
 */
export const inspect = Effect.fnUntraced(function* (
  tracker: Tracker,
  folder: Folder,
  names: Iterable<string>,
  wanted: ReadonlyMap<string, Sum>
) {
  const { modes } = tracker
  const stamps = yield* Effect.forEach(
    new Set(names),
    (name) => Effect.map(tracker.files.stamp(`${folder.path}/${name}`), (stamp) => [name, stamp] as const),
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
      // Keeps the record, so that a kill does not lose the fact that the file must exist.
      changes.set(name, { ...record, stamp: "", next: null })
      if (known) yield* report(tracker, folder, name, "missing", "the file was gone; it is written again")
      continue
    }
    const permitted = isPermitted(modes, folder.path, found)
    if (known && record.stamp === found.text && permitted) continue
    const path = `${folder.path}/${name}`
    const sum = known && record.stamp === found.text ? record : yield* tracker.files.sum(path)
    if (!same(sum, record) && !same(sum, record?.next) && !same(sum, wanted.get(name))) {
      foreign.add(name)
      continue
    }
    let stamp: Stamp = found
    if (!permitted) {
      stamp = yield* tracker.files.permit(path, modes.file(path), modes.group(path))
      if (known) {
        yield* report(tracker, folder, name, "mode", "the file's permissions were changed; they were restored")
      }
    }
    changes.set(name, recordOf(sum, stamp, record?.lasting ?? false))
  }
  yield* remember(tracker, folder, changes)
  return { foreign, missing }
})

/** Moves a file that Daybook did not write aside, and reports it. */
export const setAside = Effect.fnUntraced(function* (tracker: Tracker, folder: Folder, name: string) {
  const aside = yield* tracker.files.keepAside(`${folder.path}/${name}`)
  const details = `another program changed the file; it was kept as ${aside} and written again`
  yield* report(tracker, folder, name, "changed", details, aside)
})

const replace = <E>(
  { files }: Tracker,
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

/** Writes the wanted contents in order. Unwanted recorded files are removed, except `spared` names. */
export const bring = <E = never>(
  tracker: Tracker,
  folder: Folder,
  wanted: ReadonlyMap<string, Content<E>>,
  { foreign }: Inspection,
  spared: (name: string) => boolean = () => false,
  lasting = false
): Effect.Effect<boolean, TrackError | E> =>
  Effect.gen(function* () {
    const mode = tracker.modes.file(folder.path)
    const changed = [...wanted].flatMap(([name, content]) => {
      const sum = sumOf(content)
      const record = folder.records.get(name)
      const there = record !== undefined && record.stamp !== "" && same(sum, record) && !foreign.has(name)
      return there ? [] : [{ name, content, sum }]
    })
    const gone = [...folder.records.keys()].filter((name) => !wanted.has(name) && !spared(name))
    if (changed.length === 0 && gone.length === 0) return false
    yield* remember(
      tracker,
      folder,
      new Map(
        changed.map(({ name, sum }) => {
          const record = folder.records.get(name) ?? { size: 0, crc: 0, stamp: "", next: null, lasting }
          return [name, { ...record, next: sum }]
        })
      )
    )
    yield* ensureFolders(
      tracker,
      folder,
      changed.map(({ name }) => name)
    )
    const changes = new Map<string, FileRecord | undefined>()
    for (const { content, name, sum } of changed) {
      if (foreign.has(name)) yield* setAside(tracker, folder, name)
      const stamp = yield* replace(tracker, `${folder.path}/${name}`, content, mode)
      changes.set(name, recordOf(sum, stamp, lasting || folder.records.get(name)?.lasting === true))
    }
    for (const name of gone) {
      if (foreign.has(name)) yield* setAside(tracker, folder, name)
      else yield* tracker.files.remove(`${folder.path}/${name}`)
      changes.set(name, undefined)
    }
    yield* remember(tracker, folder, changes)
    return true
  })

/** Removes temporary files that a kill left, in the folder and in the subfolders of its records. */
export const sweepLeftovers = Effect.fnUntraced(function* (tracker: Tracker, folder: Folder) {
  const below = new Set([""])
  for (const name of folder.records.keys()) {
    const cut = name.lastIndexOf("/")
    if (cut !== -1) below.add(`/${name.slice(0, cut)}`)
  }
  for (const sub of below) {
    // The check of its files reports a refused folder.
    const there = Effect.catchTag(tracker.files.reach(folder.path + sub), "PathRefused", () => Effect.succeed(false))
    if (!(yield* there)) continue
    for (const entry of yield* tracker.files.list(folder.path + sub)) {
      if (/^\..+\.tmp$/.test(entry.name) && !entry.folder) {
        yield* tracker.files.remove(`${folder.path}${sub}/${entry.name}`)
      }
    }
  }
})

// Appends to a file of whole lines; after a kill, completes a partial row in place.

/** The state of a log: ours, with surplus bytes that begin the next rows; missing; or changed. */
type LogState = { readonly is: "ours"; readonly surplus: number } | { readonly is: "missing" | "changed" }

export const empty: FileRecord = { size: 0, crc: 0, stamp: "", next: null, lasting: true }

const recordIn = (folder: Folder, name: string): FileRecord => folder.records.get(name) ?? empty

export const look = <E>(
  { files }: Tracker,
  folder: Folder,
  name: string,
  next: Source<E>
): Effect.Effect<LogState, TrackError | E> =>
  Effect.gen(function* () {
    const path = `${folder.path}/${name}`
    const record = recordIn(folder, name)
    const found = yield* files.stamp(path)
    if (found === undefined) return record.stamp === "" ? { is: "ours", surplus: 0 } : { is: "missing" }
    if (found.text === record.stamp && found.size === record.size) return { is: "ours", surplus: 0 }
    if (found.size < record.size) return { is: "changed" }
    if (found.text !== record.stamp && !same(yield* files.sum(path, record.size), record)) return { is: "changed" }
    const surplus = found.size - record.size
    const end = record.size + Math.min(surplus, next.size)
    let at = record.size
    if (at === end) return { is: "ours", surplus }
    const ours = yield* next.bytes.pipe(
      Stream.takeWhile(() => at < end),
      Stream.mapEffect((piece) =>
        Effect.gen(function* () {
          const bytes = piece.subarray(0, end - at)
          const there = yield* files.readRange(path, at, bytes.length)
          at += bytes.length
          return Buffer.compare(there, bytes) === 0
        })
      ),
      Stream.runFoldWhile(
        true,
        (right) => right,
        (_, right) => right
      )
    )
    return ours ? { is: "ours", surplus } : { is: "changed" }
  })

/** Appends the bytes that are not there yet; returns the new record. */
export const append = <E>(
  { files, modes }: Tracker,
  folder: Folder,
  name: string,
  next: Source<E>,
  surplus: number
): Effect.Effect<FileRecord, TrackError | E> =>
  Effect.gen(function* () {
    const [path, mode] = [`${folder.path}/${name}`, modes.file(folder.path)]
    let { crc, size } = recordIn(folder, name)
    const there = size + Math.min(surplus, next.size)
    let stamp: Stamp | undefined
    yield* Stream.runForEach(next.bytes, (bytes) =>
      Effect.gen(function* () {
        const rest = bytes.subarray(Math.min(Math.max(0, there - size), bytes.length))
        crc = crc32(bytes, crc)
        size += bytes.length
        if (rest.length > 0) stamp = yield* files.append(path, rest, mode)
      })
    )
    stamp ??= yield* files.append(path, "", mode)
    return { size, crc, stamp: stamp.text, next: null, lasting: true }
  })
