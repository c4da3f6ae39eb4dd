/**
 * The snapshots around one turn: one before its first tool that may change files, one after its last tool. What differs
 * is stored as an event. A turn without such a tool takes none. Spec: UN-10..UN-12.
 */
import { Effect, Either, Ref } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { draft } from "@daybook/log/events/SessionEvents"
import type { Snapshots } from "../snapshot/Snapshots.ts"
import type { Snapshot } from "../snapshot/SnapshotStore.ts"
import * as Publication from "./Publication.ts"

export interface TurnFiles {
  /** Takes the first snapshot, once; every tool that may change files waits for it. */
  readonly before: Effect.Effect<void>
  /** Takes the last snapshot, if there was a first one, and stores what changed. All tools have ended. */
  readonly after: Effect.Effect<void>
}

/** Paths in an event; the store has all of them. */
const listed = 100

interface Input {
  readonly publication: Publication.Publication
  readonly snapshots: Snapshots["Type"]
  readonly sessionID: SessionID
  readonly directory: string
}

type Taken = Either.Either<Snapshot | undefined, string>

export const make = Effect.fnUntraced(function* ({ directory, publication, sessionID, snapshots }: Input) {
  const first = yield* Ref.make<Taken | undefined>(undefined)
  const take: Effect.Effect<Taken> = Effect.either(
    Effect.mapError(snapshots.take(sessionID, directory), ({ message }) => message)
  )

  const store = (found: {
    readonly before?: string
    readonly after?: string
    readonly paths?: ReadonlyArray<string>
    readonly omitted?: ReadonlyArray<string>
    readonly problem?: string
  }) => {
    const { omitted = [], paths = [], ...rest } = found
    return Effect.flatMap(Publication.messageID(publication), (assistantMessageID) =>
      Publication.note(publication, [
        draft("session.next.files.changed", {
          assistantMessageID,
          ...rest,
          files: paths.slice(0, listed),
          count: paths.length,
          ...(omitted.length === 0 ? {} : { omitted: omitted.slice(0, listed) })
        })
      ])
    )
  }

  /** What the turn changed since the first snapshot. */
  const compare = Effect.fnUntraced(function* ({ tree: before }: Snapshot) {
    const last = yield* take
    if (Either.isLeft(last)) return yield* store({ problem: last.left })
    if (last.right === undefined || last.right.tree === before) return
    const { omitted, tree: after } = last.right
    const changes = yield* Effect.either(snapshots.changes(directory, { before, after }))
    if (Either.isLeft(changes)) return yield* store({ problem: changes.left.message })
    yield* store({ before, after, paths: changes.right.map(({ path }) => path), omitted })
  })

  const after = Effect.flatMap(Ref.get(first), (taken) => {
    if (taken === undefined) return Effect.void
    if (Either.isLeft(taken)) return store({ problem: taken.left })
    return taken.right === undefined ? Effect.void : compare(taken.right)
  })

  return {
    before: yield* Effect.cached(Effect.flatMap(take, (taken) => Ref.set(first, taken))),
    // The turn has ended; its account must not fail it.
    after: Effect.ignoreLogged(after)
  } satisfies TurnFiles
})
