import { expect, it } from "@effect/vitest"
import { Effect, Queue, TestClock } from "effect"
import * as ShellMcp from "../../../packages/shell/src/mcp/ShellMcp.ts"

it.scoped("SL-124: reports have the latest output and its length, at most one a second", () =>
  Effect.gen(function* () {
    const reports = yield* Queue.unbounded<ShellMcp.Report>()
    const onText = yield* ShellMcp.makeProgress((report) => Queue.offer(reports, report))
    onText("stdout", "one\n")
    expect(yield* Queue.take(reports)).toEqual({ progress: 4, message: "one\n" })
    onText("stdout", "two\n")
    onText("stderr", "x".repeat(1_999) + "\u{1f600}")
    yield* TestClock.adjust("999 millis")
    expect(yield* Queue.size(reports)).toBe(0)
    yield* TestClock.adjust("1 millis")
    expect(yield* Queue.take(reports)).toEqual({ progress: 2_009, message: "x".repeat(1_998) + "\u{1f600}" })
  })
)

it.scoped(
  "SL-585: a command that prints nothing is reported every 15 seconds, and each report is further than the last",
  () =>
    Effect.gen(function* () {
      const reports = yield* Queue.unbounded<ShellMcp.Report>()
      const onText = yield* ShellMcp.makeProgress((report) => Queue.offer(reports, report))
      yield* TestClock.adjust("14 seconds")
      expect(yield* Queue.size(reports)).toBe(0)
      yield* TestClock.adjust("1 second")
      expect(yield* Queue.take(reports)).toEqual({ progress: 1, message: "no output for 15 seconds" })
      yield* TestClock.adjust("15 seconds")
      expect(yield* Queue.take(reports)).toEqual({ progress: 2, message: "no output for 30 seconds" })
      onText("stdout", "a")
      expect(yield* Queue.take(reports)).toEqual({ progress: 3, message: "a" })
      yield* TestClock.adjust("15 seconds")
      expect(yield* Queue.take(reports)).toEqual({ progress: 4, message: "no output for 15 seconds" })
    })
)

it.scoped("SL-124: a report does not begin with half of a character", () =>
  Effect.gen(function* () {
    const reports = yield* Queue.unbounded<ShellMcp.Report>()
    const onText = yield* ShellMcp.makeProgress((report) => Queue.offer(reports, report))
    onText("stdout", `\u{1f600}${"x".repeat(1_999)}`)
    expect((yield* Queue.take(reports)).message).toBe("x".repeat(1_999))
  })
)
