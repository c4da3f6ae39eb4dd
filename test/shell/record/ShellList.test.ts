/** The list of a session's shells, folded from its events. */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, TestClock } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as ShellList from "../../../packages/shell/src/record/ShellList.ts"
import type { ShellEvent } from "../../../packages/shell/src/record/ShellList.ts"
import * as ShellRecord from "../../../packages/shell/src/record/ShellRecord.ts"
import { forAll } from "../../support/Cases.ts"
import { memoryLog } from "../../support/Database.ts"
import { begin, readAll, session } from "../../support/Logs.ts"

const result = { stdout: "", stderr: "", exit_code: 0, duration_ms: 3, cwd: "/srv", truncated: false }
const opened = (shellID: string) => ShellRecord.opened(shellID, { transport: "docker", container: "web" }, "/work")
const executed = (shellID: string) => ShellRecord.executed(shellID, "make", result)
const closed = (shellID: string) => ShellRecord.closed(shellID, "reaped")

const folded = (events: ReadonlyArray<SessionEvent>) => events.reduce(ShellList.evolve, ShellList.initial)

/** Facts as events of one session, a second apart. */
const eventsOf = (facts: ReadonlyArray<ShellRecord.ShellFact>): ReadonlyArray<ShellEvent> =>
  facts.map(
    (fact, at) =>
      // A fact with an envelope is an event of its type.
      ({
        ...fact,
        seq: at,
        position: at + 1,
        id: `evt_${at}`,
        sessionID: "ses_a",
        version: 1,
        created: at * 1_000
      }) as ShellEvent
  )

it.effect("SL-105: replaying a session's events gives its shells, and how and when each was used and closed", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const id = session()
    yield* begin(id, 2)
    const facts = [
      [opened("1_docker_web"), ShellRecord.opened("2_local", { transport: "local" })],
      [executed("1_docker_web"), ShellRecord.checkpointed("1_docker_web", "cp_1")],
      [executed("1_docker_web"), closed("2_local")]
    ] as const
    for (const each of facts) {
      yield* TestClock.adjust("10 seconds")
      yield* log.append(id, each satisfies NonEmptyReadonlyArray<ShellRecord.ShellFact>)
    }
    const list = folded(yield* readAll(id))
    const web = {
      shellID: "1_docker_web",
      transport: "docker",
      title: "web",
      openedAt: 10_000,
      cwd: "/srv",
      commands: 2,
      lastEndAt: 30_000
    } as const
    assert.deepStrictEqual(
      [...list.values()],
      [
        web,
        {
          shellID: "2_local",
          transport: "local",
          openedAt: 10_000,
          commands: 0,
          closed: { at: 30_000, reason: "reaped" }
        }
      ]
    )
    assert.deepStrictEqual(ShellList.open(list), [web])
  }).pipe(Effect.provide(memoryLog))
)

it("SL-105: nothing after its close changes a shell, and another one may have its id", () => {
  const facts = [opened("a"), closed("a"), executed("a"), ShellRecord.closed("a", "lost")]
  const list = folded(eventsOf(facts))
  assert.deepInclude(list.get("a"), { commands: 0, closed: { at: 1_000, reason: "reaped" } })
  const again = folded(eventsOf([...facts, opened("a")]))
  assert.deepStrictEqual(again.get("a"), folded(eventsOf([...facts.map(() => executed("b")), opened("a")])).get("a"))
})

it("SL-106: a shell is idle since the end of its last command, else since its opening, and never less than 0 seconds", () => {
  const [before, after] = [folded(eventsOf([opened("a")])), folded(eventsOf([opened("a"), executed("a")]))].map(
    (list) => list.get("a")
  )
  assert.isDefined(before)
  assert.isDefined(after)
  assert.deepStrictEqual(
    [0, 999, 1_000, 90_500].map((now) => [ShellList.idleSeconds(before, now), ShellList.idleSeconds(after, now)]),
    [
      [0, 0],
      [0, 0],
      [1, 0],
      [90, 89]
    ]
  )
  const unknown = folded(eventsOf([ShellRecord.checkpointed("a", "cp_1")])).get("a")
  assert.deepStrictEqual(unknown, { shellID: "a", commands: 0 })
  assert.isUndefined(ShellList.idleSeconds({ shellID: "a", commands: 0 }, 5))
})

it("SL-106: the list holds every open shell and the last 100 closed ones", () => {
  const ids = fc.nat(250).map(String)
  const facts = fc.array(
    fc.oneof(
      fc.tuple(fc.constant(opened), ids),
      fc.tuple(fc.constant(closed), ids),
      fc.tuple(fc.constant(executed), ids)
    ),
    { maxLength: 600, size: "max" }
  )
  forAll([facts], 60, (made) => {
    const list = folded(eventsOf(made.map(([make, id]) => make(id))))
    // A plain model: the last close of each shell that no opening follows, in order.
    const [open, ended] = [new Set<string>(), new Set<string>()]
    for (const [make, id] of made) {
      if (make === opened || !ended.has(id)) open.add(id)
      if (make === opened) ended.delete(id)
      if (make === closed && open.delete(id)) ended.add(id)
      const [oldest = ""] = ended
      if (ended.size > ShellList.mostClosed) ended.delete(oldest)
    }
    assert.deepStrictEqual(new Set(ShellList.open(list).map(({ shellID }) => shellID)), open)
    const last = [...list.values()].flatMap((shell) => (shell.closed === undefined ? [] : [shell.shellID]))
    assert.deepStrictEqual(last, [...ended])
  })
})
