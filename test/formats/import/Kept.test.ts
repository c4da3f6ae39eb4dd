/** Tests what an imported compaction keeps, and that logs are opened with the reader of their dialect. */
import * as NodeContext from "@effect/platform-node/NodeContext"
import { FileSystem } from "@effect/platform/FileSystem"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Stream, Struct } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as LogSource from "../../../packages/formats/src/import/LogSource.ts"
import { allUserTexts, runtime } from "../../support/Harness.ts"
import { ref, says as said, ScriptedModel } from "../../support/ScriptedModel.ts"
import { bytes } from "../support/ClaudeLogs.ts"
import { rollout } from "../support/CodexLogs.ts"
import { answer, call, pieces, result, says, user } from "../support/Items.ts"
import { headOf, kindsOf } from "../support/Pieces.ts"
import { importPieces } from "../support/RoundTrips.ts"

it.scopedLive(
  "CP-60: a checkpoint with keptSeq keeps whole messages, and the next compaction summarizes them too",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      const none = { readFiles: [], modifiedFiles: [] }
      const { sessionID } = yield* importPieces(
        pieces("kept", [
          user("oldest"),
          says("gone"),
          user("kept prompt"),
          { _tag: "Compaction", summary: "Earlier summary.", firstKept: "k1", ...none },
          answer([call("c1")]),
          result("c1", "kept result"),
          { _tag: "Compaction", summary: "Later summary.", firstKept: "k3", ...none },
          user("newest"),
          says("kept answer")
        ])
      )
      const shown = yield* sessions.context(sessionID)
      assert.deepStrictEqual(shown.map(Struct.get("type")), ["compaction", "user", "assistant", "user", "assistant"])
      assert.include(JSON.stringify(shown), "kept result")
      for (const words of ["oldest", "gone", "Earlier summary."]) assert.notInclude(JSON.stringify(shown), words)
      yield* sessions.switchModel(sessionID, ref)
      yield* model.answer(said("## Goal\nAll of it"))
      yield* model.answer(said("## Goal\nAll of it"))
      yield* sessions.compact(sessionID)
      const asked = allUserTexts(yield* model.request).join("\n")
      for (const words of ["kept prompt", "Later summary.", "newest", "kept answer"]) assert.include(asked, words)
      yield* sessions.wait(sessionID)
    }).pipe(Effect.provide(runtime({ compaction: { keepRecentTokens: 0 } })))
)

it.scoped("IM-48: a log is opened with the reader of the dialect that it shows, or that the caller names", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem
    const path = `${yield* files.makeTempDirectoryScoped()}/session.log`
    yield* files.writeFile(path, bytes(rollout(1)))
    const read = (choice?: LogSource.Choice) =>
      Effect.map(Stream.runCollect(LogSource.open(path, choice)), Chunk.toReadonlyArray)
    assert.strictEqual(headOf(yield* read())?.dialect, "codex")
    assert.strictEqual(headOf(yield* read("codex"))?.dialect, "codex")
    const named = yield* read("claude-code")
    assert.deepStrictEqual([headOf(named), kindsOf(named).at(-1)], [undefined, "not-a-session"])
    yield* files.writeFileString(path, '{"name":"package"}\n')
    assert.strictEqual((yield* Effect.flip(read()))._tag, "UnknownDialect")
  }).pipe(Effect.provide(NodeContext.layer))
)
