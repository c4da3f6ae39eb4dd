/**
 * Folders that a removed session left because the record did not know them: the record was lost, or set back, before the
 * removal was followed. Their files are recorded again, so that they are removed as those of any other session. A folder
 * is taken for one of these when its `meta.json` lies at the address that it tells of, and names a session that the log
 * removed and does not have now. Everything else stays where it is. Spec: FI-97 in specs/files.md.
 */
import { SessionID, type EventLog, type LogUnavailable } from "@daybook/core"
import { Effect, Option, Schema } from "effect"
import * as Houses from "./Houses.ts"
import * as Keeper from "./Keeper.ts"
import { indexFolder, sessionFolder, type KeptAddress } from "./Layout.ts"
import { recordOf, type FileRecord, type SessionRecord } from "./Ledger.ts"
import * as LogFile from "./LogFile.ts"
import { isLog } from "./Rendering.ts"
import { Meta } from "./Rows.ts"
import { contextFolders, contextPrefix, isContextName } from "./SessionContext.ts"
import { valueNames } from "./Values.ts"

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

/** The name of the file that a temporary one was to become; the same for any other. */
const targetOf = (name: string): string => /^\.(.+)\.tmp$/.exec(name)?.[1] ?? name

/** The address of the session in the folder, by its metadata; the user is the one whose home it is. */
const addressAt = (folder: string, meta: Meta): KeptAddress | undefined => {
  const { kind, name, session } = meta
  if (meta.scope === "private") {
    return { scope: "private", uid: Number(folder.split("/")[1]), kind, name, session }
  }
  return meta.shared === undefined ? undefined : { scope: "shared", shared: meta.shared, kind, name, session }
}

export const make = (keeper: Keeper.Keeper, log: EventLog["Type"]) => {
  const { files, ledger } = keeper

  /** The session that the folder is of by its own words, if it lies at that session's address. */
  const claimed = Effect.fnUntraced(function* (folder: string) {
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

  /** Those that the log removed and does not have now. */
  const removedOf = Effect.fnUntraced(function* (
    found: ReadonlyArray<Remains>
  ): Effect.fn.Return<ReadonlyArray<Remains>, LogUnavailable | Keeper.KeepError> {
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
        return yield* Effect.as(log.head(id), false).pipe(
          Effect.catchTag("SessionNotFound", () => Effect.succeed(true))
        )
      })
    )
  })

  /** The record of a file as it is; undefined where no regular file is. */
  const recorded = (path: string) =>
    Effect.gen(function* () {
      const stamp = yield* files.stamp(path)
      return stamp === undefined ? undefined : recordOf(yield* files.sum(path), stamp)
    }).pipe(Effect.catchTag("PathRefused", () => Effect.void))

  /** Records the files that the layout has in the folder, whatever they hold, and those that were being written. */
  const record = Effect.fnUntraced(function* ({ folder, id, index }: Remains) {
    const found = new Map<string, FileRecord>()
    for (const sub of folders) {
      for (const entry of yield* Houses.look(files, sub === "" ? folder : `${folder}/${sub}`)) {
        const target = targetOf(entry.name)
        const name = sub === "" ? target : `${sub}/${target}`
        if (entry.folder || !isOfLayout(name)) continue
        found.set(name, (yield* recorded(`${folder}/${name}`)) ?? LogFile.empty)
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

  /** Records the files of an index that hold nothing but names of folders that lie beside it. */
  const recordIndex = Effect.fnUntraced(function* (index: string, names: ReadonlySet<string>) {
    const known = yield* ledger.files(index)
    const hints = (yield* Houses.look(files, `${index}/by-cwd`)).map(({ name }) => `by-cwd/${name}`)
    const found = new Map<string, FileRecord>()
    for (const name of ["list", "current", ...hints.filter((hint) => /\/[0-9a-f]{64}$/.test(hint))]) {
      const path = `${index}/${name}`
      const file = yield* recorded(path)
      if (file === undefined || file.stamp === known.get(name)?.stamp || file.size > 65 * (names.size + 1)) continue
      const lines = Buffer.from(yield* files.readRange(path, 0, file.size))
        .toString("utf8")
        .split("\n")
      if (lines.pop() === "" && lines.every((line) => names.has(line))) found.set(name, file)
    }
    yield* ledger.keep(index, found)
  })

  /** Records what is found, and gives it; and the indexes of houses without a recorded session. */
  const find = Effect.fnUntraced(function* () {
    const all: Array<Remains> = []
    const indexes: Array<string> = []
    for (const house of yield* Houses.houses(files)) {
      const index = `${house}/index`
      const [known, claims] = [yield* ledger.folders(index), new Array<Remains>()]
      const beside = (yield* Houses.look(files, house)).filter(({ folder, name }) => folder && name !== "index")
      for (const { name } of beside) {
        const path = `${house}/${name}`
        if (known.has(path)) continue
        const claim = yield* Effect.catchTag(claimed(path), "PathRefused", () => Effect.void)
        if (claim !== undefined) claims.push(claim)
      }
      const remains = yield* removedOf(claims)
      // The index first: a folder that is recorded is not looked at again after a kill.
      if (remains.length > 0) yield* recordIndex(index, new Set(beside.map(({ name }) => name)))
      for (const one of remains) yield* record(one)
      all.push(...remains)
      if (known.size === 0) indexes.push(index)
    }
    return { remains: all, indexes }
  })

  return { find }
}
