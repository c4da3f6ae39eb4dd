/**
 * Properties of the system context algebra, over any history of looks at any sources. A source's state is what a test
 * says it is; its words name its key, and the value before and after, so that a text tells exactly what was told.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Schema } from "effect"
import {
  absent,
  available,
  initialize,
  type Look,
  type Observation,
  type Observed,
  reconcile,
  type Reconciled,
  replace,
  source,
  unavailable
} from "../../packages/core/src/context/SystemContext.ts"
import type { Agent } from "../../packages/core/src/domain/Agent.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Snapshot } from "../../packages/log/src/domain/Snapshot.ts"

const agent: Agent = { name: "build", permissions: [] }
const turn = { sessionID: SessionID.make("ses_algebra"), model: undefined, agent }

const keys = ["area/a", "area/b", "area/c", "agent/z", "zone/wordless"]

/** A number per source; `zone/wordless` has no words to take it back. */
const lookAt = (key: string, seen: Observation<number>): Look =>
  Effect.runSync(
    Effect.orDie(
      source({
        key,
        schema: Schema.NumberFromString,
        load: () => Effect.succeed(seen),
        baseline: (value) => `[${key} is ${value}]`,
        update: (before, now) => `[${key} ${before} -> ${now}]`,
        ...(key === "zone/wordless" ? {} : { removed: (before: number) => `[${key} ${before} is gone]` })
      }).load(turn)
    )
  )

const seen: fc.Arbitrary<Observation<number>> = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 3 }).map(available) },
  fc.constant(absent),
  fc.constant(unavailable)
)
const state: fc.Arbitrary<Record<string, Observation<number>>> = fc.record(
  Object.fromEntries(keys.map((key) => [key, seen]))
)
/** As above, with everything to be seen. */
const complete = state.map((all) =>
  Object.fromEntries(Object.entries(all).map(([key, each]) => [key, each._tag === "Unavailable" ? absent : each]))
)

const observe = (all: Record<string, Observation<number>>): Observed =>
  new Map(Object.entries(all).map(([key, each]) => [key, lookAt(key, each)]))

const start = (all: Record<string, Observation<number>>) => {
  const first = initialize(observe(all))
  if (first._tag === "Blocked") throw new Error("everything was to be seen")
  return first
}

/** A history of looks, from a first complete one. */
const history = fc.tuple(complete, fc.array(state, { maxLength: 8 }))

const after = (change: Reconciled, before: Snapshot): Snapshot =>
  change._tag === "Unchanged" ? before : change.snapshot

const play = (
  first: Record<string, Observation<number>>,
  looks: ReadonlyArray<Record<string, Observation<number>>>
) => {
  const changes: Array<Reconciled> = []
  let snapshot = start(first).snapshot
  for (const look of looks) {
    const change = reconcile(observe(look), snapshot)
    changes.push(change)
    snapshot = after(change, snapshot)
  }
  return { changes, snapshot }
}

describe("the algebra", () => {
  it.prop("EP-4: after a look, an equal look says nothing", [history, complete], ([[first, looks], last]) => {
    const { snapshot } = play(first, [...looks, last])
    assert.deepStrictEqual(reconcile(observe(last), snapshot), { _tag: "Unchanged" })
  })

  it.prop(
    "EP-5: changes told one by one end at the snapshot of a fresh start from the last look",
    [history, complete],
    ([[first, looks], last]) => {
      assert.deepStrictEqual(play(first, [...looks, last]).snapshot, start(last).snapshot)
    }
  )

  it.prop("EP-4: a look that sees nothing changes nothing", [history], ([[first, looks]]) => {
    const { snapshot } = play(first, looks)
    const blind = Object.fromEntries(keys.map((key) => [key, unavailable]))
    assert.deepStrictEqual(reconcile(observe(blind), snapshot), { _tag: "Unchanged" })
  })

  it.prop(
    "EP-4: one source that cannot be seen keeps what was told, whatever the others do",
    [history, state, fc.constantFrom(...keys)],
    ([[first, looks], look, key]) => {
      const { snapshot } = play(first, looks)
      const change = reconcile(observe({ ...look, [key]: unavailable }), snapshot)
      if (change._tag === "Replaced") return
      assert.deepStrictEqual(after(change, snapshot)[key], snapshot[key])
      assert.notInclude(change._tag === "Updated" ? change.text : "", `[${key}`)
    }
  )

  it.prop(
    "EP-2: the order of registration shows neither in the baseline nor in a change",
    [complete, state, fc.shuffledSubarray(keys, { minLength: keys.length })],
    ([first, next, order]) => {
      const shuffled = (all: Record<string, Observation<number>>): Observed =>
        new Map(order.map((key) => [key, lookAt(key, all[key] ?? absent)]))
      const { _tag, baseline, snapshot } = start(first)
      assert.deepStrictEqual(initialize(shuffled(first)), { _tag, baseline, snapshot })
      assert.deepStrictEqual(reconcile(shuffled(next), snapshot), reconcile(observe(next), snapshot))
    }
  )

  it.prop("EP-5: every change is told exactly once, with what it was before", [history], ([[first, looks]]) => {
    const known = new Map(
      Object.entries(first).flatMap(([key, each]) => (each._tag === "Available" ? [[key, each.value] as const] : []))
    )
    const { changes } = play(first, looks)
    for (const [index, look] of looks.entries()) {
      const change = changes[index]
      if (change?._tag === "Replaced") return
      const expected: Array<string> = []
      for (const key of keys) {
        const now = look[key] ?? absent
        const before = known.get(key)
        if (now._tag === "Available" && before === undefined) expected.push(`[${key} is ${now.value}]`)
        if (now._tag === "Available" && before !== undefined && before !== now.value) {
          expected.push(`[${key} ${before} -> ${now.value}]`)
        }
        if (now._tag === "Available") known.set(key, now.value)
        if (now._tag === "Absent" && before !== undefined && key !== "zone/wordless") {
          expected.push(`[${key} ${before} is gone]`)
          known.delete(key)
        }
      }
      const told = change?._tag === "Updated" ? change.text.split("\n\n") : []
      assert.sameMembers(told, expected)
    }
  })

  it.prop(
    "EP-8: a fresh baseline is that of a fresh start, and waits exactly for what was told",
    [history, state],
    ([[first, looks], now]) => {
      const { snapshot } = play(first, looks)
      const fresh = replace(observe(now), snapshot)
      const missing = keys.filter((key) => now[key]?._tag === "Unavailable" && snapshot[key] !== undefined)
      if (fresh._tag === "Blocked") return assert.sameMembers([...fresh.keys], missing)
      assert.deepStrictEqual(missing, [])
      const seenNow = Object.fromEntries(
        Object.entries(now).map(([key, each]) => [key, each._tag === "Unavailable" ? absent : each])
      )
      assert.deepStrictEqual(fresh, start(seenNow))
    }
  )

  it.prop("EP-3: a first baseline waits exactly for the sources that cannot be seen", [state], ([all]) => {
    const first = initialize(observe(all))
    const missing = keys.filter((key) => all[key]?._tag === "Unavailable")
    assert.sameMembers(first._tag === "Blocked" ? [...first.keys] : [], missing)
  })
})

