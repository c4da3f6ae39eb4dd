/** The history path against sets of sequence numbers. */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Either, FastCheck as fc, Schema } from "effect"
import * as HistoryPath from "../../packages/log/src/domain/HistoryPath.ts"
import { cases, forAll } from "../support/Cases.ts"

const horizon = 1_100
const seq = fc.nat(horizon)
const ranges = Arbitrary.make(HistoryPath.Ranges)

/** The events of a path, up to the horizon. */
const eventsOf = (path: HistoryPath.HistoryPath): ReadonlyArray<number> =>
  Array.from({ length: horizon + 1 }, (_, at) => at).filter((at) => path.some(([from, to]) => from <= at && at <= to))

const isRanges = Schema.is(HistoryPath.Ranges)

it("HP-1: ranges that overlap, descend or end before they begin are refused", () => {
  const decode = Schema.decodeUnknownEither(HistoryPath.Ranges)
  for (const bad of [
    [[3, 2]],
    [
      [0, 4],
      [4, 6]
    ],
    [
      [5, 6],
      [0, 1]
    ],
    [[-1, 2]],
    [[0, 1.5]],
    [[0]]
  ]) {
    assert.isTrue(Either.isLeft(decode(bad)), JSON.stringify(bad))
  }
  for (const good of [
    [],
    [[0, 0]],
    [
      [0, 3],
      [4, 6]
    ]
  ])
    assert.isTrue(Either.isRight(decode(good)), JSON.stringify(good))
})

it("HP-1: the path of a session whose leaf never moved holds all events", () => {
  assert.isTrue(HistoryPath.isLinear(HistoryPath.linear))
  fc.assert(
    fc.property(seq, (at) => HistoryPath.contains(HistoryPath.linear, at)),
    { numRuns: cases(16) }
  )
})

it("HP-2: after a move the path holds what it kept, and the events after the move", () => {
  forAll([ranges, fc.nat(50)], 24, (kept, more) => {
    const at = (kept.at(-1)?.[1] ?? -1) + 1 + more
    const path = HistoryPath.moved(kept, at)
    assert.isTrue(isRanges(path))
    assert.isFalse(HistoryPath.isLinear(path))
    assert.strictEqual(HistoryPath.openFrom(path), at + 1)
    const later = Array.from({ length: Math.max(0, horizon - at) }, (_, index) => at + 1 + index)
    assert.deepStrictEqual(
      eventsOf(path),
      [...eventsOf(kept), ...later].filter((each) => each <= horizon)
    )
  })
})

it("HP-3: a part of a path is a path, and holds the events of both", () => {
  forAll([ranges, seq, seq], 24, (path, from, to) => {
    const part = HistoryPath.between(path, from, to)
    assert.isTrue(isRanges(part))
    assert.deepStrictEqual(
      eventsOf(part),
      eventsOf(path).filter((at) => from <= at && at <= to)
    )
    assert.deepStrictEqual(HistoryPath.until(path, to), HistoryPath.between(path, 0, to))
    assert.strictEqual(HistoryPath.contains(path, from), eventsOf(path).includes(from))
  })
})

it("HP-3: joined ranges hold the same events, and paths are equal if their events are", () => {
  forAll([ranges, ranges], 24, (path, other) => {
    const split = path.flatMap(([from, to]): HistoryPath.HistoryPath =>
      from === to
        ? [[from, to]]
        : [
            [from, from],
            [from + 1, to]
          ]
    )
    assert.deepStrictEqual(eventsOf(HistoryPath.joined(split)), eventsOf(path))
    assert.isTrue(HistoryPath.equals(split, path))
    assert.strictEqual(
      HistoryPath.equals(path, other),
      JSON.stringify(eventsOf(path)) === JSON.stringify(eventsOf(other))
    )
  })
})
