/** What the runtime does with the work of dead processes. */
import { assert, it } from "@effect/vitest"
import { Array as Arr, Effect, Layer, Queue, TestClock } from "effect"
import { join } from "node:path"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { PermissionAsker } from "../../packages/core/src/permission/PermissionAsker.ts"
import * as Harness from "../support/Harness.ts"
import { giveFileTo, goneOwner } from "../support/Owners.ts"
import { calls, callParts, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { recovery } from "./contract/Recovery.ts"

recovery(Harness)

it.scoped("EX-480: sessions that wait for a person do not keep other sessions from being resumed", () =>
  Effect.gen(function* () {
    const filename = join(yield* Harness.temporaryFolder, "daybook.db")
    const prompted = Effect.forEach(Arr.range(1, 17), (number) =>
      Effect.flatMap(Harness.newSession(), ({ id }) => Harness.say(id, `prompt ${number}`, { resume: false }))
    )
    yield* Effect.provide(prompted, Harness.runtime({ filename }))
    const permissionAsker = Layer.succeed(PermissionAsker, { ask: () => Effect.never })
    const resumed = Harness.runtime({ filename, recovery: "resume", permissionAsker })
    yield* Effect.gen(function* () {
      const model = yield* ScriptedModel
      const waits = model.answer(calls(callParts("c", "bash", { command: "rm -r build" })))
      yield* Effect.replicateEffect(waits, 16)
      yield* model.answer(says("Done."))
      const first = yield* Effect.replicateEffect(model.request, 16)
      yield* TestClock.adjust("10 seconds")
      const last = yield* model.request
      assert.strictEqual(new Set([...first, last].flatMap(Harness.userTexts)).size, 17)
    }).pipe(Effect.provide(resumed))
  })
)

/** Files that processes leave, one after the other. */
const files = Effect.map(Harness.temporaryFolder, (folder) => (number: number) => join(folder, `${number}.db`))

/** Runs this in a process on the file, which then dies and leaves the copy. */
const dies = <A, E>(filename: string, copy: string, work: Effect.Effect<A, E, Harness.Opened>) =>
  Effect.flatMap(Harness.open({ filename, recovery: "resume" }), (process) =>
    Effect.provide(work, process).pipe(
      Effect.zipLeft(Harness.leaveFile(filename, copy)),
      Effect.zipLeft(giveFileTo(copy, goneOwner))
    )
  )

const todos = calls(callParts("c", "todo", {}))

it.scopedLive("EX-E13: the turns of an activity count for its limit across the deaths of its processes", () =>
  Effect.gen(function* () {
    const at = yield* files
    /** Turns that end, and one in which the process dies. */
    const turns = Effect.flatMap(ScriptedModel, (model) =>
      Effect.zipRight(Effect.replicateEffect(model.answer(todos), 12), Effect.replicateEffect(model.request, 13))
    )
    const id = yield* dies(
      at(1),
      at(2),
      Effect.gen(function* () {
        const { id } = yield* Harness.newSession()
        yield* Harness.say(id, "first")
        yield* turns
        return id
      })
    )
    yield* dies(at(2), at(3), turns)
    yield* Effect.gen(function* () {
      yield* (yield* ScriptedModel).request
      yield* (yield* ScriptedModel).answer(todos)
      yield* (yield* Sessions).wait(id)
      const { activity } = yield* (yield* Sessions).get(id)
      assert.strictEqual(activity?.error?.type, "TurnLimitExceeded")
    }).pipe(Effect.provide(Harness.runtime({ filename: at(3), recovery: "resume" })))
  })
)

it.scopedLive("EX-E13: an activity goes on after its first death, also behind one whose process died", () =>
  Effect.gen(function* () {
    const at = yield* files
    const id = yield* dies(
      at(1),
      at(2),
      Effect.gen(function* () {
        const { id } = yield* Harness.newSession()
        yield* Harness.say(id, "first")
        yield* (yield* ScriptedModel).request
        return id
      })
    )
    // Settled by a person.
    yield* Effect.provide(
      Effect.flatMap(Sessions, (sessions) => sessions.settle(id)),
      Harness.runtime({ filename: at(2) })
    )
    yield* dies(
      at(2),
      at(3),
      Effect.gen(function* () {
        yield* Harness.say(id, "second")
        yield* (yield* ScriptedModel).request
      })
    )
    yield* Effect.gen(function* () {
      yield* (yield* ScriptedModel).request
      yield* (yield* ScriptedModel).answer(says("done"))
      yield* (yield* Sessions).wait(id)
      assert.strictEqual((yield* (yield* Sessions).get(id)).activity?.state, "completed")
    }).pipe(Effect.provide(Harness.runtime({ filename: at(3), recovery: "resume" })))
  })
)

it.scopedLive("EX-E13: an activity whose call ends its process twice in a row is settled, and the queue goes on", () =>
  Effect.gen(function* () {
    const folder = yield* Harness.temporaryFolder
    const files = ["one.db", "two.db", "three.db"].map((name) => join(folder, name))
    const [one = "", two = "", three = ""] = files
    const asked = yield* Queue.unbounded<void>()
    const permissionAsker = Layer.succeed(PermissionAsker, {
      ask: () => Effect.zipRight(Queue.offer(asked, undefined), Effect.never)
    })
    const call = calls(callParts("c", "bash", { command: "rm -r build" }))
    /** A process that ends while its call runs. */
    const dies = (filename: string, copy: string, prompt: Effect.Effect<unknown, unknown, Harness.Opened>) =>
      Effect.flatMap(Harness.open({ filename, recovery: "resume", permissionAsker }), (process) =>
        Effect.gen(function* () {
          yield* (yield* ScriptedModel).answer(call)
          yield* prompt
          yield* Queue.take(asked)
          yield* Harness.leaveFile(filename, copy)
          yield* giveFileTo(copy, goneOwner)
        }).pipe(Effect.provide(process))
      )
    const prompted = Effect.gen(function* () {
      const { id } = yield* Harness.newSession()
      yield* Harness.say(id, "first")
      yield* Harness.say(id, "second", { delivery: "queue", resume: false })
    })
    yield* dies(one, two, prompted)
    yield* dies(two, three, Effect.void)
    yield* Effect.gen(function* () {
      assert.deepStrictEqual(Harness.userTexts(yield* (yield* ScriptedModel).request), ["first", "second"])
    }).pipe(Effect.provide(Harness.runtime({ filename: three, recovery: "resume", permissionAsker })))
  })
)