describe("single cases", () => {
  const told = start({ "area/a": available(1), "area/b": available(2) })

  it("EP-2: sources are in the order of their keys, joined by a blank line, guidance of the agent last", () => {
    const { baseline } = start({ "zone/y": available(1), "agent/z": available(2), "area/a": available(3) })
    assert.strictEqual(baseline, "[area/a is 3]\n\n[zone/y is 1]\n\n[agent/z is 2]")
  })

  it("EP-2: the snapshot holds each value in its stored form, with the words that take it back", () => {
    assert.deepStrictEqual(told.snapshot, {
      "area/a": { value: "1", removed: "[area/a 1 is gone]" },
      "area/b": { value: "2", removed: "[area/b 2 is gone]" }
    })
  })

  it("EP-2: an empty text tells nothing, first and at a change, and leaves the others as they are", () => {
    const quiet = source({
      key: "area/b",
      schema: Schema.String,
      load: () => Effect.succeed(available("x")),
      baseline: () => "",
      update: () => ""
    })
    const look = Effect.runSync(Effect.orDie(quiet.load(turn)))
    const observed: Observed = new Map([
      ...observe({ "area/a": available(1), "agent/z": available(2) }),
      ["area/b", look]
    ])
    const began = initialize(observed)
    assert.strictEqual(began._tag === "Ready" ? began.baseline : began._tag, "[area/a is 1]\n\n[agent/z is 2]")
    assert.deepStrictEqual(reconcile(new Map([["area/b", look]]), { "area/b": { value: "y" } }), { _tag: "Unchanged" })
    assert.deepStrictEqual(reconcile(new Map([["area/b", look]]), {}), { _tag: "Unchanged" })
  })

  it("EP-4: a source that went for good says the words that were kept, though it is not there to say them", () => {
    const change = reconcile(observe({ "area/b": available(2) }), told.snapshot)
    assert.deepInclude(change, { _tag: "Updated", text: "[area/a 1 is gone]" })
  })

  it("EP-4: a stored value that does not decode takes a fresh baseline", () => {
    const change = reconcile(observe({ "area/a": available(1) }), { "area/a": { value: { not: "a number" } } })
    assert.deepStrictEqual(change, { ...start({ "area/a": available(1) }), _tag: "Replaced" })
  })

  it("EP-8: while a fresh baseline has to wait, what has words is told, and only that", () => {
    const { snapshot } = start({ "zone/wordless": available(1), "area/a": available(1), "area/b": available(1) })
    const change = reconcile(observe({ "area/a": available(2), "area/b": unavailable }), snapshot)
    assert.deepStrictEqual(change, {
      _tag: "Updated",
      text: "[area/a 1 -> 2]",
      snapshot: { ...snapshot, "area/a": { value: "2", removed: "[area/a 2 is gone]" } }
    })
  })

  it("EP-4: what a look could see only in part keeps what was told of the rest", () => {
    const partial = (seenNow: ReadonlyArray<string>): Observed =>
      new Map([
        [
          "area/a",
          Effect.runSync(
            Effect.orDie(
              source({
                key: "area/a",
                schema: Schema.Array(Schema.String),
                load: () => Effect.succeed(available(seenNow)),
                baseline: (all) => all.join(),
                update: (_, all) => `now ${all.join()}`,
                keep: (before, all) => all.map((each, index) => (each === "?" ? (before[index] ?? each) : each))
              }).load(turn)
            )
          )
        ]
      ])
    const first = initialize(partial(["x", "y"]))
    if (first._tag === "Blocked") return assert.fail("nothing was unavailable")
    assert.deepStrictEqual(reconcile(partial(["x", "?"]), first.snapshot), { _tag: "Unchanged" })
    assert.deepInclude(reconcile(partial(["z", "?"]), first.snapshot), { _tag: "Updated", text: "now z,y" })
    assert.deepInclude(replace(partial(["?", "?"]), first.snapshot), { baseline: "x,y" })
  })
})
