/** Prompts that wait for their answer while the past is summarized: they stay as they are (CP-49). */
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { allUserTexts, answerTo, scene } from "../support/Harness.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import { checkpointIn, compaction, exchange, full, long, narrow, summary } from "./support/Talks.ts"

/** One pixel. */
const picture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

it.scoped(
  "CP-49: a prompt without an answer is shown after the checkpoint with its picture and its own system text",
  () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      for (const name of ["one", "two", "three"]) yield* exchange(id, name, { prompt: 1_600, answer: 500 })
      yield* model.answer(says(summary("Kept")))
      yield* model.answer(says("I see it."))
      const text = long("four", 100)
      yield* sessions.prompt({
        sessionID: id,
        prompt: { text, system: "Answer in French.", files: [{ uri: picture, mime: "image/png", name: "dot.png" }] }
      })
      yield* sessions.wait(id)
      yield* model.request
      const request = yield* model.request
      const [checkpoint, system, prompt, ...rest] = request.prompt.content.filter(({ role }) => role === "user")
      assert.include(JSON.stringify(checkpoint), "<conversation-checkpoint>")
      assert.include(JSON.stringify(system), "Answer in French.")
      assert.include(JSON.stringify(prompt), text)
      assert.include(JSON.stringify(prompt), "image/png")
      assert.deepStrictEqual(rest, [])
      assert.notInclude(checkpointIn(request) ?? "", "Answer in French.")
      // It can be shown again, and the next turn repeats it.
      const steps = (yield* sessions.history({ sessionID: id })).events.filter(
        ({ type }) => type === "session.next.step.started"
      )
      const again = yield* sessions.request({ sessionID: id, at: steps.at(-1)?.seq ?? -1 })
      assert.deepStrictEqual(
        again.messages.map(({ content }) => JSON.stringify(content)).filter((content) => content.includes("image/png"))
          .length,
        1
      )
      assert.include(JSON.stringify(again.messages[0]), "<conversation-checkpoint>")
      const next = yield* exchange(id, "five", { prompt: 20 })
      assert.deepStrictEqual(allUserTexts(next).slice(0, 3), allUserTexts(request).slice(0, 3))
    }).pipe(Effect.provide(narrow({}, { contextTokens: 9_000 })))
)

it.scoped("CP-49: it is shown again by a runtime that reads the rows, in the same place", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const id = yield* full
    yield* model.answer(says(summary("Kept")))
    yield* answerTo(id, long("four", 100), "Done.")
    yield* model.request
    const request = yield* model.request
    const shown = yield* sessions.context(id)
    assert.deepStrictEqual(shown.map(Struct.get("type")), ["compaction", "user", "assistant"])
    assert.strictEqual(allUserTexts(request).length, 2)
  }).pipe(Effect.provide(narrow()))
)

it.scoped("CP-49: a prompt that would fill half of what there is goes into the checkpoint like everything else", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const id = yield* full
    yield* model.answer(says(summary("Kept")))
    yield* answerTo(id, long("four", 1_600), "Done.")
    yield* model.request
    const [checkpoint, ...others] = allUserTexts(yield* model.request)
    assert.include(checkpoint, "<conversation-checkpoint>")
    assert.deepStrictEqual(others, [])
  }).pipe(Effect.provide(narrow({ compaction: { ...compaction, reserveTokens: 3_000 } }, { contextTokens: 6_000 })))
)
