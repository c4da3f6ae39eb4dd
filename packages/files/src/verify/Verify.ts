/**
 * Verifies the files under a root: renders every session up to the event that its files name, and compares every byte,
 * the permissions, and the other entries. It changes nothing, needs no ledger, and may run beside an exporter. Memory
 * is bounded by one portion of a log. Spec: FI-87, FI-88 in specs/files.md.
 */
import { realpath, stat } from "node:fs/promises"
import { Chunk, Effect, Option, Schema, Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import type { InvalidInput } from "@daybook/log/domain/InvalidInput"
import { EventLog, type ReadError, SessionNotFound } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import type { StoreError } from "@daybook/log/store/StoreError"
import * as SafeFiles from "../disk/SafeFiles.ts"
import { type Finding, RootUnusable, type SafeError } from "../layout/Errors.ts"
import { addressOf, indexFolder, type SharedSpaces } from "../layout/Layout.ts"
import { modesOf } from "../layout/Modes.ts"
import * as Comparison from "./Comparison.ts"

/** The files to verify; `uid` and `shared` as for the exporter. */
export interface VerifyOptions {
  readonly root: string
  /** Verifies only this session, without its index. */
  readonly sessionID?: string | undefined
  readonly uid?: number | undefined
  readonly shared?: SharedSpaces | undefined
}

/** The errors that stop a verification. Differences of files are findings. */
export type VerifyError = RootUnusable | SafeError | ReadError | StoreError | InvalidInput

const openRoot = (root: string) =>
  Effect.tryPromise({
    try: async () => {
      const real = await realpath(root)
      return { root: real, mode: (await stat(real)).mode & 0o7777 }
    },
    catch: () => new RootUnusable({ root, details: "the folder does not exist; give the root of the export" })
  })

/** The differences between files and log, as they are found. No finding means that the files equal a fresh export. */
export const verify = (options: VerifyOptions): Stream.Stream<Finding, VerifyError, EventLog | SessionStore> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const store = yield* SessionStore
      const { mode, root } = yield* openRoot(options.root)
      const files = SafeFiles.make({ root })
      const uid = options.uid ?? process.getuid?.() ?? 0
      const verifier = Comparison.make(files, modesOf(options.shared, mode))
      const houses = new Map<string, Array<Comparison.Seen>>()

      /** The address that the session's files have; undefined for a temp session. */
      const addressAt = Effect.fnUntraced(function* (id: string) {
        const { address } = yield* store.get(SessionID.make(id))
        // A session without an address is kept under the agent that it was created for.
        const [first] = (yield* (yield* EventLog).read({ sessionID: SessionID.make(id), limit: 1 })).events
        const agent = first?.type === "session.created" ? first.data.agent : undefined
        return addressOf({ id, agent }, address, uid)
      })

      /** Verifies the session, unless it has no files or is in another house than `house`. */
      const look = Effect.fnUntraced(function* (id: string, house?: string) {
        const kept = yield* addressAt(id)
        if (kept === undefined || (house !== undefined && indexFolder(kept) !== house)) return undefined
        return { index: indexFolder(kept), session: kept.session, ...(yield* verifier.session(id, kept)) }
      })

      const one = (id: string) =>
        Effect.map(look(id), (looked) => {
          if (looked === undefined) return []
          const { entry, findings, index, session } = looked
          const seen = houses.get(index) ?? []
          seen.push({ session, entry })
          houses.set(index, seen)
          return findings
        })

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
      /** Returns `instead` if the session was removed since it was listed. */
      const gone = <A, E, R>(look: Effect.Effect<A, E | SessionNotFound, R>, instead: A) =>
        Effect.catchIf(
          look,
          (error): error is E & SessionNotFound => error instanceof SessionNotFound,
          () => Effect.succeed(instead)
        )

      /** Sessions may come, go and run meanwhile: repeats each comparison that found a difference. */
      const checkHouse = Effect.fnUntraced(function* (index: string, first: ReadonlyArray<Comparison.Seen>) {
        let [seen, findings] = [first, yield* verifier.house(index, first)]
        for (let n = 1; n < Comparison.attempts && findings.length > 0; n++) {
          const before = JSON.stringify(seen)
          const again = yield* Stream.runCollect(
            sessions.pipe(
              Stream.mapEffect((id) => gone(look(id, index), undefined)),
              Stream.filterMap((looked) =>
                looked === undefined ? Option.none() : Option.some({ session: looked.session, entry: looked.entry })
              )
            )
          )
          seen = Chunk.toReadonlyArray(again)
          findings = yield* verifier.house(index, seen)
          if (JSON.stringify(seen) === before) break
        }
        return findings
      })
      const found = sessions.pipe(
        Stream.mapEffect((id) => gone(one(id), [] as Comparison.Found)),
        Stream.flattenIterables
      )
      const ofHouses = Stream.suspend(() => Stream.fromIterable(houses)).pipe(
        Stream.mapEffect(([index, seen]) => checkHouse(index, seen)),
        Stream.flattenIterables
      )
      const others = Effect.suspend(() => verifier.strangers(new Set([...houses.keys()].map(Comparison.parentOf))))
      return Stream.concat(Stream.concat(found, ofHouses), Stream.flattenIterables(Stream.fromEffect(others)))
    })
  )
