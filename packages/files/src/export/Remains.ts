/**
 * Finds folders of removed sessions that the record does not list because it was lost or restored from a copy. It
 * records their files, so that they are removed like those of any session. A folder qualifies if its `meta.json` is at
 * the address that it names, and names a session that the log removed and does not hold now. Everything else stays.
 * Spec: FI-97 in specs/files.md.
 */
import { Effect, Option, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { EventLog, LogUnavailable } from "@daybook/log/log/EventLog"
import * as Houses from "../disk/Houses.ts"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import { indexFolder, type KeptAddress, sessionFolder } from "../layout/Layout.ts"
import { Meta } from "../layout/Meta.ts"
import * as LogFile from "../record/LogFile.ts"
import { type FileRecord, recordOf, type SessionRecord } from "../record/Records.ts"
import type * as TrackedFolder from "../record/TrackedFolder.ts"
import { isLog } from "../render/Rendering.ts"
import { contextFolders, contextPrefix, isContextName } from "../render/SessionContext.ts"
import { valueNames } from "../render/Values.ts"

/** A folder of a removed session. */
export interface Remains {
  readonly id: SessionID
  readonly folder: string
  readonly index: string
}

const longestMeta = 1024 * 1024
const decodeMeta = Schema.decodeUnknownOption(Schema.parseJson(Meta))
const decodeID = Schema.decodeUnknownOption(SessionID)

const folders = ["", contextPrefix.slice(0, -1), ...contextFolders]

/** Whether the layout has a file of that name in a session's folder. */
const isOfLayout = (name: string): boolean => isLog(name) || valueNames.has(name) || isContextName(name)

/** The target of a temporary file name; any other name is unchanged. */
const targetOf = (name: string): string => /^\.(.+)\.tmp$/.exec(name)?.[1] ?? name

/** The address in the folder's metadata; the user id is that of its home. */
const addressAt = (folder: string, meta: Meta): KeptAddress | undefined => {
  const { kind, name, session } = meta
  if (meta.scope === "private") {
    return { scope: "private", uid: Number(folder.split("/")[1]), kind, name, session }
  }
  return meta.shared === undefined ? undefined : { scope: "shared", shared: meta.shared, kind, name, session }
}

/** The session that the folder's `meta.json` names, if the folder is at that session's address. */
const claimed = Effect.fnUntraced(function* (files: SafeFiles, folder: string) {
  const path = `${folder}/meta.json`
  if (!(yield* files.reach(folder))) return undefined
  const stamp = yield* files.stamp(path)
  if (stamp === undefined || stamp.size > longestMeta) return undefined
  const text = Buffer.from(yield* files.readRange(path, 0, stamp.size)).toString("utf8")
  return Option.getOrUndefined(
    Option.gen(function* () {
      const meta = yield* decodeMeta(text)
      const id = yield* decodeID(meta.session_id)
      const address = yield* Option.fromNullable(addressAt(folder, meta))
      if (sessionFolder(address) !== folder) return yield* Option.none()
      return { id, folder, index: indexFolder(address) } satisfies Remains
    })
  )
})

/** Keeps the sessions that the log removed and does not hold now. */
const removedOf = Effect.fnUntraced(function* (
  { ledger }: TrackedFolder.Tracker,
  log: EventLog["Type"],
  found: ReadonlyArray<Remains>
): Effect.fn.Return<ReadonlyArray<Remains>, LogUnavailable | TrackedFolder.TrackError> {
  if (found.length === 0) return []
  const ids = new Set<string>(found.map(({ id }) => id))
  const removed = new Set<string>()
  for (let [after, more] = [0, true]; more;) {
    const page = yield* log.removals({ after })
    for (const { sessionID } of page) if (ids.has(sessionID)) removed.add(sessionID)
    after = page.at(-1)?.number ?? after
    more = page.length > 0
  }
  return yield* Effect.filter(found, ({ id }) =>
    Effect.gen(function* () {
      if (!removed.has(id) || (yield* ledger.session(id)) !== undefined) return false
      return yield* Effect.as(log.head(id), false).pipe(Effect.catchTag("SessionNotFound", () => Effect.succeed(true)))
    })
  )
})

/** The record of a file as it is now; undefined unless it is a regular file. */
const recorded = (files: SafeFiles, path: string) =>
  Effect.gen(function* () {
    const stamp = yield* files.stamp(path)
    return stamp === undefined ? undefined : recordOf(yield* files.sum(path), stamp)
  }).pipe(Effect.catchTag("PathRefused", () => Effect.void))

/** Records the layout's files in the folder, with any content, and targets of temporary files. */
const record = Effect.fnUntraced(function* ({ files, ledger }: TrackedFolder.Tracker, { folder, id, index }: Remains) {
  const found = new Map<string, FileRecord>()
  for (const sub of folders) {
    for (const entry of yield* Houses.look(files, sub === "" ? folder : `${folder}/${sub}`)) {
      const target = targetOf(entry.name)
      const name = sub === "" ? target : `${sub}/${target}`
      if (entry.folder || !isOfLayout(name)) continue
      found.set(name, (yield* recorded(files, `${folder}/${name}`)) ?? LogFile.empty)
    }
  }
  const session: SessionRecord = {
    id,
    folder,
    index,
    seq: -1,
    position: 0,
    first: "",
    shown: -1,
    checkpointSeq: -1,
    checkpointSize: 0,
    entry: null,
    behind: false
  }
  yield* ledger.keep(folder, found, session)
})

/** Records index files that hold only names of sibling folders. */
const recordIndex = Effect.fnUntraced(function* (
  { files, ledger }: TrackedFolder.Tracker,
  index: string,
  names: ReadonlySet<string>
) {
  const known = yield* ledger.files(index)
  const hints = (yield* Houses.look(files, `${index}/by-cwd`)).map(({ name }) => `by-cwd/${name}`)
  const found = new Map<string, FileRecord>()
  for (const name of ["list", "current", ...hints.filter((hint) => /\/[0-9a-f]{64}$/.test(hint))]) {
    const path = `${index}/${name}`
    const file = yield* recorded(files, path)
    if (file === undefined || file.stamp === known.get(name)?.stamp || file.size > 65 * (names.size + 1)) continue
    const lines = Buffer.from(yield* files.readRange(path, 0, file.size))
      .toString("utf8")
      .split("\n")
    if (lines.pop() === "" && lines.every((line) => names.has(line))) found.set(name, file)
  }
  yield* ledger.keep(index, found)
})

/** Records and returns the remains, and returns the indexes of houses without a recorded session. */
export const find = Effect.fnUntraced(function* (tracker: TrackedFolder.Tracker, log: EventLog["Type"]) {
  const { files, ledger } = tracker
  const all: Array<Remains> = []
  const indexes: Array<string> = []
  for (const house of yield* Houses.houses(files)) {
    const index = `${house}/index`
    const [known, claims] = [yield* ledger.folders(index), new Array<Remains>()]
    const beside = (yield* Houses.look(files, house)).filter(({ folder, name }) => folder && name !== "index")
    for (const { name } of beside) {
      const path = `${house}/${name}`
      if (known.has(path)) continue
      const claim = yield* Effect.catchTag(claimed(files, path), "PathRefused", () => Effect.void)
      if (claim !== undefined) claims.push(claim)
    }
    const remains = yield* removedOf(tracker, log, claims)
    // The index first: after a kill, a recorded folder is not searched again.
    if (remains.length > 0) yield* recordIndex(tracker, index, new Set(beside.map(({ name }) => name)))
    for (const one of remains) yield* record(tracker, one)
    all.push(...remains)
    if (known.size === 0) indexes.push(index)
  }
  return { remains: all, indexes }
})
