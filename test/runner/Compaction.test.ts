/** The seam to compaction: a turn that is assembled anew after one (TU-4, TU-5). Here a compaction is what the test says. */
import { CurrentLocation, Daybook, layerHeadless, Sessions, SessionOwner, type SessionID } from "@daybook/core"
import { NodeContext } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Ref } from "effect"
import { Compaction } from "../../packages/core/src/compaction/Compaction.ts"
import * as ContextEpoch from "../../packages/core/src/context/ContextEpoch.ts"
import * as ContextRegistry from "../../packages/core/src/context/ContextRegistry.ts"
import * as Permission from "../../packages/core/src/permission/Permission.ts"
import * as SessionRunner from "../../packages/core/src/runner/SessionRunner.ts"
import * as ToolRegistry from "../../packages/core/src/tool/ToolRegistry.ts"
import * as ToolOutputStore from "../../packages/core/src/tool/ToolOutputStore.ts"
import { newSession, runtime, say, userTexts } from "../support/Harness.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import { dataOf } from "./support/Runs.ts"

const limited: Partial<Daybook.Options> = { agents: [{ name: "build", permissions: [], turnLimit: 1 }] }

/** No tool is called here: the folder is never made. */
const outputs = Layer.provide(ToolOutputStore.layer({ root: "tool-output" }), NodeContext.layer)

/** A runner at the session's Location whose compaction does what is given, and counts how often it is asked. */
const drain = Effect.fnUntraced(function* (sessionID: SessionID, compact: (asked: number) => Effect.Effect<boolean>) {
  const sessions = yield* Sessions
  const owners = yield* SessionOwner
  const { location } = yield* sessions.get(sessionID)
  const asked = yield* Ref.make(0)
  const compaction = Layer.succeed(Compaction, {
    compactIfNeeded: () =>
      Effect.flatMap(
        Ref.updateAndGet(asked, (n) => n + 1),
        compact
      ),
    compactAfterOverflow: () => Effect.succeed(false)
  })
  const runner = SessionRunner.layer({ steerBatchLimit: 100 }).pipe(
    Layer.provide([ToolRegistry.layer, ContextRegistry.layer, compaction]),
    Layer.provide([Permission.layer, ContextEpoch.layer]),
    Layer.provide([Layer.succeed(CurrentLocation, location), layerHeadless, outputs])
  )
  const { token } = yield* owners.acquireNow(sessionID)
  const result = yield* Effect.provide(
    Effect.flatMap(SessionRunner.SessionRunner, ({ run }) => run({ sessionID, owner: token, force: true })),
    runner
  )
  return { result, asked: yield* Ref.get(asked) }
})

it.scoped("TU-5: a turn that is assembled anew after a compaction promotes nothing more", () =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const model = yield* ScriptedModel
    const { id } = yield* newSession()
    yield* say(id, "first", { resume: false })
    const steer = Effect.provideService(say(id, "during", { resume: false }), Sessions, sessions)
    yield* model.answer(says("one"))
    yield* model.answer(says("two"))
    const { result } = yield* drain(id, (asked) =>
      asked === 1 ? Effect.as(Effect.orDie(steer), true) : Effect.succeed(false)
    )
    assert.strictEqual(result._tag, "Drained")
    assert.deepStrictEqual(userTexts(yield* model.request), ["first"])
    assert.deepStrictEqual(userTexts(yield* model.request), ["first", "during"])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TU-4: a compaction is no turn, and there is never a second one without a turn in between", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    const { id } = yield* newSession()
    yield* say(id, "first", { resume: false })
    yield* model.answer(says("one"))
    const { asked, result } = yield* drain(id, () => Effect.succeed(true))
    assert.strictEqual(result._tag, "Drained")
    assert.strictEqual(asked, 1)
    assert.strictEqual((yield* dataOf(id, "session.next.step.started")).length, 1)
  }).pipe(Effect.provide(runtime(limited)))
)
