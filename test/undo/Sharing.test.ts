/** Undo where more than one prompt, session or process has to do with the files. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Stream, Struct, TestClock } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Snapshots from "../../packages/core/src/snapshot/Snapshots.ts"
import { say } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { contents, place, project, write } from "./support/Repository.ts"
import { changesOf, session, sh, suite, work } from "./support/Session.ts"
import { lacks } from "../support/Parts.ts"
import { session as sessionID } from "./support/Snapshotting.ts"

const text = (folder: string, name: string) => readFileSync(join(folder, name), "utf8")

describe("undo with others", () => {
  suite(
    "UN-13: in one activity, what a turn changed belongs to the last prompt before it",
    { "a.txt": "1", "b.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
        const { id } = yield* session(folder)
        const gate = yield* Deferred.make<void>()
        const waits = Stream.drain(Stream.fromEffect(Deferred.await(gate)))
        yield* model.answer(Stream.concat(waits, calls(callParts("c", ...sh("echo 2 > a.txt")))))
        yield* say(id, "one")
        yield* model.request
        yield* say(id, "two", { delivery: "steer" })
        yield* Deferred.succeed(gate, undefined)
        yield* model.answer(calls(callParts("d", ...sh("echo 2 > b.txt"))))
        yield* model.answer(says("done"))
        yield* sessions.wait(id)
        const second = yield* sessions.undo({ sessionID: id })
        assert.deepStrictEqual(
          [second.prompt, second.files],
          [{ text: "two" }, [{ path: "b.txt", action: "restored" }]]
        )
        assert.strictEqual(text(folder, "a.txt"), "2\n")
        const first = yield* sessions.undo({ sessionID: id })
        assert.deepStrictEqual([first.prompt, first.files], [{ text: "one" }, [{ path: "a.txt", action: "restored" }]])
      })
  )

  suite(
    "UN-20, UN-21: of two sessions in one folder, an undo takes back its own session's changes only",
    { "a.txt": "1", "b.txt": "1", "both.txt": "1" },
    (folder) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const [one, two] = [yield* session(folder), yield* session(folder)]
        yield* work(one.id, "one", sh("echo 2 > a.txt; echo 2 > both.txt"))
        yield* work(two.id, "two", sh("echo 2 > b.txt; echo 3 > both.txt"))
        const account = yield* sessions.undo({ sessionID: one.id })
        assert.deepStrictEqual(account.files, [
          { path: "a.txt", action: "restored" },
          { path: "both.txt", action: "conflict", reason: "it changed since the turn" }
        ])
        assert.deepStrictEqual([text(folder, "b.txt"), text(folder, "both.txt")], ["2\n", "3\n"])
        yield* sessions.remove(one.id)
        const other = yield* sessions.undo({ sessionID: two.id })
        assert.deepStrictEqual([other.counts.restored, other.counts.conflicts], [2, 0])
        assert.deepStrictEqual([text(folder, "b.txt"), text(folder, "both.txt")], ["1", "2\n"])
      })
  )

  describe.skipIf(lacks("bubblewrap"))("in a sandbox", () => {
    suite(
      "UN-11, UN-20: what a sandboxed command changed is taken back",
      { "a.txt": "1", "dir/b.txt": "1" },
      (folder) =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const { id } = yield* session(folder)
          const state = contents(folder)
          yield* work(id, "one", sh("echo 2 > a.txt; rm -r dir; mkdir new; echo 1 > new/c.txt; chmod +x a.txt"))
          assert.isTrue(existsSync(join(folder, "new/c.txt")), "the sandbox lets the command write")
          assert.deepStrictEqual((yield* changesOf(id)).map(Struct.get("files")), [["a.txt", "dir/b.txt", "new/c.txt"]])
          yield* sessions.undo({ sessionID: id })
          assert.deepStrictEqual(contents(folder), state)
        }),
      { sandbox: { mode: "on" } }
    )
  })

  it.scoped("UN-12: after a snapshot above a limit none is tried for ten minutes, then again", () =>
    Effect.gen(function* () {
      const { base, options: given, work } = yield* place
      project(work, { "a.txt": "1", "b.txt": "1" })
      yield* Effect.gen(function* () {
        const { take } = yield* Snapshots.Snapshots
        assert.strictEqual((yield* Effect.flip(take(sessionID, work))).reason, "too-large")
        write(work, { ".gitignore": "*.txt\n" })
        yield* TestClock.adjust("9 minutes")
        assert.strictEqual((yield* Effect.flip(take(sessionID, work))).reason, "too-large")
        // Another folder does not wait.
        project(join(base, "other"), { "a.txt": "1" })
        assert.isDefined(yield* take(sessionID, join(base, "other")))
        yield* TestClock.adjust("1 minute")
        assert.isDefined(yield* take(sessionID, work))
      }).pipe(
        Effect.provide(Snapshots.layer({ folder: given.folder, limits: { files: 1 }, patience: Duration.hours(1) }))
      )
    })
  )
})
