/** `daybook undo` as a process, on a session whose turns changed files of a real repository. */
import { mkdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { runtime, say } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { repository, write } from "../undo/support/Repository.ts"
import { build } from "./support/Bundle.ts"
import { place } from "./support/Process.ts"

beforeAll(() => void build())

/** A session "fix" whose last prompt changed two files. */
const prepared = (database: string, folder: string) =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const { id } = yield* sessions.create({ location: { directory: folder }, agent: "free", title: "fix" })
    yield* model.answer(calls(callParts("c", "bash", { command: "echo 2 > a.txt; echo 2 > b.txt" })))
    yield* model.answer(says("done"))
    yield* say(id, "change them")
    yield* sessions.wait(id)
    return id
  }).pipe(
    Effect.provide(
      runtime({
        filename: database,
        agents: [{ name: "free", permissions: [{ permission: "*", resource: "*", verdict: "allow" }] }]
      })
    )
  )

describe("undo", () => {
  it.scopedLive(
    "CL-275 to CL-279: undo restores files, names what it leaves, prints the prompt, and exits with 1 for files it left",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        mkdirSync(dirname(here.database), { recursive: true })
        repository(here.cwd, { "a.txt": "1", "b.txt": "1" })
        const id = yield* prepared(here.database, here.cwd)
        write(here.cwd, { "b.txt": "mine" })
        const dry = yield* here.run(["undo", "--dry-run"])
        assert.deepStrictEqual([dry.code, dry.stdout], [1, ""])
        assert.include(dry.stderr, "restored   a.txt")
        assert.include(dry.stderr, "left       b.txt: it changed since the turn")
        assert.strictEqual(readFileSync(join(here.cwd, "a.txt"), "utf8"), "2\n")
        const json = yield* here.run(["undo", "fix", "--dry-run", "--json"])
        assert.deepInclude(JSON.parse(json.stdout), { sessionID: id, undone: false, prompt: { text: "change them" } })
        const undone = yield* here.run(["undo", "fix"])
        assert.deepStrictEqual([undone.code, undone.stdout], [1, "change them\n"])
        assert.strictEqual(readFileSync(join(here.cwd, "a.txt"), "utf8"), "1")
        assert.strictEqual(readFileSync(join(here.cwd, "b.txt"), "utf8"), "mine")
        const nothing = yield* here.run(["undo", "fix"])
        assert.strictEqual(nothing.code, 3)
        assert.include(nothing.stderr, "has no prompt to undo")
        assert.strictEqual((yield* here.run(["undo"], { cwd: here.root })).code, 3)
      }),
    120_000
  )
})
