/** How many sessions a writer caches. Spec: FI-113. */
import { assert, it } from "@effect/vitest"
import { Chunk, Effect } from "effect"
import { modesOf } from "../../packages/files/src/layout/Layout.ts"
import * as SafeFiles from "../../packages/files/src/disk/SafeFiles.ts"
import type { Line } from "../../packages/files/src/context/PackState.ts"
import * as Ledger from "../../packages/files/src/record/Ledger.ts"
import * as Rendering from "../../packages/files/src/render/Rendering.ts"
import type { CachedState } from "../../packages/files/src/session/CachedSession.ts"
import * as Writer from "../../packages/files/src/session/Writer.ts"
import { placeOf, unwritten } from "../../packages/files/src/session/Writer.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { memoryLog, temporaryFolder } from "../support/Database.ts"

const uid = 7

/** A session before its first write, whose context shows so many lines. */
const known = (id: string, lines: number): CachedState => {
  const record = unwritten(placeOf(id, { scope: "private", uid, kind: "agent", name: "build", session: id }), "evt_1")
  const line: Line = { line: 1, at: 0, bytes: 1, kind: "other", seq: 1, message: "msg_1" }
  const shown = lines === 0 ? Chunk.empty<Line>() : Chunk.makeBy(lines, () => line)
  const pack = { ...Rendering.initial.pack, shown }
  return {
    record,
    rendering: { ...Rendering.initial, pack },
    folder: { path: record.folder, sessionID: id, records: new Map() },
    whole: false,
    ahead: false
  }
}

/** A cache whose ledger has no session: what is not cached is undefined. */
const empty = Effect.gen(function* () {
  const files = SafeFiles.make({ root: yield* temporaryFolder })
  const [modes, ledger] = [modesOf(), yield* Ledger.make(files)]
  return Writer.makeSessionCache({ log: yield* EventLog, tracker: { files, ledger, modes, report: () => Effect.void } })
})

/** The sessions of these that are cached. Asking makes each the one used last, in this order. */
const cachedOf = ({ load }: Writer.SessionCache, ids: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(ids, load), (found) => ids.filter((_, index) => found[index] !== undefined))

const names = (count: number) => Array.from({ length: count }, (_, index) => `ses_${index}`)

it.scoped("FI-113: the 64 sessions used last are cached", () =>
  Effect.gen(function* () {
    const [cache, ids] = [yield* empty, names(66)]
    const [first = "", second = "", third = ""] = ids
    for (const id of ids.slice(0, 64)) yield* cache.remember(id, known(id, 0))
    assert.deepStrictEqual(yield* cachedOf(cache, [first]), [first])
    for (const id of ids.slice(64)) yield* cache.remember(id, known(id, 0))
    assert.deepStrictEqual(
      yield* cachedOf(cache, ids),
      ids.filter((id) => id !== second && id !== third)
    )
  }).pipe(Effect.provide(memoryLog))
)

it.scoped("FI-113: together they show at most 16,384 lines, and a longer session is cached alone", () =>
  Effect.gen(function* () {
    const [cache, ids] = [yield* empty, names(4)]
    const [first = "", second = "", third = "", long = ""] = ids
    yield* cache.remember(first, known(first, 8_192))
    yield* cache.remember(second, known(second, 8_192))
    assert.deepStrictEqual(yield* cachedOf(cache, ids), [first, second])
    yield* cache.remember(third, known(third, 1))
    assert.deepStrictEqual(yield* cachedOf(cache, ids), [second, third])
    yield* cache.remember(long, known(long, 20_000))
    assert.deepStrictEqual(yield* cachedOf(cache, ids), [long])
  }).pipe(Effect.provide(memoryLog))
)
