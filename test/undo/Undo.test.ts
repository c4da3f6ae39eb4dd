/** Undo from the facade down: real tools in a real repository, driven by a scripted model. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Stream, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { eventTypes, say, userTexts } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel, textParts } from "../support/ScriptedModel.ts"
import { contents, write } from "./support/Repository.ts"
import { changesOf, put, session, sh, suite, work } from "./support/Session.ts"

describe("undo", () => {
  suite(
    "UN-26: an undo restores the files of the last prompt's turns and continues before it; again goes further back",
    { "a.txt": "1", "b.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const start = contents(folder)
        const { id } = yield* session(folder)
        yield* work(id, "one", put("new.txt", "1"), sh("rm b.txt"))
        const middle = contents(folder)
        yield* work(id, "two", sh("echo 2 > a.txt; echo x > new.txt"))
        const second = yield* sessions.undo({ sessionID: id })
        assert.deepStrictEqual(second.prompt, { text: "two" })
        assert.deepStrictEqual(second.files, [
          { path: "a.txt", action: "restored" },
          { path: "new.txt", action: "restored" }
        ])
        assert.deepStrictEqual(contents(folder), middle)
        const first = yield* sessions.undo({ sessionID: id })
        assert.deepStrictEqual(first.files, [
          { path: "b.txt", action: "recreated" },
          { path: "new.txt", action: "deleted" }
        ])
        assert.isUndefined(first.leafID)
        assert.deepStrictEqual(contents(folder), start)
        assert.deepStrictEqual((yield* eventTypes(id)).slice(-2), [
          "session.next.files.restored",
          "session.next.leaf.moved"
        ])
        assert.strictEqual((yield* Effect.flip(sessions.undo({ sessionID: id })))._tag, "NothingToUndo")
        // The next request shows nothing of what was taken back.
        const model = yield* ScriptedModel
        yield* model.answer(says("3"))
        yield* say(id, "three")
        let last = yield* model.request
        while (!userTexts(last).includes("three")) last = yield* model.request
        assert.deepStrictEqual(userTexts(last), ["three"])
        yield* sessions.wait(id)
      })
  )

  suite(
    "UN-10: a turn with tools that only read takes no snapshot; one that changes nothing stores no event",
    { "a.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const { id } = yield* session(folder)
        yield* work(id, "look", ["read", { path: "a.txt" }], ["glob", { pattern: "*" }])
        const store = join(folder, "..", "data", "snapshots")
        assert.isFalse(existsSync(store))
        yield* work(id, "list", sh("ls"))
        assert.isTrue(existsSync(store))
        assert.deepStrictEqual(yield* changesOf(id), [])
      })
  )

  suite(
    "UN-21, UN-32: a dry run changes nothing; the person's later work is left and named, and force takes it back",
    { "a.txt": "1", "b.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* session(folder)
        yield* work(id, "one", sh("echo 2 > a.txt; echo 2 > b.txt"))
        write(folder, { "a.txt": "mine" })
        const [state, events] = [contents(folder), yield* eventTypes(id)]
        const planned = yield* sessions.undo({ sessionID: id, dryRun: true })
        assert.isFalse(planned.undone)
        assert.deepStrictEqual(planned.files, [
          { path: "a.txt", action: "conflict", reason: "it changed since the turn" },
          { path: "b.txt", action: "restored" }
        ])
        assert.deepStrictEqual(contents(folder), state)
        assert.deepStrictEqual(yield* eventTypes(id), events)
        const forced = yield* sessions.undo({ sessionID: id, force: true })
        assert.strictEqual(forced.counts.conflicts, 0)
        assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "1")
      })
  )

  suite("UN-11: an interrupted turn stores what its tools changed", { "a.txt": "1" }, (folder) =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const { id } = yield* session(folder)
      yield* model.answer(calls(callParts("c", ...sh("echo 2 > a.txt; echo ready; sleep 60"))))
      yield* say(id, "one")
      yield* sessions.events({ sessionID: id }).pipe(
        Stream.takeUntil(({ type }) => type === "session.next.tool.progress"),
        Stream.runDrain
      )
      yield* sessions.interrupt(id)
      assert.deepStrictEqual((yield* changesOf(id)).map(Struct.get("files")), [["a.txt"]])
      yield* sessions.undo({ sessionID: id })
      assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "1")
    })
  )

  suite("UN-1, UN-27: outside of a work tree only the history goes back, and no file is named", undefined, (folder) =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { id } = yield* session(folder)
      yield* work(id, "one", sh("echo 2 > a.txt"))
      const account = yield* sessions.undo({ sessionID: id })
      assert.deepStrictEqual([account.undone, account.files, account.problems], [true, [], []])
      assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "2\n")
      assert.deepStrictEqual(account.counts, { restored: 0, recreated: 0, deleted: 0, already: 0, conflicts: 0 })
    })
  )

  suite(
    "UN-12, UN-29: without git the turn continues, and the undo of history says why files stay",
    { "a.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* session(folder)
        const path = process.env["PATH"]
        yield* Effect.acquireUseRelease(
          Effect.sync(() => void (process.env["PATH"] = "/nowhere")),
          () => work(id, "one", put("a.txt", "2")),
          () => Effect.sync(() => void (process.env["PATH"] = path))
        )
        const account = yield* sessions.undo({ sessionID: id })
        assert.deepStrictEqual(account.problems, ["git is not installed"])
        assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "2")
      })
  )

  suite("UN-30: while the session runs, an undo is refused and changes nothing", { "a.txt": "1" }, (folder) =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const { id } = yield* session(folder)
      yield* work(id, "one", sh("echo 2 > a.txt"))
      const gate = yield* Deferred.make<void>()
      const waits = Stream.drain(Stream.fromEffect(Deferred.await(gate)))
      yield* model.answer(Stream.concat(Stream.fromIterable(textParts("t", "2")), waits))
      yield* say(id, "two")
      yield* sessions.events({ sessionID: id }).pipe(
        Stream.filter(({ type }) => type === "session.next.prompt.promoted"),
        Stream.take(2),
        Stream.runDrain
      )
      assert.strictEqual((yield* Effect.flip(sessions.undo({ sessionID: id })))._tag, "SessionBusy")
      assert.strictEqual(readFileSync(join(folder, "a.txt"), "utf8"), "2\n")
      yield* Deferred.succeed(gate, undefined)
      yield* sessions.interrupt(id)
    })
  )

  suite("UN-9: removing the session erases its snapshots", { "a.txt": "1" }, (folder) =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const { id } = yield* session(folder)
      yield* work(id, "one", sh("echo 2 > a.txt"))
      yield* sessions.remove(id)
      assert.deepStrictEqual(Object.keys(contents(join(folder, "..", "data", "snapshots"))), [])
    })
  )
})
