/** Defines what the operations of one session writer share. Spec: FI-65, FI-69 in specs/files.md. */
import { Chunk, Effect } from "effect"
import type { EventLog } from "@daybook/log/log/EventLog"
import type { SessionStore } from "@daybook/log/store/SessionStore"
import type { State, Text } from "@daybook/transcript/Fold"
import type { Sum } from "../disk/FileCalls.ts"
import { addressOf, indexFolder, type KeptAddress, sessionFolder } from "../layout/Layout.ts"
import type { FileRecord, SessionRecord } from "../record/Records.ts"
import * as TrackedFolder from "../record/TrackedFolder.ts"
import type { Tracker } from "../record/TrackedFolder.ts"
import type { Portion } from "../render/Pieces.ts"
import * as Rendering from "../render/Rendering.ts"
import { logs } from "../render/Rendering.ts"
import type { IndexEntry } from "../render/Values.ts"
import * as Adoption from "./Adoption.ts"
import { type CachedState, replay, type WriteError } from "./CachedSession.ts"

// Caches sessions between batches; the ledger's checkpoint and the log can restore the cache.

/** The number of cached sessions, and of lines that their context packs show. One session is always cached. */
export const remembered = 64
const rememberedLines = 16_384
/** Events between two checkpoints. A larger checkpoint is written less often: its cost per event is bounded. */
export const checkpointEvery = ({ checkpointSize }: SessionRecord): number => Math.max(256, checkpointSize / 64)

export type SessionCache = ReturnType<typeof makeSessionCache>

export const makeSessionCache = ({
  tracker,
  log
}: {
  readonly tracker: TrackedFolder.Tracker
  readonly log: EventLog["Type"]
}) => {
  const { ledger } = tracker
  const known = new Map<string, CachedState>()

  const nothing = () => Effect.void

  const checkpointOf = ({ record, rendering, settled }: CachedState) => {
    const now = Rendering.toText(rendering)
    if (now !== undefined) return { seq: record.seq, text: now }
    if (settled === undefined || settled.fold.seq <= record.checkpointSeq) return undefined
    const before = Rendering.toText(settled)
    return before === undefined ? undefined : { seq: settled.fold.seq, text: before }
  }

  /** Stores the session and its files, and a checkpoint if `every` events passed since the last. */
  const keep = (session: CachedState, changes: ReadonlyMap<string, FileRecord>, every: number) =>
    Effect.suspend(() => {
      const { folder, record } = session
      const checkpoint = record.seq - record.checkpointSeq >= every ? checkpointOf(session) : undefined
      if (checkpoint !== undefined) {
        const { seq, text } = checkpoint
        session.record = { ...record, checkpointSeq: seq, checkpointSize: text.length }
      }
      return ledger.keep(folder.path, changes, session.record, checkpoint?.text)
    })

  const remember = (id: string, session: CachedState): Effect.Effect<void, TrackedFolder.TrackError> =>
    Effect.gen(function* () {
      known.delete(id)
      known.set(id, session)
      let lines = 0
      for (const { rendering } of known.values()) lines += Chunk.size(rendering.pack.shown)
      for (const [oldest, other] of known) {
        if (other === session || (known.size <= remembered && lines <= rememberedLines)) return
        known.delete(oldest)
        lines -= Chunk.size(other.rendering.pack.shown)
        if (other.record.seq > other.record.checkpointSeq) yield* keep(other, new Map(), 1)
      }
    })

  const load = Effect.fnUntraced(function* (id: string): Effect.fn.Return<CachedState | undefined, WriteError> {
    const hot = known.get(id)
    if (hot !== undefined) {
      yield* remember(id, hot)
      return hot
    }
    const record = yield* ledger.session(id)
    if (record === undefined) return undefined
    const folder = yield* TrackedFolder.recorded(ledger, record)
    const text = yield* ledger.checkpoint(id)
    const from = text === undefined ? undefined : Rendering.fromText(text)
    const rendering = yield* replay(log, id, from ?? Rendering.initial, record.seq, nothing)
    yield* TrackedFolder.sweepLeftovers(tracker, folder)
    const ahead = (yield* Adoption.told(tracker.files, folder.path)) > record.shown
    const session = { record, rendering, folder, whole: false, ahead }
    yield* remember(id, session)
    return session
  })

  return {
    keep,
    remember,
    load,
    /** Drops the session from the cache; the ledger keeps it. */
    forget: (id: string): void => void known.delete(id)
  }
}

export interface WriterOptions {
  readonly tracker: Tracker
  readonly log: EventLog["Type"]
  readonly store: SessionStore["Type"]
  /** The owner of sessions without an address. */
  readonly uid: number
}

/** The services of a writer, and what it remembers between its operations. */
export interface Writer extends WriterOptions {
  readonly cache: SessionCache
  readonly indexes: Set<string>
  readonly waiting: Map<string, Portion>
  /** The former index entries of adopted sessions, by index folder. */
  readonly adopted: Map<string, Map<string, IndexEntry>>
  /** Checksums of long answers: each is read once for its checksum and once to be written. */
  readonly answers: WeakMap<ReadonlyArray<Text>, Sum>
}

export const make = (options: WriterOptions): Writer => ({
  ...options,
  cache: makeSessionCache(options),
  indexes: new Set(),
  waiting: new Map(),
  adopted: new Map(),
  answers: new WeakMap()
})

/** Drops the cached state and the pending portion; written files stay. */
export const forget = ({ cache, waiting }: Writer, id: string): void => {
  waiting.delete(id)
  cache.forget(id)
}

/** The address that the session's files have now; undefined if it has none. */
export const addressAt = ({ uid }: Writer, id: string, fold: State): KeptAddress | undefined =>
  addressOf({ id, agent: fold.firstAgent }, fold.address, uid)

export const emptyLogs: ReadonlyMap<string, FileRecord> = new Map(logs.map((name) => [name, TrackedFolder.empty]))

/** Where the files of a session are. */
export const placeOf = (id: string, address: KeptAddress) => ({
  id,
  folder: sessionFolder(address),
  index: indexFolder(address)
})

export const unwritten = (of: Pick<SessionRecord, "id" | "folder" | "index">, first: string): SessionRecord => ({
  ...of,
  seq: -1,
  position: 0,
  first,
  shown: -1,
  checkpointSeq: -1,
  checkpointSize: 0,
  entry: null,
  behind: false
})
