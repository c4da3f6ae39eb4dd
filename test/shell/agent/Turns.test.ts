/** Turns of agents with a live shell, from the facade down. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Scope, Stream } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as LiveCommands from "../../../packages/shell/src/agent/LiveCommands.ts"
import { resultsIn } from "../../runner/support/Runs.ts"
import { newSession, open, runtime, say, scene, temporaryFolder } from "../../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../../support/ScriptedModel.ts"
import { makeLifeline } from "../../tools/Lifeline.ts"

const options = {
  agents: [{ name: "build", permissions: [{ permission: "*", resource: "*", verdict: "allow" }], bash: "live" }],
  commands: LiveCommands.layer()
} as const

/** Runs a prompt whose turn calls `bash`, and returns what the model read of the call. */
const ran = Effect.fnUntraced(function* (sessionID: SessionID, command: string) {
  const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
  yield* model.answer(calls(callParts("c1", "bash", { command })))
  yield* model.answer(says("Done."))
  yield* say(sessionID, "go")
  yield* model.request
  const [, text] = resultsIn(yield* model.request).at(-1) ?? []
  yield* sessions.wait(sessionID)
  return String(text)
})

it.scopedLive("TO-134: an interrupted run stops its command, and the next run finds the shell as it was", () =>
  Effect.gen(function* () {
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const folder = yield* temporaryFolder
    const { id } = yield* newSession(folder)
    yield* ran(id, "export A=kept")
    const life = yield* makeLifeline(folder)
    yield* model.answer(
      calls(callParts("c1", "bash", { command: "sh -c 'exec 3>life; echo on >&3; exec sleep 1000'" }))
    )
    yield* say(id, "wait")
    assert.strictEqual(yield* life.first, "on")
    yield* sessions.interrupt(id)
    yield* life.ended
    yield* model.request
    assert.include(yield* ran(id, "echo $A"), "kept\n")
  }).pipe(Effect.provide(runtime(options)))
)

it.scopedLive("SL-230: a fork has a shell of its own, and repeats no event of one", () =>
  Effect.gen(function* () {
    const { id, log, sessions } = yield* scene(yield* temporaryFolder)
    yield* ran(id, "export A=first")
    const { session: fork } = yield* sessions.fork({ sessionID: id })
    assert.include(yield* ran(fork.id, "echo [$A]; export A=second"), "[]\n")
    assert.include(yield* ran(id, "echo $A"), "first\n")
    const { events } = yield* log.read({ sessionID: fork.id })
    assert.lengthOf(
      events.filter(({ type }) => type === "session.next.shell.executed"),
      1
    )
  }).pipe(Effect.provide(runtime(options)))
)

it.scopedLive("SL-231, TO-133: a later runtime has a new shell, and the earlier one is recorded as closed", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const filename = join(folder, "daybook.db")
    const scope = yield* Scope.make()
    const first = yield* Scope.extend(open({ filename, ...options }), scope)
    const { id } = yield* Effect.provide(newSession(folder), first)
    yield* Effect.provide(ran(id, "export A=first"), first)
    yield* Scope.close(scope, Exit.void)
    const text = yield* Effect.gen(function* () {
      const shown = yield* ran(id, "echo [$A]")
      const closes = yield* Stream.runCollect(
        Stream.filter(Stream.fromIterable((yield* (yield* EventLog).read({ sessionID: id })).events), ({ type }) =>
          type.startsWith("session.next.shell.closed")
        )
      )
      assert.deepInclude([...closes][0]?.data, { reason: "shutdown" })
      return shown
    }).pipe(Effect.provide(yield* open({ filename, ...options })))
    assert.include(text, "[]\n")
    assert.include(text, "This is a new shell")
  })
)

it.scopedLive("TO-130: without live shells of the host, commands have processes, and the model is told so", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene(yield* temporaryFolder)
    yield* model.answer(calls(callParts("c1", "bash", { command: "echo hi" })))
    yield* model.answer(says("Done."))
    yield* say(id, "go")
    const { tools } = yield* model.request
    assert.notInclude(String(tools.find(({ name }) => name === "bash")?.description), "live shell")
    assert.strictEqual(String(resultsIn(yield* model.request).at(-1)?.[1]), "hi\n")
  }).pipe(Effect.provide(runtime({ agents: options.agents })))
)
