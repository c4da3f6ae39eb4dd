/** Tests that logs of Claude Code and Codex become sessions that run. Spec: FM-133, FM-138, FM-143, FM-156. */
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as ClaudeReader from "../../../packages/formats/src/claude/ClaudeReader.ts"
import * as CodexReader from "../../../packages/formats/src/codex/CodexReader.ts"
import type { Piece } from "../../../packages/formats/src/conversation/Conversation.ts"
import { importLog } from "../../../packages/formats/src/import/Import.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { runtime, say, userTexts } from "../../support/Harness.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { assistant, bytes, type Json, session, system, text, user, uuid } from "../support/ClaudeLogs.ts"
import { rollout } from "../support/CodexLogs.ts"

/** Imports a log, prompts its session, and returns what the model was shown, and the session before. */
const continued = (pieces: Stream.Stream<Piece>) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const report = yield* importLog(() => pieces, { directory: "/tmp" })
    const imported = yield* sessions.get(report.sessionID)
    const model = yield* ScriptedModel
    yield* model.answer(says("Fine."))
    yield* say(report.sessionID, "And now?")
    const request = yield* model.request
    yield* sessions.wait(report.sessionID)
    return { report, imported, prompts: userTexts(request), shown: JSON.stringify(request.prompt) }
  }).pipe(Effect.provide(runtime()))

const claude = (log: Iterable<Json>) => ClaudeReader.read()(Stream.make(bytes(log)))
const codex = (log: Iterable<Json>) => CodexReader.read()(Stream.make(bytes(log)))

it.effect("FM-138: a session of Claude Code is imported with its usage, shown to the model and continued", () =>
  Effect.gen(function* () {
    const { imported, prompts, report, shown } = yield* continued(claude(session(3, 40)))
    assert.deepStrictEqual(report.problems, {})
    assert.deepInclude(report, { prompts: 3, answers: 6, results: 6 })
    const cacheRead = 2 * (1_000 + 1_001 + 1_002)
    assert.deepStrictEqual(imported.tokens, {
      input: 6 * (3 + 20) + cacheRead,
      output: 3 * 45,
      reasoning: 0,
      cache: { read: cacheRead, write: 6 * 20 }
    })
    assert.strictEqual(prompts.length, 4)
    for (const words of ["Answer 2: done", "b.ts", "/work/shop/a1.ts"]) assert.include(shown, words)
  })
)

it.effect("FM-143: after an import, the model is shown the summary and what the compaction kept", () =>
  Effect.gen(function* () {
    const { shown } = yield* continued(
      claude([
        user(1, null, "first prompt"),
        assistant(2, 1, "a", [text("first answer")]),
        user(3, 2, "second prompt"),
        assistant(4, 3, "b", [text("second answer")]),
        system(5, null, "compact_boundary", {
          logicalParentUuid: uuid(4),
          compactMetadata: { preTokens: 9_000, preservedSegment: { headUuid: uuid(3), tailUuid: uuid(4) } }
        }),
        user(6, 5, "The summary", { isCompactSummary: true }),
        user(7, 6, "third prompt"),
        assistant(8, 7, "c", [text("third answer")])
      ])
    )
    for (const words of ["The summary", "second answer", "third answer"]) assert.include(shown, words)
    assert.notInclude(shown, "first answer")
  })
)

it.effect("FM-137: after an import, the model is not shown the prompt that was replaced, nor its answer", () =>
  Effect.gen(function* () {
    const { prompts, shown } = yield* continued(
      claude([
        user(1, null, "first prompt"),
        assistant(2, 1, "a", [text("first answer")]),
        user(3, 2, "bad prompt"),
        assistant(4, 3, "b", [text("bad answer")]),
        user(5, 2, "better prompt"),
        assistant(6, 5, "c", [text("better answer")])
      ])
    )
    assert.deepStrictEqual(prompts, ["first prompt", "better prompt", "And now?"])
    assert.notInclude(shown, "bad answer")
  })
)

it.effect("FM-156: a rollout of Codex is imported with its usage, its messages and its model", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const report = yield* importLog(() => codex(rollout(3, 40)), { directory: "/tmp" })
    assert.deepStrictEqual(report.problems, {})
    assert.deepInclude(report, { prompts: 3, answers: 6, results: 3 })
    const imported = yield* sessions.get(report.sessionID)
    assert.deepInclude(imported.model, { providerID: "openai", id: "gpt-5.5" })
    assert.deepStrictEqual(imported.tokens, {
      input: 600,
      output: 120,
      reasoning: 30,
      cache: { read: 240, write: 0 }
    })
    const { items } = yield* sessions.messages({ sessionID: report.sessionID, limit: 100 })
    const shown = JSON.stringify(items)
    for (const words of ["Prompt 0", "Answer 2: done", "cat 1"]) assert.include(shown, words)
  }).pipe(Effect.provide(runtime()))
)
