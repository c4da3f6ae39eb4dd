/**
 * Compares one session's folder with the log: the two logs, the values, the context and blobs, and everything else in
 * it. Changes nothing and follows no link. Spec: FI-87, FI-88 in specs/files.md.
 */
import { Effect, Option, Schema, type Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import { type KeptAddress, sessionFolder } from "../layout/Layout.ts"
import { answerFrom, linesFrom, readerOf } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import { blobFile, contextOf, contextPrefix } from "../render/SessionContext.ts"
import { entryOf, type IndexEntry, valueFiles } from "../render/Values.ts"
import { isWhole } from "../session/Repair.ts"
import * as FileCheck from "./FileCheck.ts"
import {
  changed,
  checkBlob,
  checkContent,
  type CheckedRoot,
  checkFile,
  checkFolders,
  checkStream,
  type Content,
  findingAt,
  foreign,
  type Findings,
  parentOf,
  unusable
} from "./FileCheck.ts"

// Checks `messages.jsonl` and `events.jsonl` against the log, one page at a time.

const decodeSeq = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ seq: Schema.Int })))

/** The last event that the values reflect, as `meta.json` names it; undefined if it cannot be read. */
const shownSeq = (files: SafeFiles, folder: string): Effect.Effect<number | undefined> =>
  Effect.map(
    Effect.orElseSucceed(files.readRange(`${folder}/meta.json`, 0, 64 * 1024), () => new Uint8Array()),
    (bytes) => Option.getOrUndefined(decodeSeq(Buffer.from(bytes).toString("utf8")))?.seq
  )

type Compared = { readonly id: string; readonly folder: string; readonly log: EventLog["Type"] }

/** The rendering that the values should reflect, and how far the files match on the way to it. */
interface Followed {
  readonly rendering: Rendering.Rendering
  /** The cursor behind the last event that was rendered. */
  readonly cursor: number
  /** The event that the values reflect, and whether the log holds more. */
  readonly seq: number | undefined
  readonly behind: boolean
  readonly logs: ReadonlyArray<{ readonly name: Rendering.LogName; readonly progress: FileCheck.Progress }>
  /** The hashes of the blobs that the rows name. */
  readonly blobs: ReadonlySet<string>
}

/** Renders the log and compares the lines; follows a growing log until the values reflect its end. */
const follow = Effect.fnUntraced(function* ({ files }: CheckedRoot, { folder, id, log }: Compared) {
  const read = readerOf(log, id)
  const logs = Rendering.logs.map((name) => ({ name, progress: FileCheck.makeProgress() }))
  const blobs = new Set<string>()
  let [rendering, cursor, seq, behind] = [Rendering.initial, -1, yield* shownSeq(files, folder), false]
  /** Compares the logs with the next page of events, up to the event that the values reflect. */
  const next = Effect.gen(function* () {
    const page = yield* log.read({ sessionID: SessionID.make(id), after: cursor })
    const events = page.events.filter((event) => seq === undefined || event.seq <= seq)
    const { added, rendering: further } = Rendering.evolveAll(rendering, events)
    rendering = further
    behind = events.length < page.events.length
    cursor = behind ? rendering.fold.seq : page.cursor
    for (const { name, progress } of logs)
      yield* FileCheck.comparing(
        files,
        `${folder}/${name}`,
        progress,
        linesFrom(Rendering.piecesOf(added, name), read).bytes
      )
    for (const { hash } of added.blobs) blobs.add(hash)
    return page.hasMore && !behind
  })
  while (true) {
    while (yield* next) continue
    const now = yield* shownSeq(files, folder)
    if (!behind || now === seq) return { rendering, cursor, seq, behind, logs, blobs }
    seq = now
  }
})

/** Compares bytes after the end that the values reflect with the log's later events. */
const compareAhead = Effect.fnUntraced(function* (
  { files }: CheckedRoot,
  { folder, id, log }: Compared,
  { cursor, rendering }: Followed,
  name: Rendering.LogName,
  progress: FileCheck.Progress,
  size: number
) {
  for (let [further, after, hasMore] = [rendering, cursor, true]; hasMore && progress.right && progress.at < size;) {
    const page = yield* log.read({ sessionID: SessionID.make(id), after })
    const next = Rendering.evolveAll(further, page.events)
    const { bytes } = linesFrom(Rendering.piecesOf(next.added, name), readerOf(log, id))
    yield* FileCheck.comparing(files, `${folder}/${name}`, progress, bytes, size)
    further = next.rendering
    after = page.cursor
    hasMore = page.hasMore
  }
})

/** Checks one followed log. It may go on after the values' end: rows may exist before the values reflect them. */
const checkLog = (
  root: CheckedRoot,
  compared: Compared,
  followed: Followed,
  { name, progress }: Followed["logs"][number]
) => {
  const path = `${compared.folder}/${name}`
  return checkFile(root, path, compared.id, ({ size }) =>
    Effect.gen(function* () {
      if (progress.right && size > progress.at) yield* compareAhead(root, compared, followed, name, progress, size)
      if (progress.right && size === progress.at) return Option.none()
      const [last] = size === 0 ? [10] : yield* root.files.readRange(path, size - 1, 1)
      return last === 10 ? changed : Option.some(["torn", "its last line has no newline"] as const)
    })
  )
}

/** A checked session: its name, its index entry unless its folder is refused, and whether its files are behind the log. */
export interface Seen {
  readonly session: string
  readonly entry: IndexEntry | undefined
  readonly behind: boolean
}

/** The result of one comparison; `moved` if the files changed meanwhile. */
export interface Looked {
  readonly entry: IndexEntry | undefined
  readonly findings: Findings
  readonly moved: boolean
}

/** Comparisons of a session whose files change meanwhile; on a busy machine several in a row meet a change. */
const attempts = 12

type ExpectedContent = Content | Stream.Stream<Uint8Array, ReadError>

const isProduced = (content: ExpectedContent): content is Stream.Stream<Uint8Array, ReadError> =>
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
    ? (yield* contextOf({
        sessionID: SessionID.make(id),
        session: address.session,
        state: rendering.pack,
        digest: (from, bytes) => files.digest(`${folder}/messages.jsonl`, from, bytes)
      })).files
    : new Map()
  return new Map<string, ExpectedContent>([...values, ...context])
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
