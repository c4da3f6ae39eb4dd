/**
 * Checks `messages.jsonl` and `events.jsonl` against the log: renders it page by page up to the event that the values
 * reflect, and compares the lines. Memory is bounded by one page. Spec: FI-87 in specs/files.md.
 */
import { Effect, Option, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { EventLog, ReadError } from "@daybook/log/log/EventLog"
import type { SafeFiles } from "../disk/SafeFiles.ts"
import type { SafeError } from "../layout/Errors.ts"
import { linesFrom, readerOf } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import type { CheckedRoot } from "./CheckedRoot.ts"
import { changed, checkFile } from "./FileCheck.ts"
import * as Progress from "./Progress.ts"

const decodeSeq = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ seq: Schema.Int })))

/** The last event that the values reflect, as `meta.json` names it; undefined if it cannot be read. */
export const shownSeq = (files: SafeFiles, folder: string): Effect.Effect<number | undefined> =>
  Effect.map(
    Effect.orElseSucceed(files.readRange(`${folder}/meta.json`, 0, 64 * 1024), () => new Uint8Array()),
    (bytes) => Option.getOrUndefined(decodeSeq(Buffer.from(bytes).toString("utf8")))?.seq
  )

/** A session's folder and the log that it is compared with. */
export interface Compared {
  readonly id: string
  readonly folder: string
  readonly log: EventLog["Type"]
}

/** The rendering that the values should reflect, and how far the files match on the way to it. */
export interface Followed {
  readonly rendering: Rendering.Rendering
  /** The cursor behind the last event that was rendered. */
  readonly cursor: number
  /** The event that the values reflect, and whether the log holds more. */
  readonly seq: number | undefined
  readonly behind: boolean
  readonly logs: ReadonlyArray<{ readonly name: Rendering.LogName; readonly progress: Progress.Progress }>
  /** The hashes of the blobs that the rows name. */
  readonly blobs: ReadonlySet<string>
}

/** Renders the log and compares the lines; follows a growing log until the values reflect its end. */
export const follow = Effect.fnUntraced(function* (
  { files }: CheckedRoot,
  { folder, id, log }: Compared
): Effect.fn.Return<Followed, ReadError | SafeError> {
  const read = readerOf(log, id)
  const logs = Rendering.logs.map((name) => ({ name, progress: Progress.make() }))
  const blobs = new Set<string>()
  let [rendering, cursor, seq, behind] = [Rendering.initial, -1, yield* shownSeq(files, folder), false]
  /** Compares the logs with the next page of events, up to the one that the values reflect. */
  const next = Effect.gen(function* () {
    const page = yield* log.read({ sessionID: SessionID.make(id), after: cursor })
    const events = page.events.filter((event) => seq === undefined || event.seq <= seq)
    const { added, rendering: further } = Rendering.evolveAll(rendering, events)
    rendering = further
    behind = events.length < page.events.length
    cursor = behind ? rendering.fold.seq : page.cursor
    for (const { name, progress } of logs)
      yield* Progress.compare(
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
  progress: Progress.Progress,
  size: number
) {
  for (let [further, after, hasMore] = [rendering, cursor, true]; hasMore && progress.right && progress.at < size;) {
    const page = yield* log.read({ sessionID: SessionID.make(id), after })
    const next = Rendering.evolveAll(further, page.events)
    const { bytes } = linesFrom(Rendering.piecesOf(next.added, name), readerOf(log, id))
    yield* Progress.compare(files, `${folder}/${name}`, progress, bytes, size)
    further = next.rendering
    after = page.cursor
    hasMore = page.hasMore
  }
})

/** Checks one followed log. It may go on after the values' end: rows may exist before the values reflect them. */
export const checkLog = (
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
