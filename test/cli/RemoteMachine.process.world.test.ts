/** Verbs about the machine of a server, beside the same verbs on the machine itself. */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"
import { serveAt } from "./support/RemoteServer.ts"
import { shellPlace } from "./support/ShellHost.ts"

beforeAll(() => void build())

it.scopedLive("CL-303, HT-55: stats prints over a server what it prints on its database", () =>
  Effect.gen(function* () {
    const here = yield* place
    // Before the server starts, so that nothing is written while both are compared.
    yield* here.run(["prompt", "--session", "fix", "say one"])
    const words = yield* serveAt(here)
    for (const given of [["stats"], ["stats", "--json", "--exact"], ["stats", "fix"], ["stats", "fix", "--json"]]) {
      const [remote, local] = [yield* here.run([...words, ...given]), yield* here.run(given)]
      assert.deepStrictEqual(remote, local, given.join(" "))
    }
    const [one] = jsonLines((yield* here.run([...words, "stats", "fix", "--json"])).stdout)
    assert.deepInclude(one?.["metrics"], { turns: 1 })
    assert.strictEqual((yield* here.run([...words, "stats", "no such"])).code, 3)
  })
)

it.scopedLive(
  "CL-303, HT-56: shell list prints over a server the shells of its machine, other actions need the machine",
  () =>
    Effect.gen(function* () {
      const here = yield* shellPlace()
      const words = yield* serveAt(here)
      const over = (...given: ReadonlyArray<string>) => here.run([...words, "shell", ...given])
      assert.deepStrictEqual(yield* over("list", "--json"), { code: 0, signal: null, stdout: "", stderr: "" })
      const ids = [yield* here.create(), yield* here.create("--cwd", "/usr")]
      const listed = jsonLines((yield* over("list", "--json")).stdout)
      assert.deepStrictEqual(
        listed.map(({ busy, cwd, session_id: id, transport }) => [id, transport, cwd, busy]),
        [
          [ids[0], "local", here.cwd, 0],
          [ids[1], "local", "/usr", 0]
        ]
      )
      assert.match((yield* over("list")).stdout, /local +\/usr +idle \d+ s\n$/)
      const refused = yield* over("destroy", "--all")
      assert.deepStrictEqual([refused.code, refused.stdout], [2, ""])
      assert.strictEqual((yield* over("watch", "--serve")).code, 2)
      assert.lengthOf(jsonLines((yield* here.shell(["list", "--json"])).stdout), 2)
    })
)

it.scopedLive("CL-303, HT-56: shell watch prints over a server what it prints on its database, and follows", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const words = yield* serveAt(here)
    const id = yield* here.create()
    yield* here.shell(["exec", id, "--", "echo first"])
    const all = yield* here.shell(["watch", "--json"])
    const [opened, ...rest] = jsonLines(all.stdout)
    assert.isAtLeast(rest.length, 1)
    const session = String(opened?.["sessionID"])
    const after = String(opened?.["position"])
    for (const given of [
      ["watch"],
      ["watch", "--output"],
      ["watch", "--json"],
      ["watch", session, "--json"],
      ["watch", "--json", "--after", after]
    ]) {
      assert.deepStrictEqual(yield* here.run([...words, "shell", ...given]), yield* here.shell(given), given.join(" "))
    }
    const follower = yield* here.start([...words, "shell", "watch", "--follow", "--output"])
    yield* follower.until("stdout", (text) => text.includes("| first"))
    yield* here.shell(["exec", id, "--", "echo second"])
    yield* follower.until("stdout", (text) => text.includes("| second"))
  })
)
