/**
 * Whether the files under a root are what the log says: renders every session again, as far as its files say that they
 * tell, and compares every byte, permissions, and what else lies there. It changes nothing, needs no ledger, and may run
 * beside an exporter. Memory is that of one portion of a log. Spec: FI-87, FI-88 in specs/files.md.
 */
import { realpath } from "node:fs/promises"
import {
  EventLog,
  SessionID,
  SessionNotFound,
  SessionStore,
  type InvalidInput,
  type ReadError,
  type StoreError
} from "@daybook/core"
import { Chunk, Effect, Option, Schema, Stream } from "effect"
import { RootUnusable, type Finding, type FindingKind, type SafeError } from "./Errors.ts"
import { indexFiles, type IndexEntry } from "./IndexFiles.ts"
import { sumOf } from "./Keeper.ts"
import { addressOf, indexFolder, sessionFolder, type KeptAddress, type SharedSpaces } from "./Layout.ts"
import { modesOf, type Modes } from "./Modes.ts"
import * as Rendering from "./Rendering.ts"
import * as SafeFiles from "./SafeFiles.ts"
import { blobFile, contextOf, contextPrefix } from "./SessionContext.ts"
import { entryOf } from "./SessionWriter.ts"
import { valueFiles } from "./Values.ts"

export interface VerifyOptions {
  readonly root: string
  /** This session alone; the index is not looked at then. */
  readonly sessionID?: string | undefined
  readonly uid?: number | undefined
  readonly shared?: SharedSpaces | undefined
}

/** What keeps a verification from going on. What is wrong with files is a finding. */
export type VerifyError = RootUnusable | SafeError | ReadError | StoreError | InvalidInput

type Content = string | Uint8Array
type Found = ReadonlyArray<Finding>

const Told = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ seq: Schema.Int })))

/** Times that a session is looked at again because its files moved on meanwhile. */
const attempts = 3

