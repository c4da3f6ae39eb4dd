/** System context through the whole runtime: what reads discover, what a switch tells, what stays byte for byte. */
import { realpathSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type * as Daybook from "../../packages/embedded/src/Daybook.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { dataOf, resultsIn, systemTexts } from "../runner/support/Runs.ts"
import { newSession, open, runtime, say, scene, temporaryFolder, userTexts } from "../support/Harness.ts"
import { callParts, calls, otherRef, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { put } from "./support/Look.ts"

const folder = Effect.map(temporaryFolder, (path) => realpathSync(path))

/** Prompts, runs, and returns the first request that was not taken. */
const turn = Effect.fnUntraced(function* (sessionID: SessionID, prompt: string) {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel
  yield* model.answer(says("yes"))
  yield* say(sessionID, prompt, { resume: false })
  yield* sessions.resume(sessionID)
  return yield* model.request
})

it.scoped(
  "CX-26: a read makes the instructions on its way known for good; they are told at the next safe boundary",
  () =>
    Effect.gen(function* () {
      const here = yield* folder
      yield* put(join(here, "a", "AGENTS.md"), "Rule of a.")
      yield* put(join(here, "a", "b", "CLAUDE.md"), "Rule of b.")
      yield* put(join(here, "a", "b", "file.txt"), "content")
      yield* put(join(here, "other", "AGENTS.md"), "Rule of another folder.")
      const { id, model } = yield* scene(here)
      yield* model.answer(calls(callParts("c1", "read", { path: "a/b/file.txt" })))
      yield* turn(id, "read it")
      const after = yield* model.request
      const told = userTexts(after).join()
      assert.match(told, /Rule of a\.[^]*Rule of b\./)
      assert.notInclude(told, "another folder")
      assert.deepStrictEqual(yield* dataOf(id, "session.next.instructions.discovered"), [
        { paths: [join(here, "a", "AGENTS.md"), join(here, "a", "b", "CLAUDE.md")] }
      ])
      // A second read on the same way discovers nothing more, and nothing is told again.
      yield* model.answer(calls(callParts("c2", "read", { path: "a/b/file.txt" })))
      yield* turn(id, "again")
      yield* model.request
      assert.strictEqual((yield* dataOf(id, "session.next.instructions.discovered")).length, 1)
      assert.strictEqual((yield* dataOf(id, "session.next.context.updated")).length, 1)
      // When one goes, the rest is told in its place.
      rmSync(join(here, "a", "AGENTS.md"))
      yield* turn(id, "more")
      const [, gone] = yield* dataOf(id, "session.next.context.updated")
      assert.include(gone?.text, `What came from ${join(here, "a", "AGENTS.md")} no longer holds.`)
    }).pipe(Effect.provide(runtime()))
)

it.scoped("CX-43: two reads at once that come upon one file tell it once", () =>
  Effect.gen(function* () {
    const here = yield* folder
    yield* put(join(here, "a", "AGENTS.md"), "Rule of a.")
    yield* put(join(here, "a", "one.txt"), "content")
    yield* put(join(here, "a", "two.txt"), "content")
    const { id, model } = yield* scene(here)
    const both = [callParts("c1", "read", { path: "a/one.txt" }), callParts("c2", "read", { path: "a/two.txt" })]
    yield* model.answer(calls(...both))
    yield* turn(id, "read them")
    const told = userTexts(yield* model.request).join()
    assert.strictEqual(told.split("Rule of a.").length, 2)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("CX-49, CX-43: a read of what does not belong to the project discovers nothing", () =>
  Effect.gen(function* () {
    const here = yield* folder
    yield* put(join(here, "node_modules", "x", "AGENTS.md"), "A stranger's rule.")
    yield* put(join(here, "node_modules", "x", "index.js"), "content")
    const { id, model } = yield* scene(here)
    yield* model.answer(calls(callParts("c1", "read", { path: "node_modules/x/index.js" })))
    yield* turn(id, "read it")
    assert.notInclude(userTexts(yield* model.request).join(), "stranger")
    assert.deepStrictEqual(yield* dataOf(id, "session.next.instructions.discovered"), [])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("CX-47: a project's skill is named in the baseline, and its body is loaded without a question", () =>
  Effect.gen(function* () {
    const here = yield* folder
    const file = join(here, ".daybook", "skills", "release", "SKILL.md")
    yield* put(file, "---\ndescription: how to release\n---\nStep one.")
    const { id, model } = yield* scene(here)
    yield* model.answer(calls(callParts("c1", "skill", { name: "release" })))
    const first = yield* turn(id, "release it")
    assert.include(systemTexts(first).join(), "- release: how to release")
    assert.notInclude(systemTexts(first).join(), "Step one.")
    assert.include(JSON.stringify(resultsIn(yield* model.request)), "Step one.")
  }).pipe(Effect.provide(runtime()))
)

it.scoped(
  "EP-6: the baseline is the same bytes after a switch of the model and of the agent; the model's is told",
  () =>
    Effect.gen(function* () {
      const { id, sessions } = yield* scene(yield* folder)
      const first = yield* turn(id, "one")
      yield* sessions.switchModel(id, otherRef)
      const second = yield* turn(id, "two")
      assert.strictEqual(second.model, "two")
      yield* sessions.switchAgent(id, "other")
      const third = yield* turn(id, "three")
      assert.deepStrictEqual(systemTexts(second), systemTexts(first))
      assert.deepStrictEqual(systemTexts(third), systemTexts(first))
      const updates = yield* dataOf(id, "session.next.context.updated")
      assert.strictEqual(updates.length, 1)
      assert.include(updates[0]?.text, "scripted/two")
    }).pipe(Effect.provide(runtime({ agents: [{ name: "other", permissions: [] }] })))
)

it.scoped("EP-6: the baseline is the same bytes after a restart, though the world is another", () =>
  Effect.gen(function* () {
    const [here, data] = [yield* folder, yield* folder]
    const options: Partial<Daybook.Options> = { filename: join(data, "daybook.sqlite") }
    yield* put(join(here, "AGENTS.md"), "Rule one.")
    const before = yield* Effect.scoped(
      Effect.flatMap(open(options), (context) =>
        Effect.gen(function* () {
          const { id } = yield* newSession(here)
          return { id, request: yield* turn(id, "one") }
        }).pipe(Effect.provide(context))
      )
    )
    yield* put(join(here, "AGENTS.md"), "Rule two.")
    const context = yield* open(options)
    const after = yield* Effect.provide(turn(before.id, "two"), context)
    assert.deepStrictEqual(systemTexts(after), systemTexts(before.request))
    assert.include(systemTexts(after).join(), "Rule one.")
    assert.include(userTexts(after).join(), "Rule two.")
  })
)
