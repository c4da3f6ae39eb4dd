/** What a move does to a running session: the fence, and going on where the session is then (TU-5, TU-11, EP-9). */
import { realpathSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Ref } from "effect"
import { HostContext } from "../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../packages/core/src/context/SystemContext.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { answerTo, newSession, runtime, say, temporaryFolder, userTexts } from "../support/Harness.ts"
import { callParts, calls, finish, held, says, ScriptedModel, textParts } from "../support/ScriptedModel.ts"
import { dataOf, gatedTool, resultsIn, systemTexts, tool } from "./support/Runs.ts"

const folder = Effect.map(temporaryFolder, (path) => realpathSync(path))

it.scoped("TU-11: a move during a turn lets the turn settle, and the next turn is at the new Location", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const [here, there] = [yield* folder, yield* folder]
    const seen = yield* Ref.make<ReadonlyArray<string>>([])
    yield* tool("where", ({ location }) =>
      Effect.as(
        Ref.update(seen, (all) => [...all, location.directory]),
        location.directory
      )
    )
    const gated = yield* gatedTool("slow")
    const { id } = yield* newSession(here)
    yield* model.answer(calls(callParts("c1", "where", {}), callParts("c2", "slow", {})))
    yield* say(id, "go")
    assert.strictEqual(yield* gated.begun, "c2")
    yield* sessions.move(id, { directory: there })
    yield* gated.open
    yield* model.answer(calls(callParts("c3", "where", {})))
    yield* model.answer(says("done"))
    yield* sessions.wait(id)
    assert.include(systemTexts(yield* model.request).join(), here)
    const second = yield* model.request
    // The results of the old turn are shown, under the baseline of the new Location.
    assert.deepStrictEqual(resultsIn(second), [
      ["c1", here],
      ["c2", "slow c2 is done"]
    ])
    assert.include(systemTexts(second).join(), there)
    assert.notInclude(systemTexts(second).join(), here)
    assert.deepStrictEqual(yield* Ref.get(seen), [here, there])
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.activity.settled")).map(({ error, outcome }) => [outcome, error?.type]),
      [
        ["interrupted", "session.moved"],
        ["completed", undefined]
      ]
    )
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-11: a move after the last turn starts nothing; the next prompt runs at the new Location", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const [here, there] = [yield* folder, yield* folder]
    const { id } = yield* newSession(here)
    const gate = yield* Deferred.make<void>()
    yield* model.answer(held([], gate, [...textParts("t", "done"), finish()]))
    yield* say(id, "go")
    yield* model.request
    yield* sessions.move(id, { directory: there })
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
    assert.strictEqual(yield* model.pending, 0)
    yield* answerTo(id, "and now", "hello")
    assert.include(systemTexts(yield* model.request).join(), there)
  }).pipe(Effect.provide(runtime()))
)

/** Moves the session while the context of a turn is observed: after the look at the session, before anything is written. */
const movesOnce = Effect.fnUntraced(function* (to: string, sessionID: () => SessionID | undefined) {
  const sessions = yield* Sessions
  const host = yield* HostContext
  const moved = yield* Ref.make(false)
  const load = Effect.gen(function* () {
    const id = sessionID()
    if (id !== undefined && !(yield* Ref.getAndSet(moved, true)))
      yield* Effect.orDie(sessions.move(id, { directory: to }))
    return SystemContext.absent
  })
  yield* host.register(SystemContext.textSource("test/mover", () => load))
})

it.scoped(
  "TU-5: the fence holds in the transaction of whatever opens a turn: nothing begins at a Location that was left",
  () =>
    Effect.gen(function* () {
      const model = yield* ScriptedModel
      const [here, there] = [yield* folder, yield* folder]
      const { id } = yield* newSession(here)
      yield* movesOnce(there, () => id)
      yield* answerTo(id, "go", "done")
      const request = yield* model.request
      assert.include(systemTexts(request).join(), there)
      assert.notInclude(systemTexts(request).join(), here)
      assert.strictEqual(yield* model.pending, 0)
      assert.strictEqual((yield* dataOf(id, "session.next.activity.started")).length, 1)
    }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-5: a forced run that meets a move still makes its one turn, at the new Location", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const [here, there] = [yield* folder, yield* folder]
    const { id } = yield* newSession(here)
    yield* movesOnce(there, () => id)
    yield* model.answer(says("done"))
    yield* sessions.resume(id)
    assert.include(systemTexts(yield* model.request).join(), there)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("EP-9: a move clears the epoch, and the destination starts from a baseline of its own", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const [here, there] = [yield* folder, yield* folder]
    const { id } = yield* newSession(here)
    yield* Effect.forEach(["one", "two"], (text) => model.answer(says(text)))
    yield* say(id, "a")
    yield* sessions.wait(id)
    yield* sessions.move(id, { directory: there })
    yield* say(id, "b")
    yield* sessions.wait(id)
    assert.include(systemTexts(yield* model.request).join(), here)
    const second = yield* model.request
    assert.include(systemTexts(second).join(), there)
    assert.notInclude(systemTexts(second).join(), here)
    assert.deepStrictEqual(userTexts(second), ["a", "b"])
    assert.deepStrictEqual(yield* dataOf(id, "session.next.context.updated"), [])
  }).pipe(Effect.provide(runtime()))
)