const make = (files: SafeFiles.SafeFiles, modes: Modes) => {
  /** Looks at one file; a link or a folder in its place is a finding. */
  const look = (path: string, sessionID: string | undefined) => {
    const finding = (kind: FindingKind, details: string): Finding => ({
      kind,
      path,
      ...(sessionID === undefined ? {} : { sessionID }),
      details
    })
    return {
      finding,
      stamp: Effect.either(files.stamp(path)).pipe(
        Effect.flatMap((stamp) =>
          stamp._tag === "Right"
            ? Effect.succeed({ stamp: stamp.right, findings: [] as Found })
            : stamp.left._tag === "PathRefused"
              ? Effect.succeed({ stamp: undefined, findings: [finding("refused", stamp.left.message)] })
              : Effect.fail(stamp.left)
        )
      )
    }
  }

  /** Presence, permissions and, by `same`, content of one file. */
  const check = (
    path: string,
    sessionID: string | undefined,
    same: (stamp: SafeFiles.Stamp) => Effect.Effect<Option.Option<readonly [FindingKind, string]>, SafeError>
  ): Effect.Effect<Found, SafeError> =>
    Effect.gen(function* () {
      const { finding, stamp } = look(path, sessionID)
      const looked = yield* stamp
      if (looked.findings.length > 0) return looked.findings
      if (looked.stamp === undefined) return [finding("missing", "the file is not there")]
      const mode = modes.file(path)
      const wrong =
        looked.stamp.mode === mode
          ? []
          : [finding("mode", `its permissions are ${looked.stamp.mode.toString(8)}, not ${mode.toString(8)}`)]
      return Option.match(yield* same(looked.stamp), {
        onNone: () => wrong,
        onSome: ([kind, details]) => [...wrong, finding(kind, details)]
      })
    })

  const changed = Option.some(["changed", "its content is not what the log says"] as const)

  const checkContent = (path: string, sessionID: string | undefined, content: Content) =>
    check(path, sessionID, ({ size }) => {
      const sum = sumOf(content)
      if (size !== sum.size) return Effect.succeed(changed)
      return Effect.map(files.readRange(path, 0, size), (there) =>
        Buffer.compare(there, Buffer.from(content)) === 0 ? Option.none() : changed
      )
    })

  /** A log, compared as it is rendered: how far it is right, and whether it was so far. */
  interface Compared {
    at: number
    right: boolean
  }

  const compare = (path: string, compared: Compared, text: string) =>
    Effect.gen(function* () {
      const bytes = Buffer.from(text, "utf8")
      if (!compared.right || bytes.length === 0) return
      const there = yield* files.readRange(path, compared.at, bytes.length)
      compared.right = Buffer.compare(there, bytes) === 0
      compared.at += bytes.length
    }).pipe(
      Effect.catchAll((error) =>
        // What stands there is reported when its end is looked at.
        error._tag === "PathRefused" || error.code === "ENOENT"
          ? Effect.sync(() => void (compared.right = false))
          : Effect.fail(error)
      )
    )

  const checkLog = (path: string, sessionID: string, { at, right }: Compared) =>
    check(path, sessionID, ({ size }) =>
      Effect.gen(function* () {
        if (right && size === at) return Option.none()
        const [last] = size === 0 ? [10] : yield* files.readRange(path, size - 1, 1)
        return last === 10 ? changed : Option.some(["torn", "its last line has no end"] as const)
      })
    )

  /** Everything in a folder and below it that is not expected there. */
  const foreign = (
    folder: string,
    expected: ReadonlySet<string>,
    sessionID?: string
  ): Effect.Effect<Found, SafeError> =>
    Effect.gen(function* () {
      const found: Array<Finding> = []
      for (const entry of yield* files.list(folder)) {
        const path = `${folder}/${entry.name}`
        if (expected.has(path)) continue
        if (entry.folder && [...expected].some((name) => name.startsWith(`${path}/`))) {
          found.push(...(yield* foreign(path, expected, sessionID)))
        } else if (!SafeFiles.isAside(entry.name)) {
          found.push(look(path, sessionID).finding("foreign", "Daybook did not put this here"))
        }
      }
      return found
    })

  const folderMode = (path: string, sessionID?: string): Effect.Effect<Found, SafeError> =>
    Effect.map(files.folderMode(path), (mode) =>
      mode === undefined || mode === modes.folder(path)
        ? []
        : [look(path, sessionID).finding("mode", `the folder's permissions are ${mode.toString(8)}`)]
    )

  /** One session at one look: what was found, what its index has to say, and whether its files moved meanwhile. */
  const lookAt = Effect.fnUntraced(function* (id: string, address: KeptAddress) {
    const log = yield* EventLog
    const folder = sessionFolder(address)
    const at = (name: string) => `${folder}/${name}`
    const told = Effect.map(
      Effect.orElseSucceed(files.readRange(at("meta.json"), 0, 64 * 1024), () => new Uint8Array()),
      (bytes) => Option.getOrUndefined(Told(Buffer.from(bytes).toString("utf8")))?.seq
    )
    const reached: Found | undefined = yield* files.reach(folder).pipe(
      Effect.map((there) => (there ? [] : undefined)),
      Effect.catchTag("PathRefused", (error) => Effect.succeed([look(folder, id).finding("refused", error.message)]))
    )
    if (reached === undefined) {
      return {
        entry: undefined,
        moved: false,
        findings: [look(folder, id).finding("missing", "the session's folder is not there")]
      }
    }
    if (reached.length > 0) return { entry: undefined, moved: false, findings: reached }
    const seq = yield* told
    const logs = Rendering.logs.map((name) => ({ name, compared: { at: 0, right: true } }))
    const blobs = new Set<string>()
    let [rendering, after, behind] = [Rendering.initial, -1, false]
    while (true) {
      const page = yield* log.read({ sessionID: SessionID.make(id), after })
      const events = page.events.filter((event) => seq === undefined || event.seq <= seq)
      const next = Rendering.evolveAll(rendering, events)
      rendering = next.rendering
      for (const { compared, name } of logs) yield* compare(at(name), compared, Rendering.textOf(next.added, name))
      for (const { hash } of next.added.blobs) blobs.add(hash)
      after = page.cursor
      behind = events.length < page.events.length
      if (!page.hasMore || behind) break
    }
    const values = valueFiles(rendering.fold, address)
    const whole = logs.every(({ compared }) => compared.right)
    // Of lines that were changed the context would say something else.
    const context: ReadonlyMap<string, Content> = whole
      ? (yield* contextOf(id, address.session, rendering.pack, (from, bytes) =>
          files.digest(at("messages.jsonl"), from, bytes)
        )).files
      : new Map()
    const contents = new Map<string, Content>([...values, ...context])
    const lasting = [...blobs].filter((hash) => !contents.has(blobFile(hash)))
    const expected = new Set([
      ...Rendering.logs.map(at),
      ...[...contents.keys()].map(at),
      ...lasting.map((hash) => at(blobFile(hash))),
      at(`${contextPrefix}.`)
    ])
    const findings = [
      ...(yield* folderMode(folder, id)),
      ...(yield* Effect.forEach(logs, ({ compared, name }) => checkLog(at(name), id, compared))).flat(),
      ...(yield* Effect.forEach(contents, ([name, content]) => checkContent(at(name), id, content))).flat(),
      ...(yield* Effect.forEach(lasting, (hash) =>
        check(at(blobFile(hash)), id, ({ size }) =>
          Effect.map(files.digest(at(blobFile(hash)), 0, size), (digest) =>
            `sha256-${digest}` === hash ? Option.none() : changed
          )
        )
      )).flat(),
      ...(yield* foreign(folder, expected, id)).filter(({ path }) => whole || !path.startsWith(at(contextPrefix))),
      ...(behind
        ? [look(folder, id).finding("behind", `its files tell of events up to ${seq}; the log holds more`)]
        : [])
    ]
    return { entry: entryOf(rendering.fold, address.session), findings, moved: (yield* told) !== seq }
  })

  const session = Effect.fnUntraced(function* (id: string, address: KeptAddress) {
    let looked = yield* lookAt(id, address)
    for (let n = 1; n < attempts && looked.moved && looked.findings.length > 0; n++) {
      looked = yield* lookAt(id, address)
    }
    return looked
  })

  /** The index of one house, and what else lies beside its sessions. */
  const house = Effect.fnUntraced(function* (index: string, entries: ReadonlyArray<IndexEntry>) {
    const wanted = indexFiles(entries)
    const beside = index.slice(0, index.lastIndexOf("/"))
    const expected = new Set([
      ...[...wanted.keys()].map((name) => `${index}/${name}`),
      ...entries.map(({ session }) => `${beside}/${session}`)
    ])
    const found = [
      ...(yield* folderMode(index)),
      ...(yield* Effect.forEach(wanted, ([name, content]) =>
        checkContent(`${index}/${name}`, undefined, content)
      )).flat(),
      ...(yield* foreign(beside, expected))
    ]
    return found
  })

  return { session, house }
}

