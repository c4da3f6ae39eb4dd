/** How a local call may end, and what the model reads of it (TO-1..TO-6, TO-10). */
import { Tool } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, FiberRef, Schema, Scope, Stream, Struct } from "effect"
import { ToolDeclined, ToolFailure, ToolStorageError } from "../../packages/core/src/domain/ToolError.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import { runtime, say, scene } from "../support/Harness.ts"
import { callParts, calls, finish, held, says, textParts } from "../support/ScriptedModel.ts"
import { dataOf, failureOf, gatedTool, resultsIn, tool, transcript } from "./support/Runs.ts"

/** Calls the tool once and returns what the second request shows of it, with the stored error. */
const outcomeOf = Effect.fnUntraced(function* (name: string, params: unknown = {}) {
  const { id, model, sessions } = yield* scene()
  yield* model.answer(calls(callParts("c1", name, params)))
  yield* model.answer(says("I see."))
  yield* say(id, "go", { resume: false })
  yield* sessions.resume(id)
  yield* model.request
  const [result] = resultsIn(yield* model.request)
  const [failed] = yield* dataOf(id, "session.next.tool.failed")
  return { shown: String(result?.[1]), error: failed?.error }
})

it.scoped("TO-1: a tool's own failure is a failed call that the model reads", () =>
  Effect.gen(function* () {
    yield* tool("breaks", () => new ToolFailure({ type: "tool.execution", message: "the disk is round" }))
    const { error, shown } = yield* outcomeOf("breaks")
    assert.strictEqual(error?.type, "tool.execution")
    assert.include(shown, "the disk is round")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-2: a tool's defect is a failed call that the model reads", () =>
  Effect.gen(function* () {
    yield* tool("breaks", () => Effect.die(new Error("off by one")))
    const { error, shown } = yield* outcomeOf("breaks")
    assert.strictEqual(error?.type, "tool.execution")
    assert.include(shown, "off by one")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-2: a defect outside of the tool's contract is a failed call too", () =>
  Effect.gen(function* () {
    const host = yield* HostTools
    const definition = define(Tool.make("raw", { success: Schema.String }), { handler: () => Effect.succeed("") })
    yield* host.register([{ ...definition, execute: () => Effect.die(new Error("no contract")) }])
    const { error, shown } = yield* outcomeOf("raw")
    assert.strictEqual(error?.type, "tool.execution")
    assert.include(shown, "no contract")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-3: input that fails its schema is an error for the model, naming the field", () =>
  Effect.gen(function* () {
    const { error, shown } = yield* outcomeOf("read", { path: 7 })
    assert.strictEqual(error?.type, "tool.input")
    assert.include(shown, '"path"')
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-3: a call of an unknown tool is an error for the model; the answer and its usage are kept", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(calls(textParts("t", "Let me fly."), callParts("c1", "teleport", { to: "moon" })))
    yield* model.answer(says("I walk."))
    yield* say(id, "go", { resume: false })
    yield* sessions.resume(id)
    yield* model.request
    assert.include(String(resultsIn(yield* model.request)[0]?.[1]), 'there is no tool "teleport"')
    const [failed] = yield* dataOf(id, "session.next.tool.failed")
    assert.strictEqual(failed?.error.type, "tool.unknown")
    const [text] = yield* dataOf(id, "session.next.text.ended")
    assert.strictEqual(text?.text, "Let me fly.")
    const [ended] = yield* dataOf(id, "session.next.step.ended")
    assert.strictEqual(ended?.tokens.input, 10)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-3: beside an unknown tool, a known one is run", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* tool("echo", () => Effect.succeed("echoed"))
    yield* model.answer(calls(callParts("c1", "echo", {}), callParts("c2", "teleport", {})))
    yield* model.answer(says("I walk."))
    yield* say(id, "go", { resume: false })
    yield* sessions.resume(id)
    yield* model.request
    const results = resultsIn(yield* model.request)
    assert.deepStrictEqual(results[0], ["c1", "echoed"])
    assert.strictEqual(results[1]?.[0], "c2")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-125, TO-3: a tool that was withdrawn after it was offered is an error for the model", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const scope = yield* Scope.make()
    const gate = yield* Deferred.make<void>()
    yield* Scope.extend(
      tool("echo", () => Effect.succeed("echoed")),
      scope
    )
    yield* model.answer(held([], gate, [...callParts("c1", "echo", {}), finish("tool-calls")]))
    yield* model.answer(says("Gone."))
    yield* say(id, "go")
    yield* model.request
    yield* Scope.close(scope, Exit.void)
    yield* Deferred.succeed(gate, undefined)
    yield* sessions.wait(id)
    assert.include(String(resultsIn(yield* model.request)[0]?.[1]), "withdrawn")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-4: a call that no rule allows and nobody can be asked about is an error, and the turn goes on", () =>
  Effect.gen(function* () {
    const { error } = yield* outcomeOf("write", { path: "a.txt", content: "x" })
    assert.include(error?.type ?? "", "permission")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-5: a declined call stops the others, fails what is unsettled, and interrupts the drain", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const slow = yield* gatedTool("slow")
    const begun = yield* Deferred.make<void>()
    yield* tool("ask", () => Effect.zipRight(Deferred.await(begun), new ToolDeclined({ tool: "ask" })))
    yield* model.answer(calls(callParts("c1", "slow", {}), callParts("c2", "ask", {})))
    yield* say(id, "go", { resume: false })
    const run = yield* Effect.fork(failureOf(sessions.resume(id)))
    yield* slow.begun
    yield* Deferred.succeed(begun, undefined)
    assert.strictEqual(yield* Fiber.join(run), "RunInterrupted")
    assert.strictEqual(yield* slow.stopped, "c1")
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ callID, error }) => [callID, error.message]),
      [
        ["c1", "Tool execution interrupted"],
        ["c2", "Tool execution interrupted"]
      ]
    )
    const [settled] = yield* dataOf(id, "session.next.activity.settled")
    assert.deepInclude(settled, { outcome: "interrupted" })
    assert.strictEqual(settled?.error?.type, "declined")
    yield* model.request
    assert.strictEqual(yield* model.pending, 0)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-5: a call that is declined while the answer streams ends the stream", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* tool("ask", () => new ToolDeclined({ tool: "ask" }))
    const never = yield* Deferred.make<void>()
    const parts = [...callParts("c1", "ask", {}), ...textParts("t", "and").slice(0, 2)]
    yield* model.answer(held(parts, never))
    yield* say(id, "go", { resume: false })
    assert.strictEqual(yield* failureOf(sessions.resume(id)), "RunInterrupted")
    assert.strictEqual((yield* dataOf(id, "session.next.step.failed"))[0]?.error.type, "declined")
    // TU-14: what was open is closed with what it had.
    assert.deepStrictEqual((yield* dataOf(id, "session.next.text.ended")).map(Struct.get("text")), ["and"])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-6: when a tool's output cannot be kept, unsettled calls fail and the drain fails", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const slow = yield* gatedTool("slow")
    const begun = yield* Deferred.make<void>()
    const broken = new ToolStorageError({ operation: "write", cause: new Error("disk full") })
    yield* tool("big", () => Effect.zipRight(Deferred.await(begun), broken))
    yield* model.answer(calls(callParts("c1", "slow", {}), callParts("c2", "big", {})))
    yield* say(id, "go", { resume: false })
    const run = yield* Effect.fork(failureOf(sessions.resume(id)))
    yield* slow.begun
    yield* Deferred.succeed(begun, undefined)
    assert.strictEqual(yield* Fiber.join(run), "ToolStorageError")
    assert.strictEqual((yield* dataOf(id, "session.next.tool.failed")).length, 2)
    assert.strictEqual((yield* dataOf(id, "session.next.activity.settled"))[0]?.outcome, "failed")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-10: an interrupt while tools run stops them and fails their calls", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const slow = yield* gatedTool("slow")
    yield* model.answer(calls(callParts("c1", "slow", {}), callParts("c2", "slow", {})))
    yield* say(id, "go")
    yield* slow.begun
    yield* slow.begun
    yield* sessions.interrupt(id)
    assert.sameMembers([yield* slow.stopped, yield* slow.stopped], ["c1", "c2"])
    assert.deepStrictEqual(
      (yield* dataOf(id, "session.next.tool.failed")).map(({ error }) => error.message),
      ["Tool execution interrupted", "Tool execution interrupted"]
    )
    const [settled] = yield* dataOf(id, "session.next.activity.settled")
    assert.strictEqual(settled?.outcome, "interrupted")
    // The step had its end from the provider.
    assert.deepStrictEqual(yield* dataOf(id, "session.next.step.failed"), [])
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-10: a call is not failed while its tool still runs: an end that takes time is awaited", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const begun = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    const interrupted = yield* Deferred.make<void>()
    const work = Effect.gen(function* () {
      yield* Deferred.succeed(begun, undefined)
      while (Cause.isEmpty(yield* FiberRef.get(FiberRef.interruptedCause))) yield* Effect.yieldNow()
      yield* Deferred.succeed(interrupted, undefined)
      yield* Deferred.await(gate)
    })
    yield* tool("firm", () => Effect.as(Effect.uninterruptible(work), "it is done"))
    yield* model.answer(calls(callParts("c1", "firm", {})))
    yield* say(id, "go")
    yield* Deferred.await(begun)
    const interrupt = yield* Effect.fork(sessions.interrupt(id))
    yield* Deferred.await(interrupted)
    yield* Effect.replicateEffect(Effect.yieldNow(), 50)
    assert.deepStrictEqual(yield* dataOf(id, "session.next.tool.failed"), [])
    assert.deepStrictEqual(yield* dataOf(id, "session.next.activity.settled"), [])
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(interrupt)
    assert.strictEqual((yield* dataOf(id, "session.next.tool.failed")).length, 1)
    assert.strictEqual((yield* dataOf(id, "session.next.activity.settled"))[0]?.outcome, "interrupted")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-10: a result that a tool has returned is recorded, even when the turn is interrupted meanwhile", () =>
  Effect.gen(function* () {
    const { id, log, model, sessions } = yield* scene()
    const slow = yield* gatedTool("slow")
    const [stream, append, never] = yield* Effect.all([
      Deferred.make<void>(),
      Deferred.make<void>(),
      Deferred.make<void>()
    ])
    const stored = yield* Deferred.make<void>()
    // The stream's append is held after its commit: it keeps the turn's permit, and the result has to wait for it.
    yield* log.listen((events) =>
      events.some(({ type }) => type === "session.next.text.started")
        ? Effect.zipRight(Deferred.succeed(stored, undefined), Deferred.await(append))
        : Effect.void
    )
    const parts = callParts("c1", "slow", {})
    yield* model.answer(Stream.concat(held(parts, stream, textParts("t", "and")), held([], never)))
    yield* say(id, "go")
    yield* slow.begun
    yield* Deferred.succeed(stream, undefined)
    yield* Deferred.await(stored)
    yield* slow.open
    yield* Effect.replicateEffect(Effect.yieldNow(), 50)
    const interrupt = yield* Effect.fork(sessions.interrupt(id))
    yield* Effect.replicateEffect(Effect.yieldNow(), 50)
    yield* Deferred.succeed(append, undefined)
    yield* Fiber.join(interrupt)
    assert.strictEqual((yield* dataOf(id, "session.next.tool.success"))[0]?.callID, "c1")
    assert.deepStrictEqual(yield* dataOf(id, "session.next.tool.failed"), [])
    assert.strictEqual((yield* dataOf(id, "session.next.step.failed"))[0]?.error.type, "aborted")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-10: an interrupt during the stream closes fragments, fails calls, and the step", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const slow = yield* gatedTool("slow")
    const never = yield* Deferred.make<void>()
    const open = [...textParts("t", "Once ", "upon").slice(0, 3), { type: "reasoning-start", id: "r" } as const]
    const input = { type: "tool-params-start", id: "c2", name: "slow", providerExecuted: false } as const
    yield* model.answer(held([...open, input, ...callParts("c1", "slow", {})], never))
    yield* say(id, "go")
    yield* slow.begun
    yield* sessions.interrupt(id)
    const [, answer] = yield* transcript(id)
    const content = answer?.type === "assistant" ? answer.content : []
    assert.deepStrictEqual(
      content.map((part) => (part.type === "tool" ? [part.id, part.state] : [part.type, part.text])),
      [
        ["text", "Once upon"],
        ["reasoning", ""],
        ["c2", "error"],
        ["c1", "error"]
      ]
    )
    assert.strictEqual((yield* dataOf(id, "session.next.step.failed"))[0]?.error.type, "aborted")
    assert.strictEqual((yield* dataOf(id, "session.next.activity.settled"))[0]?.outcome, "interrupted")
  }).pipe(Effect.provide(runtime()))
)
