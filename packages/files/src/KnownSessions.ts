/**
 * What is remembered of sessions between portions of their logs: record, rendering, and what is known of their files. It is
 * bounded, can be forgotten at any time, and is made again from the ledger's checkpoint and the log.
 * Spec: FI-65, FI-69 in specs/files.md.
 */
import {
  SessionID,
  type CursorAhead,
  type CursorExpired,
  type EventLog,
  type EventUnreadable,
  type LogUnavailable,
  type SessionNotFound,
  type StoreError
} from "@daybook/core"
import { Effect } from "effect"
import * as Adopting from "./Adopting.ts"
import * as Keeper from "./Keeper.ts"
import type { FileRecord, SessionRecord } from "./Ledger.ts"
import * as Rendering from "./Rendering.ts"

/** What a session's export can fail with; `SessionNotFound`: it was removed meanwhile. */
export type WriteError =
  Keeper.KeepError | SessionNotFound | CursorAhead | CursorExpired | EventUnreadable | LogUnavailable | StoreError

/** A session as it is remembered. */
export interface Known {
  record: SessionRecord
  rendering: Rendering.Rendering
  readonly folder: Keeper.Folder
  /** All that its log held has been read since it was loaded. */
  whole: boolean
  /** Its files may hold more than the record knows: it was lost, or is older than they are. */
  ahead: boolean
}

/** Sessions whose folds are remembered. */
export const remembered = 64
/** Events after which a fold at rest is written down: for a long one more, so that it costs its share of each. */
export const checkpointEvery = ({ checkpointSize }: SessionRecord): number => Math.max(256, checkpointSize / 64)

export type KnownSessions = ReturnType<typeof make>

/** The sessions that one writer remembers. */
export const make = ({ keeper, log }: { readonly keeper: Keeper.Keeper; readonly log: EventLog["Type"] }) => {
  const { ledger } = keeper
  const known = new Map<string, Known>()

  /** The session's stored events after one place up to another, page by page. */
  const replay = <E>(
    id: string,
    from: Rendering.Rendering,
    through: number,
    use: (added: Rendering.Added) => Effect.Effect<void, E>
  ): Effect.Effect<Rendering.Rendering, E | WriteError> =>
    Effect.gen(function* () {
      let rendering = from
      let after = from.fold.seq
      while (after < through) {
        const page = yield* log.read({ sessionID: SessionID.make(id), after })
        const next = Rendering.evolveAll(
          rendering,
          page.events.filter(({ seq }) => seq <= through)
        )
        yield* use(next.added)
        rendering = next.rendering
        if (!page.hasMore) break
        after = page.cursor
      }
      return rendering
    })

  const nothing = () => Effect.void

  /** Keeps files and session, and a checkpoint when enough has come since the last. */
  const keep = (session: Known, changes: ReadonlyMap<string, FileRecord>, every: number) =>
    Effect.suspend(() => {
      const { folder, record, rendering } = session
      const text = record.seq - record.checkpointSeq >= every ? Rendering.toText(rendering) : undefined
      if (text !== undefined) session.record = { ...record, checkpointSeq: record.seq, checkpointSize: text.length }
      return ledger.keep(folder.path, changes, session.record, text)
    })

  const remember = (id: string, session: Known): Effect.Effect<void, Keeper.KeepError> =>
    Effect.gen(function* () {
      known.delete(id)
      known.set(id, session)
      const [oldest] = known
      if (known.size <= remembered || oldest === undefined) return
      known.delete(oldest[0])
      if (oldest[1].record.seq > oldest[1].record.checkpointSeq) yield* keep(oldest[1], new Map(), 1)
    })

  const load = Effect.fnUntraced(function* (id: string): Effect.fn.Return<Known | undefined, WriteError> {
    const hot = known.get(id)
    if (hot !== undefined) {
      yield* remember(id, hot)
      return hot
    }
    const record = yield* ledger.session(id)
    if (record === undefined) return undefined
    const folder: Keeper.Folder = {
      path: record.folder,
      sessionID: id,
      records: new Map(yield* ledger.files(record.folder))
    }
    const text = yield* ledger.checkpoint(id)
    const from = text === undefined ? undefined : Rendering.fromText(text)
    const rendering = yield* replay(id, from ?? Rendering.initial, record.seq, nothing)
    yield* Keeper.sweepLeftovers(keeper, folder)
    const ahead = (yield* Adopting.told(keeper.files, folder.path)) > record.shown
    const session = { record, rendering, folder, whole: false, ahead }
    yield* remember(id, session)
    return session
  })

  return {
    replay,
    keep,
    remember,
    load,
    /** Forgets what is remembered, not what is written. */
    forget: (id: string): void => void known.delete(id)
  }
}
