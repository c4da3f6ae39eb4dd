/**
 * Compares one session's folder, one index, and unknown entries with the log. Changes nothing and follows no link.
 * Spec: FI-87, FI-88 in specs/files.md.
 */
import { Effect, Option, Schema, Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { levels } from "../disk/Houses.ts"
import * as SafeFiles from "../disk/SafeFiles.ts"
import type { Finding, FindingKind, SafeError } from "../layout/Errors.ts"
import { type KeptAddress, sessionFolder } from "../layout/Layout.ts"
import { isPermitted, type Modes } from "../layout/Modes.ts"
import { sumOf } from "../record/TrackedFolder.ts"
import { entryOf, type IndexEntry, indexFiles } from "../render/IndexFiles.ts"
import { answerFrom, linesFrom, readerOf } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import { blobFile, contextOf, contextPrefix } from "../render/SessionContext.ts"
import { valueFiles } from "../render/Values.ts"

type Content = string | Uint8Array
export type Found = ReadonlyArray<Finding>

/** A verified session: its name, and its index entry unless its folder is refused. */
export interface Seen {
  readonly session: string
  readonly entry: IndexEntry | undefined
}

const Told = Schema.decodeUnknownOption(Schema.parseJson(Schema.Struct({ seq: Schema.Int })))

/** Attempts for a folder that changes during the comparison. */
export const attempts = 4

interface Permitted {
  readonly mode: number
  readonly gid?: number | undefined
}

const wrongMode = (whose: string, found: Permitted, wanted: Permitted): string =>
  found.mode === wanted.mode
    ? `${whose} group is ${found.gid}, not ${wanted.gid}`
    : `${whose} permissions are ${found.mode.toString(8)}, not ${wanted.mode.toString(8)}`

export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/"))

/** The folder and all of its parents. */
const wayTo = (folder: string): ReadonlyArray<string> =>
  folder.split("/").map((_, n, names) => names.slice(0, n + 1).join("/"))

/** The comparisons for the files under one root. */
export const make = (files: SafeFiles.SafeFiles, modes: Modes) => {
  /** Takes the stamp of one file; a link or a folder in its place is a finding. */
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

  /** Checks existence, permissions and, with `same`, the content of one file. */
  const check = <E, R>(
    path: string,
    sessionID: string | undefined,
    same: (stamp: SafeFiles.Stamp) => Effect.Effect<Option.Option<readonly [FindingKind, string]>, E, R>
  ): Effect.Effect<Found, E | SafeError, R> =>
    Effect.gen(function* () {
      const { finding, stamp } = look(path, sessionID)
      const looked = yield* stamp
      if (looked.findings.length > 0) return looked.findings
      if (looked.stamp === undefined) return [finding("missing", "the file does not exist")]
      const { gid, mode } = looked.stamp
      const wrong = isPermitted(modes, path, looked.stamp)
        ? []
        : [finding("mode", wrongMode("its", { gid, mode }, { mode: modes.file(path), gid: modes.group(path) }))]
      return Option.match(yield* same(looked.stamp), {
        onNone: () => wrong,
        onSome: ([kind, details]) => [...wrong, finding(kind, details)]
      })
    })

  const changed = Option.some(["changed", "its content differs from the log"] as const)

  const checkContent = (path: string, sessionID: string | undefined, content: Content) =>
    check(path, sessionID, ({ size }) => {
      const sum = sumOf(content)
      if (size !== sum.size) return Effect.succeed(changed)
      return Effect.map(files.readRange(path, 0, size), (there) =>
        Buffer.compare(there, Buffer.from(content)) === 0 ? Option.none() : changed
      )
    })

  /** The progress of a log comparison: the offset reached, and whether all bytes before it match. */
  interface Compared {
    at: number
    right: boolean
  }

  /** `through` is where the log ends, if that may be within the text. */
  const compare = <E>(
    path: string,
    compared: Compared,
    all: Stream.Stream<Uint8Array, E>,
    through = Number.POSITIVE_INFINITY
  ): Effect.Effect<void, E | SafeError> =>
    all.pipe(
      Stream.takeWhile(() => compared.right && compared.at < through),
      Stream.runForEach((piece) => {
        const bytes = piece.subarray(0, through - compared.at)
        return files.readRange(path, compared.at, bytes.length).pipe(
          Effect.map((there) => {
            compared.right = Buffer.compare(there, bytes) === 0
            compared.at += bytes.length
          }),
          Effect.catchAll((error) =>
            // The final check reports what is there.
            error._tag === "PathRefused" || error.code === "ENOENT"
              ? Effect.sync(() => void (compared.right = false))
              : Effect.fail(error)
          )
        )
      })
    )

  /** Compares a file with content that is produced on demand. */
  const checkStream = <E>(path: string, sessionID: string, bytes: Stream.Stream<Uint8Array, E>) =>
    check(path, sessionID, ({ size }) => {
      const compared: Compared = { at: 0, right: true }
      return Effect.map(compare(path, compared, bytes), () =>
        compared.right && compared.at === size ? Option.none() : changed
      )
    })

  /** With `ahead`, continues after the recorded end: rows may exist before the values reflect them. */
  const checkLog = <E, R>(
    path: string,
    sessionID: string,
    compared: Compared,
    ahead: (size: number) => Effect.Effect<void, E, R>
  ) =>
    check(path, sessionID, ({ size }) =>
      Effect.gen(function* () {
        if (compared.right && size > compared.at) yield* ahead(size)
        if (compared.right && size === compared.at) return Option.none()
        const [last] = size === 0 ? [10] : yield* files.readRange(path, size - 1, 1)
        return last === 10 ? changed : Option.some(["torn", "its last line has no newline"] as const)
      })
    )

  /** Whether the folder holds only asides, which outlive a removed session. */
  const asidesOnly = (folder: string): Effect.Effect<boolean, SafeError> =>
    Effect.gen(function* () {
      const entries = yield* files.list(folder)
      for (const entry of entries) {
        if (SafeFiles.isAside(entry.name)) continue
        if (!entry.folder || !(yield* asidesOnly(`${folder}/${entry.name}`))) return false
      }
      return entries.length > 0
    })

  /** Everything in the folder and below it that is not expected. */
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
        } else if (!SafeFiles.isAside(entry.name) && !(entry.folder && (yield* asidesOnly(path)))) {
          found.push(look(path, sessionID).finding("foreign", "Daybook did not put this here"))
        }
      }
      return found
    })

  /** Checks one folder: that it exists, is not a link, and has its permissions. */
  const folder = (path: string, sessionID?: string): Effect.Effect<Found, SafeError> =>
    Effect.gen(function* () {
      const { finding } = look(path, sessionID)
      if (!(yield* files.reach(path))) return [finding("missing", "the folder does not exist")]
      const found = yield* files.folderMode(path)
      const wanted = { mode: modes.folder(path), gid: modes.group(path) }
      return found === undefined || (found.mode === wanted.mode && (wanted.gid ?? found.gid) === found.gid)
        ? []
        : [finding("mode", wrongMode("the folder's", found, wanted))]
    }).pipe(
      Effect.catchTag("PathRefused", (error) =>
        Effect.succeed([look(error.path.slice(files.root.length + 1), sessionID).finding("refused", error.message)])
      )
    )

  /** Checks folders, parents first; skips what is below one that cannot be used. */
  const folders = (paths: ReadonlySet<string>, sessionID?: string) =>
    Effect.gen(function* () {
      const found: Array<Finding> = []
      const closed: Array<string> = []
      const within = (path: string) => closed.some((above) => path.startsWith(`${above}/`))
      for (const path of [...paths].toSorted()) {
        if (within(path)) continue
        const findings = yield* folder(path, sessionID)
        if (findings.some(({ kind }) => kind !== "mode")) closed.push(path)
        found.push(...findings)
      }
      return { found, within }
    })

  /** Why the session's folder cannot be compared, if it cannot. */
  const inFolder = (path: string, id: string): Effect.Effect<Finding | undefined, SafeError> =>
    files.reach(path).pipe(
      Effect.map((there) =>
        there ? undefined : look(path, id).finding("missing", "the session's folder does not exist")
      ),
      Effect.catchTag("PathRefused", (error) => Effect.succeed(look(path, id).finding("refused", error.message)))
    )

  /** Compares one session once: the findings, its index entry, and whether its files changed meanwhile. */
  const lookAt = Effect.fnUntraced(function* (id: string, address: KeptAddress) {
    const log = yield* EventLog
    const read = readerOf(log, id)
    const folder = sessionFolder(address)
    const at = (name: string) => `${folder}/${name}`
    const told = Effect.map(
      Effect.orElseSucceed(files.readRange(at("meta.json"), 0, 64 * 1024), () => new Uint8Array()),
      (bytes) => Option.getOrUndefined(Told(Buffer.from(bytes).toString("utf8")))?.seq
    )
    const there = yield* inFolder(folder, id)
    if (there !== undefined) return { entry: undefined, moved: false, findings: [there] }
    const logs = Rendering.logs.map((name) => ({ name, compared: { at: 0, right: true } }))
    const blobs = new Set<string>()
    let [rendering, cursor, seq, behind] = [Rendering.initial, -1, yield* told, false]
    /** Compares the logs with the next page of events, up to the one that the values reflect. */
    const next = Effect.gen(function* () {
      const page = yield* log.read({ sessionID: SessionID.make(id), after: cursor })
      const events = page.events.filter((event) => seq === undefined || event.seq <= seq)
      const { added, rendering: further } = Rendering.evolveAll(rendering, events)
      rendering = further
      behind = events.length < page.events.length
      cursor = behind ? rendering.fold.seq : page.cursor
      for (const { compared, name } of logs)
        yield* compare(at(name), compared, linesFrom(Rendering.piecesOf(added, name), read).bytes)
      for (const { hash } of added.blobs) blobs.add(hash)
      return page.hasMore && !behind
    })
    while (true) {
      while (yield* next) continue
      // A growing log is followed until the values reflect its end.
      const now = yield* told
      if (!behind || now === seq) break
      seq = now
    }
    const values = valueFiles(rendering.fold, address, (latest) => answerFrom(latest, read))
    const whole = logs.every(({ compared }) => compared.right)
    // With changed lines, the context would differ too.
    const context: ReadonlyMap<string, Content> = whole
      ? (yield* contextOf(id, address.session, rendering.pack, (from, bytes) =>
          files.digest(at("messages.jsonl"), from, bytes)
        )).files
      : new Map()
    const contents = new Map<string, Content | Stream.Stream<Uint8Array, ReadError>>([...values, ...context])
    const lasting = [...blobs].filter((hash) => !contents.has(blobFile(hash)))
    const expected = new Set([
      ...Rendering.logs.map(at),
      ...[...contents.keys()].map(at),
      ...lasting.map((hash) => at(blobFile(hash))),
      at(`${contextPrefix}.`)
    ])
    const { found, within } = yield* folders(new Set([...expected].map(parentOf)), id)
    const open = (name: string) => !within(at(name))
    const ahead = (name: Rendering.LogName, compared: Compared, size: number) =>
      Effect.gen(function* () {
        for (
          let [further, after, hasMore] = [rendering, cursor, true];
          hasMore && compared.right && compared.at < size;
        ) {
          const page = yield* log.read({ sessionID: SessionID.make(id), after })
          const next = Rendering.evolveAll(further, page.events)
          yield* compare(at(name), compared, linesFrom(Rendering.piecesOf(next.added, name), read).bytes, size)
          further = next.rendering
          after = page.cursor
          hasMore = page.hasMore
        }
      })
    const findings = [
      ...found,
      ...(yield* Effect.forEach(logs, ({ compared, name }) =>
        checkLog(at(name), id, compared, (size) => ahead(name, compared, size))
      )).flat(),
      ...(yield* Effect.forEach(
        [...contents].filter(([name]) => open(name)),
        ([name, content]) =>
          typeof content === "string" || content instanceof Uint8Array
            ? checkContent(at(name), id, content)
            : checkStream(at(name), id, content)
      )).flat(),
      ...(yield* Effect.forEach(
        lasting.filter((hash) => open(blobFile(hash))),
        (hash) =>
          check(at(blobFile(hash)), id, ({ size }) =>
            Effect.map(files.digest(at(blobFile(hash)), 0, size), (digest) =>
              `sha256-${digest}` === hash ? Option.none() : changed
            )
          )
      )).flat(),
      ...(yield* foreign(folder, expected, id)).filter(
        ({ path }) => (whole || !path.startsWith(at(contextPrefix))) && found.every((one) => one.path !== path)
      ),
      ...(behind
        ? [look(folder, id).finding("behind", `its files reflect events up to ${seq}; the log holds more`)]
        : [])
    ]
    return { entry: entryOf(rendering.fold, address.session), findings, moved: (yield* told) !== seq }
  })

  const session = Effect.fnUntraced(function* (id: string, address: KeptAddress) {
    let looked = yield* lookAt(id, address)
    // An exporter may be writing: compare again before reporting.
    for (let n = 1; n < attempts && looked.findings.length > 0 && (n === 1 || looked.moved); n++) {
      looked = yield* lookAt(id, address)
    }
    return looked
  })

  /** Checks the index of one house, and other entries beside its sessions. */
  const house = Effect.fnUntraced(function* (index: string, seen: ReadonlyArray<Seen>) {
    const entries = seen.flatMap(({ entry }) => (entry === undefined ? [] : [entry]))
    // The index entry of a session that cannot be compared is unknown.
    const whole = entries.length === seen.length
    const wanted = [...indexFiles(entries)].map(([name, content]) => [`${index}/${name}`, content] as const)
    const beside = parentOf(index)
    const expected = new Set([...wanted.map(([path]) => path), ...seen.map(({ session }) => `${beside}/${session}`)])
    const ways = whole ? wanted.flatMap(([path]) => wayTo(parentOf(path))) : []
    const { found, within } = yield* folders(new Set([...wayTo(index), ...ways]))
    if (within(`${beside}/.`)) return found
    return [
      ...found,
      ...(yield* Effect.forEach(
        wanted.filter(([path]) => whole && !within(path)),
        ([path, content]) => checkContent(path, undefined, content)
      )).flat(),
      ...(yield* foreign(beside, expected)).filter(
        ({ path }) => (whole || !path.startsWith(`${index}/`)) && found.every((one) => one.path !== path)
      )
    ]
  })

  /** Houses with files but without a session in the store; in a common root, only those of this user. */
  const strangers = Effect.fnUntraced(function* (known: ReadonlySet<string>) {
    const found: Array<Finding> = []
    const below = (path: string) =>
      Effect.map(files.list(path), (entries) =>
        entries.flatMap(({ folder, name }) => (folder ? [path === "" ? name : `${path}/${name}`] : []))
      )
    /** Why the folder cannot be read. */
    const refusedAt = (path: string) =>
      files.reach(path).pipe(
        Effect.as(undefined),
        Effect.catchTag("PathRefused", (refused) => Effect.succeed(refused))
      )
    const visit = (path: string, depth: number): Effect.Effect<void, SafeError> =>
      Effect.gen(function* () {
        const names: ReadonlyArray<string> | undefined = levels[depth]
        for (const next of yield* below(path)) {
          if (names !== undefined && !names.includes(next.slice(next.lastIndexOf("/") + 1))) continue
          const refused = yield* refusedAt(next)
          if (refused !== undefined) {
            const theirs = modes.common && depth === 1 && refused.found === "folder of another user"
            // The sessions of a known house reported it already.
            const told = [...known].some((house) => `${house}/`.startsWith(`${next}/`))
            if (!theirs && !told) found.push(look(next, undefined).finding("refused", refused.message))
          } else if (depth < levels.length - 1) yield* visit(next, depth + 1)
          else if (!known.has(next) && !(yield* asidesOnly(next))) {
            found.push(look(next, undefined).finding("foreign", "the log has no session here"))
          }
        }
      })
    yield* visit("", 0)
    return found
  })

  return { session, house, strangers }
}
