/** Verification of pruned sessions: sound ones have no findings, and each kind of damage is found. Spec: RT-16, RT-17. */
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Array as Arr, Chunk, Effect, Either, Stream } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as Doctor from "../../../packages/log/src/maintenance/Doctor.ts"
import * as Rebuild from "../../../packages/log/src/maintenance/Rebuild.ts"
import { atOnce } from "../../../packages/log/src/retention/Pace.ts"
import { restore } from "../../../packages/log/src/retention/Retention.ts"
import * as Content from "../../../packages/log/src/store/Content.ts"
import * as ContentBlock from "../../../packages/log/src/store/ContentBlock.ts"
import type { CheckedEvent } from "../../../packages/log/src/store/ContentBlock.ts"
import { cases } from "../../support/Cases.ts"
import { type LogLayer, temporaryFolder } from "../../support/Database.ts"
import { contents, readAll, renamed, session } from "../../support/Logs.ts"
import { begun, fill, pruned, share, turns } from "../../support/Pruning.ts"
import { turnLog } from "../../support/TurnLogs.ts"

const findings = Effect.map(Stream.runCollect(Doctor.verify), Chunk.toReadonlyArray)

export const verifyingPruned = (layer: LogLayer) => {
  it.effect.prop(
    "RT-16, RT-17: a session that was pruned once, and again, and went on is sound, and verifying writes nothing",
    [turnLog, share],
    ([appends, part]) =>
      Effect.gen(function* () {
        const id = session()
        yield* fill(id, appends)
        const { length } = yield* readAll(id)
        for (const bounds of [{ to: Math.floor(part * length) }, {}]) {
          yield* pruned(id, bounds)
          const before = yield* contents
          assert.deepStrictEqual(yield* findings, [])
          assert.deepStrictEqual(yield* contents, before)
        }
        yield* fill(id, [[renamed("later")]])
        assert.deepStrictEqual(yield* findings, [])
      }).pipe(Effect.provide(layer)),
    { fastCheck: { numRuns: cases(6) } }
  )

  interface Place {
    readonly id: SessionID
    readonly floor: number
  }

  /** Replaces the lines of the session's blocks. */
  const rewritten = (
    id: SessionID,
    change: (events: ReadonlyArray<CheckedEvent>) => ReadonlyArray<CheckedEvent | undefined>
  ) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const blocks = yield* sql<{
        readonly rowid: number
        readonly packed: Uint8Array
      }>`SELECT rowid, packed FROM content
      WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id})`
      for (const { packed, rowid } of blocks) {
        const block = Either.getOrThrow(yield* ContentBlock.unpack(packed))
        const kept = yield* Content.selectContent(
          Content.makeBlocks(sql, id),
          block.events().map(({ seq }) => seq)
        )
        const checked = block.events().map((event) => ({
          ...event,
          checksum: kept.get(event.seq)?.pipe(Either.getOrThrow).checksum ?? 0
        }))
        const events = change(checked).filter((event) => event !== undefined)
        if (!Arr.isNonEmptyReadonlyArray(events)) continue
        const changed = yield* ContentBlock.pack({ events, parts: block.parts() })
        yield* sql`UPDATE content SET packed = ${changed.packed} WHERE rowid = ${rowid}`
      }
    })

  const statement = (text: string) => (place: Place) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql.unsafe(
        text
          .replaceAll(":session", `(SELECT session FROM event_sequence WHERE session_id = '${place.id}')`)
          .replaceAll(":id", `'${place.id}'`)
          .replaceAll(":floor", String(place.floor))
      )
    )

  type Damage = (place: Place) => Effect.Effect<unknown, unknown, SqlClient.SqlClient>

  /** Damages below the floor. Archives put all of it back. */
  const below: ReadonlyArray<readonly [name: string, damage: Damage, what: RegExp]> = [
    [
      "a state of another form",
      statement("UPDATE session_floor SET base = '{}' WHERE session_id = :id"),
      /state at its/
    ],
    ["a state that is gone", statement("UPDATE session_floor SET base = NULL WHERE session_id = :id"), /state at its/],
    [
      "a block that does not unpack",
      ({ id }) =>
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`UPDATE content SET packed = ${Buffer.from([1, 2, 3])}
            WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${id})`
        ),
      /the kept events 0 to \d+ cannot be read: the block is damaged/
    ],
    [
      "a changed payload of a kept event",
      ({ id }) =>
        rewritten(id, (events) =>
          events.map((event) => ({ ...event, data: event.data.replace("answer 1 ", "answer 2 ") }))
        ),
      /the kept events 0 to \d+ differ from what was written/
    ],
    [
      "a changed time of a kept event",
      ({ id }) =>
        rewritten(id, (events) => events.map((event) => (event.seq === 0 ? { ...event, created: 5 } : event))),
      /the kept events 0 to \d+ differ from what was written/
    ],
    [
      "kept events in another order",
      ({ id }) => rewritten(id, ([first, second, third, ...rest]) => [first, third, second, ...rest]),
      /the kept event \d+ follows event \d+/
    ],
    [
      "a block without its first event",
      ({ id }) => rewritten(id, (events) => events.slice(1)),
      /the block of the kept events 0 to \d+ begins or ends with another event/
    ],
    [
      "a kept event to which a part refers and that is gone",
      ({ id }) => rewritten(id, (events) => events.filter(({ type }) => type !== "session.next.tool.called.1")),
      /the removed event \d+, to which its rows refer, is in no block/
    ],
    [
      "a reference to an event that was dropped",
      statement(
        "UPDATE session_message SET settled = settled - 2 WHERE session = :session AND seq < :floor AND type = 'assistant'"
      ),
      /the removed event \d+, to which its rows refer, is in no block/
    ],
    [
      "blocks that are gone",
      statement("DELETE FROM content WHERE session = :session"),
      /event \d+ at its floor is in no/
    ],
    [
      "a decision that is in no block",
      ({ id }) =>
        statement(`INSERT INTO kept_decision (position, session_id, seq) VALUES (1, :id, 3)`)({ id, floor: 0 }),
      /the removed event 3, to which its rows refer, is in no block/
    ],
    [
      "a floor at another position",
      statement("UPDATE session_floor SET position = position - 1 WHERE session_id = :id"),
      /its floor is at position \d+, the event there at \d+/
    ]
  ]

  /** Two sound sessions, and one that is pruned with something above its floor; only the latter is damaged. */
  const stored = Effect.fnUntraced(function* (folder: string) {
    const [id, whole, sound] = [session(), session(), session()]
    for (const one of [id, whole, sound]) yield* begun(one, 4)
    const { cut, path } = yield* pruned(id, { to: 60 }, folder)
    yield* pruned(sound)
    yield* fill(id, turns(1))
    assert.isAbove(cut.to, 20)
    return { id, floor: cut.to, path: path ?? "" }
  })

  for (const [name, damage, what] of below) {
    it.scoped(`RT-17: ${name} below the floor is found, and its archive and a rebuild mend it`, () =>
      Effect.gen(function* () {
        const { floor, id, path } = yield* stored(yield* temporaryFolder)
        assert.deepStrictEqual(yield* findings, [])
        yield* damage({ id, floor })
        const found = yield* findings
        assert.match(found[0]?.what ?? "", what)
        for (const finding of found) {
          assert.deepInclude(finding, { severity: "error", sessionID: id })
          assert.include(finding.fix, "daybook prune --restore")
        }
        yield* restore(path, { pace: atOnce })
        yield* Rebuild.rebuild(id)
        assert.deepStrictEqual(yield* findings, [])
      }).pipe(Effect.provide(layer))
    )
  }

  const above: ReadonlyArray<readonly [name: string, text: string, what: RegExp]> = [
    ["a changed session", "UPDATE session SET cost = cost + 1 WHERE id = :id", /session differs .*: cost/],
    [
      "a changed message",
      "UPDATE session_message SET time_created = 1 WHERE session = :session AND seq > :floor AND type = 'assistant'",
      /session_message differs from event \d+: time_created/
    ],
    [
      "a missing part",
      "DELETE FROM session_part WHERE session = :session AND seq > :floor AND kind = 'text'",
      /session_part has/
    ],
    [
      "a missing prompt",
      "DELETE FROM session_input WHERE session = :session AND admitted_seq > :floor",
      /session_input has no row/
    ]
  ]

  for (const [name, text, what] of above) {
    it.scoped(`RT-16: ${name} above the floor is found, and a rebuild mends it`, () =>
      Effect.gen(function* () {
        const { floor, id } = yield* stored(yield* temporaryFolder)
        const before = yield* contents
        yield* statement(text)({ id, floor })
        const [found, ...others] = yield* findings
        assert.match(found?.what ?? "", what)
        assert.include(found?.fix ?? "", "daybook doctor --rebuild")
        assert.strictEqual(found?.sessionID, id)
        assert.deepStrictEqual(others, [])
        yield* Rebuild.rebuild(id)
        assert.deepStrictEqual(yield* contents, before)
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("RT-16: a missing event above the floor is found", () =>
    Effect.gen(function* () {
      const [log, sql, id] = [yield* EventLog, yield* SqlClient.SqlClient, session()]
      yield* begun(id, 2)
      const { cut } = yield* pruned(id)
      for (const title of ["a", "b"]) yield* log.append(id, [draft("session.next.renamed", { title })])
      yield* sql`DELETE FROM event WHERE seq = ${cut.to + 1}`
      const [found] = yield* findings
      assert.include(found?.what ?? "", `the events from ${cut.to + 1} to ${cut.to + 1} are missing`)
    }).pipe(Effect.provide(layer))
  )
}
