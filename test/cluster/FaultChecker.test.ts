/** The checker of the fault harness finds what it is there to find. */
import { assert, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { check, type Line, promptsOf } from "./support/FaultChecker.ts"
import type { Stored } from "./support/FaultClient.ts"
import { callsOf } from "./support/FaultModel.ts"

const id = "msg_a"
const lines: ReadonlyArray<Line> = Array.from({ length: callsOf(id) }, (_, step) => ({
  call: `call_${step}`,
  prompt: id,
  step
}))

const event = (type: string, data: Stored["data"]): Stored => ({ seq: 0, type: `session.next.${type}`, data })
const admitted = event("prompt.admitted", { messageID: id })
const promoted = event("prompt.promoted", { messageID: id })
const answered = event("text.ended", { text: `the answer to ${id}` })
const settled = event("activity.settled", { outcome: "completed" })
const whole = [admitted, promoted, answered, settled]

const problemsOf = (events: ReadonlyArray<Stored>, effects = lines) =>
  promptsOf({ acknowledged: [id] }, events, effects).problems

describe("the checker of faults", () => {
  it("CU-50: an acknowledged prompt that was answered once is no problem", () => {
    assert.deepStrictEqual(problemsOf(whole), [])
  })

  it.each([
    ["is not in the log", [promoted, answered, settled], "was acknowledged and is not in the log"],
    ["still waits", [admitted], "waits at the end"],
    ["did not end", [admitted, promoted, answered], "did not end"],
    ["ran twice", [...whole, promoted, answered, settled], "ran twice"],
    ["has another answer", [admitted, promoted, event("text.ended", { text: "no" }), settled], "with the answer no"],
    ["failed without a known reason", [admitted, promoted, event("activity.settled", { outcome: "failed" })], "failed"]
  ] as const)("CU-50: an acknowledged prompt that %s is a problem", (_, events, problem) => {
    assert.include(problemsOf(events).join("\n"), problem)
  })

  it("CU-50: a prompt that was answered without its tool's effects is a problem", () => {
    assert.include(problemsOf(whole, []).join("\n"), "completed with the calls")
  })

  it("CU-50: a call that was cut off with its process may have done nothing, and another one may not", () => {
    const called = event("tool.called", { callID: "call_0" })
    const failed = (type: string) => event("tool.failed", { callID: "call_0", error: { type, message: "" } })
    const story = (type: string) => [admitted, promoted, called, failed(type), answered, settled]
    const done = lines.slice(1)
    assert.deepStrictEqual(problemsOf(story("tool.interrupted"), done), [])
    assert.deepStrictEqual(problemsOf(story("tool.interrupted")), [])
    assert.include(problemsOf(story("tool.failed"), done).join("\n"), "completed with the calls")
  })

  it.effect("CU-50: a call that left two lines is a problem", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "checker-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const file = join(folder, "effects")
      writeFileSync(file, `call_0 ${id} 0\n`.repeat(2))
      const { problems } = yield* check([], [], file)
      assert.include(problems, "the tool ran twice for call_0")
      assert.include(problems, "call_0 ran and is not in the log")
    }).pipe(Effect.scoped)
  )
})
