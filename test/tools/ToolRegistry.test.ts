import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Schema, Scope } from "effect"
import { ToolFailure } from "../../packages/core/src/domain/ToolError.ts"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import { agentWith, allowAll, callBy, makeWorkbench, textOf } from "./Workbench.ts"

const Path = Schema.optionalWith(Schema.String, { exact: true })

const saying = (name: string, text: string) =>
  define(Tool.make(name, { parameters: { path: Path }, success: Schema.String }), {
    handler: () => Effect.succeed(text)
  })

const names = (definitions: ReadonlyArray<Tool.Any>) => definitions.map(({ name }) => name)

describe("ToolRegistry", () => {
  it.scoped("TO-15: closing a scope takes its tools out and shows what lay below, in whatever order", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const said = Effect.map(bench.succeed("speak", {}), textOf)
      const [first, second] = [yield* Scope.make(), yield* Scope.make()]
      yield* Scope.extend(bench.registry.register([saying("speak", "one")]), first)
      yield* Scope.extend(bench.registry.register([saying("speak", "two")]), second)
      assert.strictEqual(yield* said, "two")
      yield* Scope.close(first, Exit.void)
      assert.strictEqual(yield* said, "two")
      yield* Scope.close(second, Exit.void)
      assert.strictEqual((yield* bench.fail("speak", {})).type, "tool.unknown")
    })
  )

  it.scoped("TO-108, TO-15: the Location's tools lie above the host's, the host's above the built-in ones", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const host = Context.get(bench.context, HostTools)
      writeFileSync(join(bench.folder, "a"), "built in")
      const said = Effect.map(bench.succeed("read", { path: "a" }), textOf)
      assert.strictEqual(yield* said, "built in")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              yield* bench.registry.register([saying("read", "location")])
              yield* Scope.extend(host.register([saying("read", "host")]), yield* Effect.scope)
              assert.strictEqual(yield* said, "location")
            })
          )
          yield* host.register([saying("read", "host")])
          assert.strictEqual(yield* said, "host")
        })
      )
      assert.strictEqual(yield* said, "built in")
    })
  )

  it.scoped("TO-15: a tool whose last rule denies everything is not offered, and cannot be called", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const offered = (rules: Parameters<typeof agentWith>[0]) =>
        Effect.map(bench.registry.materialize(agentWith(rules)), ({ definitions }) => names(definitions))
      assert.deepStrictEqual(yield* offered(allowAll), ["apply_patch", "bash", "edit", "glob", "grep", "read", "write"])
      assert.deepStrictEqual(yield* offered([{ permission: "edit", resource: "*", verdict: "deny" }]), [
        "bash",
        "glob",
        "grep",
        "read"
      ])
      assert.include(
        yield* offered([
          { permission: "bash", resource: "*", verdict: "deny" },
          { permission: "bash", resource: "git *", verdict: "ask" }
        ]),
        "bash"
      )
      const tools = yield* bench.registry.materialize(
        agentWith([{ permission: "bash", resource: "*", verdict: "deny" }])
      )
      const settled = yield* tools.settle({
        name: "bash",
        input: { command: "true" },
        call: callBy(bench.agent, bench.folder)
      })
      assert.strictEqual(settled._tag === "Failure" && settled.error.type, "tool.unknown")
    })
  )

  it.scoped("TO-125, TO-3: a tool withdrawn or replaced after it was offered is a stale failure, and is not run", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const scope = yield* Scope.make()
      yield* Scope.extend(bench.registry.register([saying("speak", "one")]), scope)
      const tools = yield* bench.registry.materialize(bench.agent)
      const call = callBy(bench.agent, bench.folder)
      const settle = Effect.map(tools.settle({ name: "speak", input: {}, call }), (settled) =>
        settled._tag === "Failure" ? settled.error.type : settled._tag
      )
      assert.strictEqual(yield* settle, "Success")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* bench.registry.register([saying("speak", "two")])
          assert.strictEqual(yield* settle, "tool.stale")
        })
      )
      assert.strictEqual(yield* settle, "Success")
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* settle, "tool.stale")
    })
  )

  it.scoped("TO-107, TO-3: what is offered carries the real JSON schema and accepts any input", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const Real = Tool.make("real", { description: "A real tool", parameters: { count: Schema.Int } })
      yield* bench.registry.register([define(Real, { handler: () => Effect.void })])
      const { definitions } = yield* bench.registry.materialize(bench.agent)
      const wire = definitions.find(({ name }) => name === "real")
      if (wire === undefined) return assert.fail("not offered")
      assert.strictEqual(wire.description, "A real tool")
      assert.deepStrictEqual(Tool.getJsonSchemaFromSchemaAst(wire.parametersSchema.ast), Tool.getJsonSchema(Real))
      for (const input of [{ count: "many" }, "text", null, []]) {
        const decoded: unknown = Schema.decodeUnknownSync(Schema.make<unknown>(wire.parametersSchema.ast))(input)
        assert.deepStrictEqual(decoded, input)
      }
    })
  )

  it.scoped("TO-5: a decline is no result but stops the run", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [], answer: () => Effect.succeed(Answer.Decline()) })
      const error = yield* Effect.flip(bench.settle("write", { path: "a", content: "" }))
      assert.strictEqual(error._tag, "ToolDeclined")
    })
  )

  it.scoped("TO-4: a person's correction is a result with their words", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({
        rules: [],
        answer: () => Effect.succeed(Answer.Correct({ message: "write to b instead" }))
      })
      const error = yield* bench.fail("write", { path: "a", content: "" })
      assert.strictEqual(error.type, "permission.denied")
      assert.include(error.message, "write to b instead")
    })
  )

  it.scoped("TO-4: however long what was refused, its reason is short; the person sees the whole", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [] })
      const command = `echo ${"x".repeat(100_000)}`
      const error = yield* bench.fail("bash", { command })
      assert.isBelow(error.message.length, 3_000)
      assert.deepStrictEqual(bench.asked[0]?.resources, [command])
    })
  )

  it.scoped("TO-1: a failure's message is bounded", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const wordy = define(Tool.make("wordy"), {
        handler: () => new ToolFailure({ type: "tool.execution", message: "x".repeat(1_000_000) })
      })
      yield* bench.registry.register([wordy])
      assert.isBelow((yield* bench.fail("wordy", {})).message.length, 10_000)
    })
  )

  it.scoped("TO-6: when the whole of an output cannot be kept, the call fails with the storage error", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      // The store's folder cannot be made where a file is.
      writeFileSync(bench.outputs, "")
      yield* bench.registry.register([saying("shout", "long\n".repeat(3_000))])
      const error = yield* Effect.flip(bench.settle("shout", {}))
      assert.strictEqual(error._tag, "ToolStorageError")
    })
  )

  it.scoped("TO-10: interrupting a settlement ends the handler", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const [began, ended] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const wait = define(Tool.make("wait"), {
        handler: () =>
          Effect.onInterrupt(Effect.zipRight(Deferred.succeed(began, undefined), Effect.never), () =>
            Deferred.succeed(ended, undefined)
          )
      })
      yield* bench.registry.register([wait])
      const fiber = yield* Effect.fork(bench.settle("wait", {}))
      yield* Deferred.await(began)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(fiber)))
      assert.isTrue(yield* Deferred.isDone(ended))
    })
  )
})
