/**
 * An agent with `bash: live` as a process. Method: the command runs with a model on the loopback that calls `bash`; a pipe that
 * jobs of the shell hold open tells when the last of them is gone.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeLifeline } from "../tools/Lifeline.ts"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import type { Exchange } from "./support/ModelServer.ts"
import { jsonLines } from "./support/Process.ts"

beforeAll(() => void build())

const server = (text: string) =>
  `require("http").createServer((q, r) => r.end(${JSON.stringify(text)} + q.url)).listen(0, "127.0.0.1", function () { console.log(this.address().port) })`

const setup = Effect.gen(function* () {
  const { env, here, model } = yield* held
  const folder = join(here.root, ".config", "daybook")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "config.yaml"), "agents: { build: { bash: live, permissions: { bash: allow } } }")
  writeFileSync(join(here.cwd, "serve.cjs"), server("served "))
  const life = yield* makeLifeline(here.cwd)
  /** Answers the next request with a call, and returns the last result that the request had. */
  const calls = (command: string) =>
    Effect.tap(model.next, (turn) =>
      Effect.zipRight(turn.toolCall("call_1", "bash", { command }), turn.finish("tool_calls"))
    )
  return { calls, env, here, life, model }
})

const lastOf = ({ body }: Exchange) => String(body.messages.at(-1)?.content)

describe("an agent with a live shell", () => {
  it.scopedLive("TO-130, SL-231, SL-233: its server answers a later call, and ends with the process", () =>
    Effect.gen(function* () {
      const { calls, env, here, life, model } = yield* setup
      const run = yield* here.start(["prompt", "--session", "serve", "Serve"], { env })
      yield* calls(
        "mkdir inner; mkfifo port; export A=kept; node serve.cjs > port 3> life & read -r P < port; cd inner"
      )
      const second = yield* calls(
        'echo $A; pwd; node -e "fetch(process.argv[1]).then((r) => r.text()).then(console.log)" http://127.0.0.1:$P/x'
      )
      assert.include(lastOf(second), "This is a new shell")
      const third = yield* model.next
      assert.include(lastOf(third), `kept\n${join(here.cwd, "inner")}\nserved /x\n`)
      yield* third.text("Served.")
      yield* third.finish()
      assert.strictEqual((yield* run.ended).code, 0)
      yield* life.ended
      const events = jsonLines((yield* here.run(["events", "serve", "--json"])).stdout)
      const shells = events.filter(({ type }) => String(type).startsWith("session.next.shell."))
      assert.deepStrictEqual(
        shells.map(({ type }) => type),
        ["opened", "executed", "executed", "closed"].map((name) => `session.next.shell.${name}`)
      )
      const shown = (yield* here.run(["shell", "watch", "serve"])).stdout
      assert.match(shown, /\[1_local_[0-9a-f]{8}\] .*\$ echo \$A; pwd/)
      const agents = (yield* here.run(["agents"])).stdout
      assert.match(agents, /^build +all +- +live /m)
    })
  )

  it.scopedLive("SL-231, SL-232: kill -9 leaves no process, and the next process has a new shell", () =>
    Effect.gen(function* () {
      const { calls, env, here, life, model } = yield* setup
      const run = yield* here.startAlone(["prompt", "--session", "serve", "Serve"], { env })
      yield* calls("sh -c 'exec 3>life; exec sleep 1000' & export A=lost")
      yield* calls("sh -c 'exec 3>life; echo runs >&3; exec sleep 1000'")
      yield* life.first
      yield* run.signal("SIGKILL")
      yield* run.ended
      yield* life.ended
      const again = yield* here.start(["prompt", "--session", "serve", "Again"], { env })
      yield* calls("echo [$A]")
      const last = yield* model.next
      assert.include(lastOf(last), "[]\n")
      assert.include(lastOf(last), "This is a new shell")
      yield* last.text("Gone.")
      yield* last.finish()
      assert.strictEqual((yield* again.ended).code, 0)
      const events = jsonLines((yield* here.run(["events", "serve", "--json"])).stdout)
      const closes = events.filter(({ type }) => type === "session.next.shell.closed")
      assert.deepStrictEqual(
        closes.map(({ data }) => (data as { readonly reason?: unknown }).reason),
        ["lost", "shutdown"]
      )
    })
  )
})
