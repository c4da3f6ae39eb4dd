import { expect, it } from "@effect/vitest"
import { Effect, Queue, TestClock } from "effect"
import * as Progress from "../../../packages/shell/src/mcp/Progress.ts"

it.scoped("SL-124: reports have the latest output and its length, at most one a second", () =>
  Effect.gen(function* () {
    const reports = yield* Queue.unbounded<Progress.Report>()
    const onText = yield* Progress.make((report) => Queue.offer(reports, report))
    onText("stdout", "one\n")
    expect(yield* Queue.take(reports)).toEqual({ characters: 4, latest: "one\n" })
    onText("stdout", "two\n")
    onText("stderr", "x".repeat(1_999) + "\u{1f600}")
    yield* TestClock.adjust("999 millis")
    expect(yield* Queue.size(reports)).toBe(0)
    yield* TestClock.adjust("1 millis")
    expect(yield* Queue.take(reports)).toEqual({ characters: 2_009, latest: "x".repeat(1_998) + "\u{1f600}" })
    yield* TestClock.adjust("1 minute")
    expect(yield* Queue.size(reports)).toBe(0)
  })
)

it.scoped("SL-124: a report does not begin with half of a character", () =>
  Effect.gen(function* () {
    const reports = yield* Queue.unbounded<Progress.Report>()
    const onText = yield* Progress.make((report) => Queue.offer(reports, report))
    onText("stdout", `\u{1f600}${"x".repeat(1_999)}`)
    expect((yield* Queue.take(reports)).latest).toBe("x".repeat(1_999))
  })
)
