/** Events of live shells as a viewer shows them. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { CommandBlocked } from "../../../packages/shell/src/domain/ShellError.ts"
import type { ExecResult } from "../../../packages/shell/src/domain/ExecResult.ts"
import type { ShellEvent } from "../../../packages/shell/src/record/ShellList.ts"
import * as ShellRecord from "../../../packages/shell/src/record/ShellRecord.ts"
import * as WatchText from "../../../packages/shell/src/record/WatchText.ts"
import { cases } from "../../support/Cases.ts"
import { session } from "../../support/Logs.ts"

const result: ExecResult = { stdout: "", stderr: "", exit_code: 0, duration_ms: 3, cwd: "/home/u", truncated: false }
const local = { transport: "local" } as const

const eventOf = (fact: ShellRecord.ShellFact, sessionID: SessionID): ShellEvent =>
  // A fact with an envelope is an event of its type.
  ({ ...fact, seq: 0, position: 1, id: "evt_0", sessionID, version: 1, created: 0 }) as ShellEvent

const one = session("one")

const shown = (
  facts: ReadonlyArray<ShellRecord.ShellFact | readonly [ShellRecord.ShellFact, SessionID]>,
  options: Partial<WatchText.WatchOptions> = {}
): ReadonlyArray<string> => {
  let seen = WatchText.nothingSeen
  return facts.flatMap((each) => {
    const event = "type" in each ? eventOf(each, one) : eventOf(...each)
    const [next, lines] = WatchText.watched(seen, event, { sessions: false, output: false, ...options })
    seen = next
    return lines
  })
}

const ran = (command: string, more: Partial<ExecResult> = {}, shellID = "1_local") =>
  ShellRecord.executed(shellID, command, { ...result, ...more })

it("SL-110: a command is shown with its shell and the folder where it started, then how it ended", () => {
  assert.deepStrictEqual(
    shown([
      ShellRecord.opened("1_local", local, "/home/u"),
      ran("cd dist", { cwd: "/home/u/dist" }),
      ran("npm run build", { exit_code: 1, duration_ms: 3_412, cwd: "/home/u/dist" }),
      ShellRecord.blocked(
        "1_local",
        "rm -rf /",
        new CommandBlocked({ policy: "operator", reason: "rm of / is denied" })
      ),
      ran("sleep 99", { exit_code: 124, duration_ms: 30_000, timed_out: true }),
      ShellRecord.checkpointed("1_local", "cp_1", "before"),
      ShellRecord.restored("1_local", "cp_1", 1),
      ShellRecord.restored("1_local", "cp_1", 2),
      ShellRecord.closed("1_local", "reaped"),
      ran("after a close", {}),
      ShellRecord.opened("2_docker_web", { transport: "docker", container: "web" })
    ]),
    [
      "[1_local] opened",
      "[1_local] /home/u $ cd dist",
      "exit 0 in 3 ms",
      "[1_local] /home/u/dist $ npm run build",
      "exit 1 in 3.4 s",
      "[1_local] /home/u/dist $ rm -rf /",
      "blocked by the operator's policy: rm of / is denied",
      "[1_local] /home/u/dist $ sleep 99",
      "exit 124 in 30.0 s (timed out)",
      "[1_local] checkpoint cp_1 (before)",
      "[1_local] restored cp_1: 1 file changed",
      "[1_local] restored cp_1: 2 files changed",
      "[1_local] closed: reaped",
      "[1_local] $ after a close",
      "exit 0 in 3 ms",
      "[2_docker_web] opened: web"
    ]
  )
})

it("SL-110: shells of the same id in two sessions have folders of their own, and each change of session is named", () => {
  const two = session("two")
  assert.deepStrictEqual(
    shown(
      [
        [ShellRecord.opened("1_local", local, "/a"), one],
        [ShellRecord.opened("1_local", local, "/b"), two],
        [ran("x"), two],
        [ran("y"), one]
      ],
      { sessions: true }
    ),
    [
      "== ses_one ==",
      "[1_local] opened",
      "== ses_two ==",
      "[1_local] opened",
      "[1_local] /b $ x",
      "exit 0 in 3 ms",
      "== ses_one ==",
      "[1_local] /a $ y",
      "exit 0 in 3 ms"
    ]
  )
})

it("SL-110: durations read as people write them", () => {
  const durations = [0, 12.5, 999.4, 999.6, 1_000, 59_949, 59_950, 60_000, 125_400, 3_600_000]
  assert.deepStrictEqual(
    durations.map((duration_ms) => shown([ran("a", { duration_ms })])[1]?.replace("exit 0 in ", "")),
    ["0 ms", "13 ms", "999 ms", "1.0 s", "1.0 s", "59.9 s", "1 min 0 s", "1 min 0 s", "2 min 5 s", "60 min 0 s"]
  )
})

it("SL-110: at most 20 lines of a command are shown, and then how many follow", () => {
  const command = Array.from({ length: 25 }, (_, index) => `line ${index}`).join("\n")
  const lines = shown([ran(command)])
  assert.deepStrictEqual(lines.slice(0, 2), ["[1_local] $ line 0", "> line 1"])
  assert.deepStrictEqual(lines.slice(-3), ["> line 19", "> (5 more lines)", "exit 0 in 3 ms"])
  assert.strictEqual(lines.length, 22)
})

it("SL-111: output stands between a command and its end: late output, output, errors", () => {
  const facts = [ran("make", { stdout: "a\nb", stderr: "c", late_output: "ready" })]
  assert.deepStrictEqual(shown(facts, { output: true }), [
    "[1_local] $ make",
    "~ ready",
    "| a",
    "| b",
    "! c",
    "exit 0 in 3 ms"
  ])
  assert.deepStrictEqual(shown([ran("true")], { output: true }), shown([ran("true")]))
  const called = ShellRecord.executed("1_local", "make", { ...result, stdout: "", truncated: true }, "call_7")
  assert.deepStrictEqual(shown([called], { output: true }), [
    "[1_local] $ make",
    "| (in the result of call call_7)",
    "exit 0 in 3 ms"
  ])
})

const hostile = fc
  .array(fc.constantFrom("\n", "\r", "[2_local] $ forged", "a", " "), { maxLength: 6 })
  .map((parts) => parts.join(""))

it("SL-112: every line begins with the shell's id, a mark, or how a command ended, whatever the texts", () => {
  const isOwn = /^(?:\[1_local\] |[>|!~] |exit 0 in |blocked by the shell's policy: )[^\r\n]*$/
  fc.assert(
    fc.property(hostile, (text) => {
      const lines = shown(
        [
          ShellRecord.opened("1_local", local, `/${text}`),
          ran(text, { stdout: text, stderr: text, late_output: text, cwd: `/${text}` }),
          ShellRecord.blocked("1_local", text, new CommandBlocked({ policy: "shell", reason: text })),
          ShellRecord.checkpointed("1_local", "cp_1", text)
        ],
        { output: true }
      )
      for (const line of lines) assert.match(line, isOwn)
    }),
    { numRuns: cases(100) }
  )
})