const openRoot = (root: string) =>
  Effect.tryPromise({
    try: () => realpath(root),
    catch: () => new RootUnusable({ root, details: "there is no such folder; give the one that was exported to" })
  })

/** What is not as the log says, as it is found. Without a finding, the files equal a fresh export. */
export const verify = (options: VerifyOptions): Stream.Stream<Finding, VerifyError, EventLog | SessionStore> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const store = yield* SessionStore
      const files = SafeFiles.make({ root: yield* openRoot(options.root) })
      const uid = options.uid ?? process.getuid?.() ?? 0
      const verifier = make(files, modesOf(options.shared))
      const houses = new Map<string, Array<IndexEntry>>()

      const one = (id: string) =>
        Effect.gen(function* () {
          const { address } = yield* store.get(SessionID.make(id))
          // The address of a session that was given none holds the agent that it was made for.
          const [first] = (yield* (yield* EventLog).read({ sessionID: SessionID.make(id), limit: 1 })).events
          const agent = first?.type === "session.created" ? first.data.agent : undefined
          const kept = addressOf({ id, agent }, address, uid)
          if (kept === undefined) return []
          const looked = yield* verifier.session(id, kept)
          const index = indexFolder(kept)
          const entries = houses.get(index) ?? []
          if (looked.entry !== undefined) entries.push(looked.entry)
          houses.set(index, entries)
          return looked.findings
        }).pipe(
          // Removed since it was listed.
          Effect.catchTag("SessionNotFound", (error) =>
            options.sessionID === undefined ? Effect.succeed<Found>([]) : Effect.fail(error)
          )
        )

      if (options.sessionID !== undefined) {
        const id = options.sessionID
        if (!Schema.is(SessionID)(id)) return yield* new SessionNotFound({ sessionID: id })
        return Stream.flattenIterables(Stream.fromEffect(one(id)))
      }
      const sessions = Stream.paginateChunkEffect(undefined as string | undefined, (cursor) =>
        Effect.map(store.list({ limit: 100, ...(cursor === undefined ? {} : { cursor }) }), (page) => [
          Chunk.fromIterable(page.items.map(({ id }) => id)),
          page.cursor === undefined ? Option.none() : Option.some(page.cursor)
        ])
      )
      const found = sessions.pipe(Stream.mapEffect(one), Stream.flattenIterables)
      const ofHouses = Stream.suspend(() => Stream.fromIterable(houses)).pipe(
        Stream.mapEffect(([index, entries]) => verifier.house(index, entries)),
        Stream.flattenIterables
      )
      return Stream.concat(found, ofHouses)
    })
  )
