/**
 * Compares one session's folder with the log: the two logs, the values, the context and blobs, and everything else in
 * it. Changes nothing and follows no link. Spec: FI-87, FI-88 in specs/files.md.
 */
import { Effect, type Stream } from "effect"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { type KeptAddress, sessionFolder } from "../layout/Layout.ts"
import { entryOf, type IndexEntry } from "../render/IndexFiles.ts"
import { answerFrom, readerOf } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import { blobFile, contextOf, contextPrefix } from "../render/SessionContext.ts"
import { valueFiles } from "../render/Values.ts"
import { isWhole } from "../session/Repair.ts"
import { type CheckedRoot, findingAt, type Found, parentOf } from "./CheckedRoot.ts"
import { checkBlob, checkContent, checkStream, type Content } from "./FileCheck.ts"
import { checkFolders, foreign, unusable } from "./FolderCheck.ts"
import { checkLog, type Compared, follow, type Followed, shownSeq } from "./LogCheck.ts"

/** A checked session: its name, its index entry unless its folder is refused, and whether its files are behind the log. */
export interface Seen {
  readonly session: string
  readonly entry: IndexEntry | undefined
  readonly behind: boolean
}

/** The result of one comparison; `moved` if the files changed meanwhile. */
export interface Looked {
  readonly entry: IndexEntry | undefined
  readonly findings: Found
  readonly moved: boolean
}

/** Attempts for a folder that changes during the comparison. */
export const attempts = 4

type Produced = Content | Stream.Stream<Uint8Array, ReadError>

const isProduced = (content: Produced): content is Stream.Stream<Uint8Array, ReadError> =>
  typeof content !== "string" && !(content instanceof Uint8Array)

/** The contents of the values and, if the logs match, of the context. With changed lines, it would differ too. */
const contentsOf = Effect.fnUntraced(function* (
  { files }: CheckedRoot,
  { folder, id, log }: Compared,
  address: KeptAddress,
  { rendering }: Followed,
  whole: boolean
) {
  const values = valueFiles(rendering.fold, address, (latest) => answerFrom(latest, readerOf(log, id)))
  const context: ReadonlyMap<string, Content> = whole
    ? (yield* contextOf(id, address.session, rendering.pack, (from, bytes) =>
        files.digest(`${folder}/messages.jsonl`, from, bytes)
      )).files
    : new Map()
  return new Map<string, Produced>([...values, ...context])
})

/** Checks every file and entry of the folder; `followed` says how far the two logs match. */
const checkAll = Effect.fnUntraced(function* (
  root: CheckedRoot,
  compared: Compared,
  address: KeptAddress,
  followed: Followed
) {
  const { folder, id } = compared
  const at = (name: string) => `${folder}/${name}`
  const whole = followed.logs.every(({ progress }) => progress.right)
  const contents = yield* contentsOf(root, compared, address, followed, whole)
  const lasting = [...followed.blobs].filter((hash) => !contents.has(blobFile(hash)))
  const expected = new Set(
    [...Rendering.logs, ...contents.keys(), ...lasting.map(blobFile), `${contextPrefix}.`].map(at)
  )
  const { found, within } = yield* checkFolders(root, new Set([...expected].map(parentOf)), id)
  const open = (name: string) => !within(at(name))
  const ofLogs = yield* Effect.forEach(followed.logs, (one) => checkLog(root, compared, followed, one))
  const ofContents = yield* Effect.forEach(
    [...contents].filter(([name]) => open(name)),
    ([name, content]) =>
      isProduced(content) ? checkStream(root, at(name), id, content) : checkContent(root, at(name), id, content)
  )
  const ofBlobs = yield* Effect.forEach(
    lasting.filter((hash) => open(blobFile(hash))),
    (hash) => checkBlob(root, folder, id, hash)
  )
  const others = (yield* foreign(root, folder, expected, id)).filter(
    ({ path }) => (whole || !path.startsWith(at(contextPrefix))) && found.every((one) => one.path !== path)
  )
  return [found, ...ofLogs, ...ofContents, ...ofBlobs, others].flat()
})

/** A pruned session cannot be rendered: its files are not compared. */
const unlooked = (folder: string, id: string, floor: number): Looked => ({
  entry: undefined,
  moved: false,
  findings: [
    findingAt(folder, id, "pruned", `its events up to ${floor} were pruned: its files are not compared with the log`)
  ]
})

/** Compares one session once. */
const look = Effect.fnUntraced(function* (root: CheckedRoot, id: string, address: KeptAddress) {
  const folder = sessionFolder(address)
  const compared: Compared = { id, folder, log: yield* EventLog }
  yield* isWhole(compared.log, id)
  const refused = yield* unusable(root, folder, id)
  if (refused !== undefined) return { entry: undefined, moved: false, findings: [refused] } satisfies Looked
  const followed = yield* follow(root, compared)
  const { behind, rendering, seq } = followed
  const findings = yield* checkAll(root, compared, address, followed)
  const late = behind
    ? [findingAt(folder, id, "behind", `its files reflect events up to ${seq}; the log holds more`)]
    : []
  return {
    entry: entryOf(rendering.fold, address.session),
    findings: [...findings, ...late],
    moved: (yield* shownSeq(root.files, folder)) !== seq
  } satisfies Looked
})

/** Compares one session. An exporter may be writing: compares again before it reports. */
export const checkSession = Effect.fnUntraced(function* (root: CheckedRoot, id: string, address: KeptAddress) {
  const once = Effect.catchTag(look(root, id, address), "CursorExpired", ({ floor }) =>
    Effect.succeed(unlooked(sessionFolder(address), id, floor))
  )
  let looked: Looked = yield* once
  for (let n = 1; n < attempts && looked.findings.length > 0 && (n === 1 || looked.moved); n++) looked = yield* once
  return looked
})
