/** What the options of a run allow and refuse. Method: a model on the loopback that calls tools, and no terminal. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as RunMode from "../../packages/cli/src/arguments/RunMode.ts"
import { build as buildAgent } from "../../packages/core/src/agent/BuiltinAgents.ts"
import { deniesAll, verdictOf } from "../../packages/core/src/domain/Rule.ts"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"

beforeAll(() => void build())

type Call = readonly [tool: string, input: unknown]

/** Prompts with the options; the model makes the calls in one step, then answers. */
const called = Effect.fnUntraced(function* (flags: ReadonlyArray<string>, ...calls: ReadonlyArray<Call>) {
  const { env, here, model } = yield* held
  const run = yield* here.start(["prompt", ...flags, "Go"], { env })
  const first = yield* model.next
  for (const [at, [tool, input]] of calls.entries()) yield* first.toolCall(`call_${at}`, tool, input)
  yield* first.finish("tool_calls")
  const second = yield* model.next
  yield* second.text("done")
  yield* second.finish()
  return { tools: first.body.tools?.map((tool) => tool.function.name) ?? [], here, ...(yield* run.ended) }
})

const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1) ?? ""
const write: Call = ["write", { path: "a.txt", content: "one" }]
const echo: Call = ["bash", { command: "echo hi > b.txt" }]

describe("what a run may do", () => {
  it.scopedLive("CL-773: a run names the calls that nobody allowed, and exits with 11", () =>
    Effect.gen(function* () {
      const { code, here, stderr, stdout } = yield* called([], write, echo)
      assert.strictEqual(stdout, "done\n")
      assert.match(
        lastLine(stderr),
        /^daybook: 2 calls were refused: write a\.txt[^;]*; bash echo hi > b\.txt\. To permit/
      )
      assert.strictEqual(code, 11)
      assert.isFalse(existsSync(join(here.cwd, "a.txt")))
    })
  )

  it.scopedLive("CL-831: a run with --tokens ends with 12 before the request that its budget does not cover", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      const run = yield* here.start(["-p", "Work", "--tokens", "5", "--allow", "bash echo *"], { env })
      const only = yield* model.next
      yield* only.toolCall("call_1", "bash", { command: "echo hi" })
      yield* only.finish("tool_calls")
      const { code, stderr } = yield* run.ended
      assert.strictEqual(code, 12)
      assert.match(
        lastLine(stderr),
        /budget of 5 tokens; .*: daybook budget --cost USD or --tokens N, then daybook resume$/
      )
      const { stdout } = yield* here.run(["budget", "--json"])
      assert.deepStrictEqual(JSON.parse(stdout).limit, { budget: { tokens: 5 }, from: "session" })
    })
  )

  it.scopedLive("CL-770: --accept-edits edits without asking, and allows no command", () =>
    Effect.gen(function* () {
      const { code, here, stderr } = yield* called(["--accept-edits"], write, echo)
      assert.strictEqual(readFileSync(join(here.cwd, "a.txt"), "utf8"), "one")
      assert.match(lastLine(stderr), /^daybook: a call was refused: bash/)
      assert.strictEqual(code, 11)
    })
  )

  it.scopedLive("CL-770: --allow allows what its patterns match", () =>
    Effect.gen(function* () {
      const { code, here } = yield* called(["--allow", "edit *.txt,bash echo *"], write, [
        "bash",
        { command: "echo hi" }
      ])
      assert.isTrue(existsSync(join(here.cwd, "a.txt")))
      assert.strictEqual(code, 0)
    })
  )

  it.scopedLive("CL-772: with --read-only the model is offered no tool that changes something", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* held
      writeFileSync(join(here.cwd, "a.txt"), "text")
      const run = yield* here.start(["prompt", "--read-only", "Go"], { env })
      const turn = yield* model.next
      const tools = turn.body.tools?.map((tool) => tool.function.name) ?? []
      assert.include(tools, "read")
      assert.deepStrictEqual(
        tools.filter((name) => ["bash", "write", "edit", "apply_patch", "task"].includes(name)),
        []
      )
      yield* turn.finish()
      const again = yield* model.next
      yield* again.text("done")
      yield* again.finish()
      yield* run.ended
    })
  )

  it("CL-772: --read-only keeps the agent's own rules for looking", () => {
    const { permissions } = RunMode.adjusted({ allow: [], readOnly: true })({
      ...buildAgent,
      permissions: [
        { permission: "*", resource: "*", verdict: "allow" },
        { permission: "read", resource: "secret/*", verdict: "deny" }
      ]
    })
    assert.strictEqual(verdictOf(permissions, "read", "a.txt"), "allow")
    assert.strictEqual(verdictOf(permissions, "read", "secret/a"), "deny")
    for (const permission of ["edit", "bash", "task", "fs_write"]) assert.isTrue(deniesAll(permissions, permission))
  })

  it.effect("CL-774: a word that is no permission is refused, and a comma in a pattern has a backslash", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(RunMode.flags.allow.read(["edti"]))
      assert.match(refused.message, /--allow: expected edit, bash, task, read/)
      const [rules] = yield* RunMode.flags.allow.read(["bash echo a\\,b, fs_write"])
      assert.deepStrictEqual(rules, [
        { permission: "bash", resource: "echo a,b", verdict: "allow" },
        { permission: "fs_write", resource: "*", verdict: "allow" }
      ])
    })
  )

  it.effect("CL-770: --read-only with an option that allows is refused", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(RunMode.read({ allow: [], acceptEdits: true, readOnly: true }))
      assert.match(refused.message, /do not combine/)
    })
  )
})
