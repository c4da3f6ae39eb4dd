/** When a shell's deadline calls back, whatever the commands before. */
import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import * as LiveShell from "../../../packages/shell/src/session/LiveShell.ts"

const seconds = 1_000

it.scoped("SL-23: a timeout is that of its command, whether the one before was longer, shorter or ended early", () =>
  Effect.gen(function* () {
    const deadline = yield* LiveShell.makeDeadline
    const passed: Array<string> = []
    const set = (name: string, time: number) => deadline.set(time * seconds, () => passed.push(name))
    set("ended early", 120)
    deadline.clear()
    yield* TestClock.adjust("60 seconds")
    set("after a longer one", 5)
    yield* TestClock.adjust("4 seconds")
    expect(passed).toEqual([])
    yield* TestClock.adjust("1 second")
    expect(passed).toEqual(["after a longer one"])
    set("cleared", 10)
    deadline.clear()
    set("after a shorter one", 100)
    yield* TestClock.adjust("99 seconds")
    expect(passed).toEqual(["after a longer one"])
    yield* TestClock.adjust("1 second")
    expect(passed).toEqual(["after a longer one", "after a shorter one"])
  })
)
