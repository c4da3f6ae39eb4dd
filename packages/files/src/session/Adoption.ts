/**
 * Adopts files of a session that the record does not list, because the record was lost or is older than the files.
 * Renders the log from its beginning and accepts a file that equals the rendering at some event. Files that match no
 * event are not ours. Spec: FI-68, FI-95 in specs/files.md.
 */
import { Effect, Option, Schema, Struct } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { EventLog } from "@daybook/log/log/EventLog"
import { sizeOf, type Text } from "@daybook/transcript/Fold"
import type { PackState } from "../context/PackState.ts"
import { isAside, type SafeFiles, type Stamp, type Sum } from "../disk/SafeFiles.ts"
import type { KeptAddress } from "../layout/Layout.ts"
import { type FileRecord, recordOf } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import { answerFrom, readerOf, sumOfStream } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import { isLog, logs, piecesOf } from "../render/Rendering.ts"
import { contextFolders, contextPrefix } from "../render/SessionContext.ts"
import { entryOf, type IndexEntry, valueFiles, valueNames } from "../render/Values.ts"
import type { CachedState, WriteError } from "./CachedSession.ts"

export interface AdoptionOptions<E> {
  readonly tracker: TrackedFolder.Tracker
  readonly log: EventLog["Type"]
  readonly contextOf: (
    session: CachedState,
    name: string,
    pack: PackState
  ) => Effect.Effect<ReadonlyMap<string, TrackedFolder.Content>, E>
}

const folders = ["", contextPrefix.slice(0, -1), ...contextFolders]

const numberIn = (field: "seq" | "step") => {
  const decode = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ [field]: Schema.Int })))
  return (text: string): number =>
    Option.match(decode(text), { onNone: () => -1, onSome: (found) => found[field] ?? -1 })
}
const longestMeta = 64 * 1024

/** The value of the field in a one-object JSON file; -1 if it cannot be read. */
const readNumber = (files: SafeFiles, path: string, field: "seq" | "step"): Effect.Effect<number> =>
  files.readRange(path, 0, longestMeta).pipe(
    Effect.map((bytes) => numberIn(field)(Buffer.from(bytes).toString("utf8"))),
    Effect.orElseSucceed(() => -1)
  )

/** The last event that the session's files reflect, according to `meta.json`. */
export const told = (files: SafeFiles, folder: string): Effect.Effect<number> =>
  readNumber(files, `${folder}/meta.json`, "seq")

type FileState = { readonly sum: Sum; readonly stamp: Stamp }

/** Files with names of the layout whose content differs from the record. */
const unknown = Effect.fnUntraced(function* (files: SafeFiles, { folder }: CachedState) {
  const found = new Map<string, FileState>()
  for (const sub of folders) {
    const path = sub === "" ? folder.path : `${folder.path}/${sub}`
    if (!(yield* files.reach(path))) continue
    for (const entry of yield* files.list(path)) {
      const name = sub === "" ? entry.name : `${sub}/${entry.name}`
      const ours = sub === "" ? valueNames.has(name) : !isAside(name) && !entry.name.startsWith(".")
      if (!ours || entry.folder || isLog(name)) continue
      const stamp = yield* Effect.catchTag(files.stamp(`${folder.path}/${name}`), "PathRefused", () => Effect.void)
      const record = folder.records.get(name)
      if (stamp === undefined || record?.stamp === stamp.text) continue
      const sum = yield* files.sum(`${folder.path}/${name}`)
      if (!TrackedFolder.same(sum, record) && !TrackedFolder.same(sum, record?.next)) found.set(name, { sum, stamp })
    }
  }
  return found
})

/** The unknown files that matched no rendering yet, and the records of the matching files. */
interface Matching {
  readonly folder: TrackedFolder.Folder
  readonly pending: Map<string, FileState>
  readonly matched: Map<string, FileRecord>
}

const matchSum = ({ folder, matched, pending }: Matching, name: string, found: FileState, sum: Sum): void => {
  if (!TrackedFolder.same(sum, found.sum)) return
  matched.set(name, recordOf(found.sum, found.stamp, folder.records.get(name)?.lasting ?? false))
  pending.delete(name)
}

const match = (matching: Matching, name: string, content: TrackedFolder.Content): void => {
  const found = matching.pending.get(name)
  if (found !== undefined) matchSum(matching, name, found, TrackedFolder.sumOf(content))
}

/**
 * Renders the log from its beginning and matches the values at each event. Returns the index entry as of the event that
 * the files reflect, and the states of the pack that the context may be of.
 */
const renderAll = Effect.fnUntraced(function* (
  { log, tracker: { files } }: Pick<AdoptionOptions<never>, "log" | "tracker">,
  { folder, record }: CachedState,
  address: KeptAddress,
  matching: Matching
) {
  const [seq, step] = [
    yield* told(files, folder.path),
    yield* readNumber(files, `${folder.path}/${contextPrefix}pack.json`, "step")
  ]
  const sizes = yield* Effect.forEach(logs, (name) => files.stamp(`${folder.path}/${name}`))
  const packs = new Map<number | undefined, PackState>()
  const run = Rendering.from(Rendering.initial)
  const written = logs.map(() => 0)
  let [entry, latest]: [IndexEntry | undefined, ReadonlyArray<Text> | undefined] = [undefined, undefined]
  let within: PackState | undefined
  for (let after = -1; ;) {
    const page = yield* log.read({ sessionID: SessionID.make(record.id), after })
    for (const event of page.events) {
      const added = run.take(event)
      const { fold, pack } = run.rendering
      for (const [n, name] of logs.entries()) written[n] = (written[n] ?? 0) + sizeOf(piecesOf(added, name))
      const found = matching.pending.get("latest.md")
      if (found !== undefined && fold.latest !== undefined && fold.latest !== latest)
        matchSum(matching, "latest.md", found, yield* sumOfStream(answerFrom(fold.latest, readerOf(log, record.id))))
      latest = fold.latest
      if (matching.pending.size > 0) {
        for (const [name, content] of valueFiles(Struct.omit(fold, "latest"), address, () => ""))
          match(matching, name, content)
      }
      if (pack.step?.seq === step || fold.seq === seq) packs.set(pack.step?.seq, pack)
      if (written.every((size, n) => size <= (sizes[n]?.size ?? 0))) within = pack
      if (fold.seq === seq) entry = entryOf(fold, address.session)
    }
    if (!page.hasMore) break
    after = page.cursor
  }
  for (const pack of [within, run.rendering.pack]) if (pack !== undefined) packs.set(pack.step?.seq, pack)
  return { entry, packs }
})

/** Records each file that equals the rendering at some event. Returns the index entry as of that event. */
export const adopt = <E>(
  options: AdoptionOptions<E>,
  session: CachedState,
  address: KeptAddress
): Effect.Effect<IndexEntry | undefined, E | WriteError> =>
  Effect.gen(function* () {
    const { contextOf, tracker } = options
    const { folder } = session
    const matching: Matching = { folder, pending: yield* unknown(tracker.files, session), matched: new Map() }
    const { entry, packs } = yield* renderAll(options, session, address, matching)
    for (const pack of packs.values()) {
      if (![...matching.pending.keys()].some((name) => name.startsWith(contextPrefix))) break
      for (const [name, content] of yield* contextOf(session, address.session, pack)) match(matching, name, content)
    }
    yield* TrackedFolder.remember(tracker, folder, matching.matched)
    return entry
  })
