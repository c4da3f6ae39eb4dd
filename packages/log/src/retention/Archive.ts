/**
 * Archives of removed events, as lines and as files: a header, one line per removed event, and an end with the checksum of all lines before it.
 * An archive holds one contiguous range of one session, as stored, so that it can be put back exactly. Spec: RT-20..RT-23,
 * RT-25.
 */
import { createHash, type Hash, randomBytes } from "node:crypto"
import { createReadStream } from "node:fs"
import { type FileHandle, open, readdir, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { createGunzip, gzip } from "node:zlib"
import { Effect, Either, Schema, Stream } from "effect"
import { EventID, SessionID } from "../domain/Identifiers.ts"
import { SessionBase } from "../projection/SessionBase.ts"
import { makeFolders, sync } from "../storage/PrivateFile.ts"
import { isAlive } from "../support/Alive.ts"
import { codeOf, messageOf } from "../support/SystemError.ts"

/** An archive cannot be written, read or put back. Nothing was changed. */
export class ArchiveUnusable extends Schema.TaggedError<ArchiveUnusable>("@daybook/log/ArchiveUnusable")(
  "ArchiveUnusable",
  { file: Schema.String, details: Schema.String }
) {
  override get message() {
    return `${this.file}: ${this.details}`
  }
}

const exact = { onExcessProperty: "error" } as const

/** The first line: what the archive holds, and the floor's state before the events were removed. */
export const Header = Schema.Struct({
  archive: Schema.Literal("daybook"),
  version: Schema.Literal(1),
  database: Schema.String,
  sessionID: SessionID,
  incarnation: Schema.Int,
  from: Schema.Int,
  /** The floor after, and the last event. */
  to: Schema.Int,
  /** The session's head when the archive was written. */
  head: Schema.Int,
  /** The state at `from`; null for the beginning of the log. */
  base: Schema.NullOr(Schema.Struct({ ...SessionBase.fields, position: Schema.Int }))
})
export type Header = typeof Header.Type

export const StoredEvent = Schema.Struct({
  position: Schema.Int,
  seq: Schema.Int,
  id: EventID,
  type: Schema.String,
  created: Schema.Int,
  data: Schema.String,
  checksum: Schema.Int
})
export type StoredEvent = typeof StoredEvent.Type

/** The last line. */
export const End = Schema.Struct({
  end: Schema.Literal(true),
  events: Schema.Int,
  /** SHA-256 of all lines before this one, with their line ends. */
  sha256: Schema.String
})
export type End = typeof End.Type

type Line = Header | StoredEvent | End

const lineOf = (line: Line): string => `${JSON.stringify(line)}\n`

const Json = {
  header: Schema.decodeUnknownEither(Schema.parseJson(Header), exact),
  event: Schema.decodeUnknownEither(Schema.parseJson(StoredEvent), exact),
  end: Schema.decodeUnknownEither(Schema.parseJson(End), exact)
}

const decoding =
  <A>(what: string, decode: (text: unknown) => Either.Either<A, { readonly message: string }>) =>
  (text: string): Either.Either<A, string> =>
    Either.mapLeft(decode(text), () => `it has no valid ${what}`)

const headerOf = decoding("header of a Daybook archive", Json.header)
const eventOf = decoding("event on one of its lines", Json.event)
const endOf = decoding("last line: it was cut off", Json.end)

const isEnd = (text: string): boolean => text.startsWith('{"end":')

/** The name of a session's archive. Two incarnations of one id, and two ranges of one session, have different names. */
const nameOf = ({ from, incarnation, sessionID, to }: Header): string =>
  `${sessionID}.${incarnation}.${from + 1}-${to}.jsonl.gz`

// Writes and reads archives: JSON lines, with one gzip member for each page. An archive appears under its name when it
// is complete and durable.

const compress = promisify(gzip)

const attempt = <A>(file: string, run: () => Promise<A>): Effect.Effect<A, ArchiveUnusable> =>
  Effect.tryPromise({ try: run, catch: (cause) => new ArchiveUnusable({ file, details: messageOf(cause) }) })

const written = async (handle: FileHandle, hash: Hash, lines: ReadonlyArray<Line>): Promise<void> => {
  const text = lines.map(lineOf).join("")
  hash.update(text)
  await handle.writeFile(await compress(text))
}

/** The process that wrote an incomplete archive, by its name. */
const writerOf = (name: string): number => Number(/\.jsonl\.gz\.(\d+)-[0-9a-f]{8}\.part$/.exec(name)?.[1])

/** Removes what killed processes left of archives of the session. */
const removeLeft = async (folder: string, { incarnation, sessionID }: Header): Promise<void> => {
  for (const name of await readdir(folder)) {
    const pid = writerOf(name)
    if (!name.startsWith(`${sessionID}.${incarnation}.`) || Number.isNaN(pid) || isAlive(pid)) continue
    await rm(join(folder, name), { force: true })
  }
}

/** Begins an archive in the folder, which is created. Without `finish`, the scope's end removes what was written. */
export const begin = Effect.fn("Archive.begin")(function* (folder: string, header: Header) {
  const path = join(folder, nameOf(header))
  const partial = `${path}.${process.pid}-${randomBytes(4).toString("hex")}.part`
  yield* attempt(folder, () => makeFolders(folder, 0o700))
  const handle = yield* Effect.acquireRelease(
    attempt(partial, async () => {
      await removeLeft(folder, header)
      return open(partial, "wx", 0o600)
    }),
    (handle) => Effect.promise(() => handle.close().then(() => rm(partial, { force: true })))
  )
  const hash = createHash("sha256")
  let events = 0
  yield* attempt(partial, () => written(handle, hash, [header]))
  return {
    add: (page: ReadonlyArray<StoredEvent>) =>
      attempt(partial, async () => {
        events += page.length
        await written(handle, hash, page)
      }),
    finish: attempt(path, async () => {
      const end = lineOf({ end: true, events, sha256: hash.digest("hex") })
      await handle.writeFile(await compress(end))
      await handle.sync()
      // A prune that was killed after this step writes the same archive again.
      await rename(partial, path)
      await sync(folder)
      return path
    })
  }
})

/** An archive's header and its events, page by page. */
export interface Reading {
  readonly header: Header
  readonly events: Stream.Stream<ReadonlyArray<StoredEvent>, ArchiveUnusable>
}

const pageLines = 256

/** UTF-16 code units of a line: one event. Bounds the memory that a foreign file can take. */
const longestLine = 256 * 1024 * 1024

const unreadable: { readonly [Code in string]?: string } = {
  ENOENT: "there is no such file",
  EISDIR: "this is a folder, not an archive",
  Z_BUF_ERROR: "it was cut off",
  Z_DATA_ERROR: "it is damaged, or is no compressed archive"
}

const linesOf = (file: string): Stream.Stream<string, ArchiveUnusable> => {
  const failed = (cause: unknown) =>
    new ArchiveUnusable({ file, details: unreadable[codeOf(cause)] ?? messageOf(cause) })
  return Stream.suspend(() => {
    const source = createReadStream(file)
    const plain = createGunzip({ chunkSize: 1024 * 1024 })
    source.on("error", (cause) => plain.destroy(cause))
    return Stream.fromAsyncIterable(source.pipe(plain) as AsyncIterable<Uint8Array>, failed).pipe(
      Stream.ensuring(Effect.sync(() => source.destroy())),
      Stream.decodeText(),
      Stream.mapAccumEffect("", (rest, text) => {
        const lines = (rest + text).split("\n")
        const last = lines.pop() ?? ""
        return last.length > longestLine ? Effect.fail(failed("a line is too long")) : Effect.succeed([last, lines])
      }),
      Stream.flattenIterables
    )
  })
}

const readHeader = (file: string): Effect.Effect<Header, ArchiveUnusable> =>
  Effect.flatMap(Stream.runHead(linesOf(file)), (line) =>
    Either.mapLeft(
      headerOf(line._tag === "Some" ? line.value : ""),
      (details) => new ArchiveUnusable({ file, details })
    )
  )

type Progress = { readonly hash: Hash; lines: number; events: number; seq: number; ended: boolean }

const checked = (progress: Progress, header: Header, text: string): Either.Either<StoredEvent | undefined, string> =>
  Either.gen(function* () {
    if (progress.ended) return yield* Either.left("it has lines after its end")
    if (isEnd(text)) {
      const { events, sha256 } = yield* endOf(text)
      const { hash } = progress
      progress.ended = true
      if (events !== progress.events || progress.seq !== header.to || hash.digest("hex") !== sha256) {
        return yield* Either.left("its checksum differs: it was changed or is damaged")
      }
      return undefined
    }
    progress.hash.update(`${text}\n`)
    // The first line is the header.
    if (progress.lines++ === 0) return undefined
    const event = yield* eventOf(text)
    if (event.seq !== progress.seq + 1) return yield* Either.left(`event ${progress.seq + 1} is missing`)
    progress.events += 1
    progress.seq = event.seq
    return event
  })

/** Opens an archive. Its events are checked as they are read; the stream fails at the first fault, or at its end. */
export const read = Effect.fn("Archive.read")(function* (file: string) {
  const header = yield* readHeader(file)
  const unusable = (details: string) => new ArchiveUnusable({ file, details })
  const events = Stream.unwrap(
    Effect.sync(() => {
      const progress: Progress = { hash: createHash("sha256"), lines: 0, events: 0, seq: header.from, ended: false }
      const complete = Effect.suspend(() => (progress.ended ? Effect.void : unusable("it was cut off")))
      return linesOf(file).pipe(
        Stream.mapEffect((text) => Either.mapLeft(checked(progress, header, text), unusable)),
        Stream.filter((event) => event !== undefined),
        Stream.grouped(pageLines),
        Stream.map((page): ReadonlyArray<StoredEvent> => [...page]),
        Stream.concat(Stream.drain(Stream.fromEffect(complete)))
      )
    })
  )
  return { header, events } satisfies Reading
})
