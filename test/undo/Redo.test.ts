/** Redo from the facade down: what an undo did to files and history is taken back, or refused whole. */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { folderBeside } from "../../packages/core/src/snapshot/Snapshots.ts"
import { answerTo, eventTypes } from "../support/Harness.ts"
import { contents, write } from "./support/Repository.ts"
import { put, session, sh, suite, work } from "./support/Session.ts"

describe("redo", () => {
  suite(
    "UN-50, UN-53: redo takes back undo after undo, files and history, and an undo then takes back the same prompt",
    { "a.txt": "1", "b.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const states = [contents(folder)]
        const { id } = yield* session(folder)
        const leaf = Effect.map(
          sessions.messages({ sessionID: id, order: "desc", limit: 1 }),
          ({ items }) => items[0]?.id
        )
        assert.strictEqual((yield* Effect.flip(sessions.redo({ sessionID: id })))._tag, "NothingToRedo")
        yield* work(id, "one", put("new.txt", "1"), sh("rm b.txt"))
        states.push(contents(folder))
        const first = yield* leaf
        yield* work(id, "two", sh("echo 2 > a.txt; chmod +x new.txt"))
        states.push(contents(folder))
        const second = yield* leaf
        yield* sessions.undo({ sessionID: id })
        yield* sessions.undo({ sessionID: id })
        assert.deepStrictEqual(contents(folder), states[0])
        const planned = yield* sessions.redo({ sessionID: id, dryRun: true })
        assert.deepStrictEqual(contents(folder), states[0])
        const one = yield* sessions.redo({ sessionID: id })
        assert.deepStrictEqual(one, { ...planned, undone: true })
        assert.deepStrictEqual(one.files, [
          { path: "b.txt", action: "deleted" },
          { path: "new.txt", action: "recreated" }
        ])
        assert.deepStrictEqual([one.leafID, yield* leaf], [first, first])
        assert.deepStrictEqual(contents(folder), states[1])
        const two = yield* sessions.redo({ sessionID: id })
        assert.deepStrictEqual([two.leafID, yield* leaf], [second, second])
        assert.deepStrictEqual(contents(folder), states[2])
        assert.strictEqual((yield* Effect.flip(sessions.redo({ sessionID: id })))._tag, "NothingToRedo")
        const again = yield* sessions.undo({ sessionID: id })
        assert.deepStrictEqual(again.prompt, { text: "two" })
        assert.deepStrictEqual(contents(folder), states[1])
        yield* sessions.redo({ sessionID: id })
        assert.deepStrictEqual(contents(folder), states[2])
      })
  )

  suite(
    "UN-51, UN-52: redo is refused whole if session or files went on, and force redoes files that changed",
    { "a.txt": "1", "b.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* session(folder)
        yield* work(id, "one", sh("echo 2 > a.txt; echo 2 > b.txt"))
        yield* sessions.undo({ sessionID: id })
        write(folder, { "b.txt": "mine" })
        const [state, events] = [contents(folder), yield* eventTypes(id)]
        const files = yield* Effect.flip(sessions.redo({ sessionID: id }))
        assert.deepInclude(files, { _tag: "RedoRefused", reason: "files", paths: ["b.txt"] })
        assert.deepStrictEqual([contents(folder), yield* eventTypes(id)], [state, events])
        const forced = yield* sessions.redo({ sessionID: id, force: true })
        assert.strictEqual(forced.counts.restored, 2)
        assert.strictEqual(readFileSync(join(folder, "b.txt"), "utf8"), "2\n")
        yield* sessions.undo({ sessionID: id })
        yield* answerTo(id, "two", "hello")
        const later = yield* eventTypes(id)
        const history = yield* Effect.flip(sessions.redo({ sessionID: id, force: true }))
        assert.deepInclude(history, { _tag: "RedoRefused", reason: "history" })
        assert.deepStrictEqual(yield* eventTypes(id), later)
        assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "1")
      })
  )

  suite(
    "UN-28: what a forced undo overwrites was stored before, and redo brings it back",
    { "a.txt": "1", "b.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* session(folder)
        yield* work(id, "one", sh("echo 2 > a.txt; echo 2 > new.txt"))
        write(folder, { "a.txt": "mine", "new.txt": "mine too" })
        const state = contents(folder)
        yield* sessions.undo({ sessionID: id, force: true })
        assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "1")
        assert.isFalse(existsSync(join(folder, "new.txt")))
        yield* sessions.redo({ sessionID: id })
        assert.deepStrictEqual(contents(folder), state)
      })
  )

  suite(
    "UN-53: without the snapshots around the undo only the history returns, and the account says why",
    { "a.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* session(folder)
        yield* work(id, "one", sh("echo 2 > a.txt"))
        const messages = (yield* sessions.messages({ sessionID: id })).items.map((message) => message.id)
        yield* sessions.undo({ sessionID: id })
        rmSync(folderBeside(join(folder, "../data/log.sqlite")), { recursive: true })
        const account = yield* sessions.redo({ sessionID: id })
        assert.deepStrictEqual([account.undone, account.files], [true, []])
        assert.strictEqual(account.problems.length, 1)
        assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "1")
        assert.deepStrictEqual((yield* sessions.messages({ sessionID: id })).items.map(Struct.get("id")), messages)
      })
  )

  suite("UN-50: an undo without snapshots is taken back too: the history returns", undefined, (folder) =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { id } = yield* session(folder)
      yield* work(id, "one", sh("echo 2 > a.txt"))
      const messages = (yield* sessions.messages({ sessionID: id })).items.map((message) => message.id)
      yield* sessions.undo({ sessionID: id })
      assert.deepStrictEqual((yield* sessions.messages({ sessionID: id })).items, [])
      const account = yield* sessions.redo({ sessionID: id })
      assert.deepStrictEqual([account.undone, account.files], [true, []])
      assert.deepStrictEqual((yield* sessions.messages({ sessionID: id })).items.map(Struct.get("id")), messages)
    })
  )
})
