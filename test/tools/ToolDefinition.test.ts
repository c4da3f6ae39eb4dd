import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Logger, Schema } from "effect"
import { ToolDeclined, ToolFailure } from "../../packages/core/src/domain/ToolError.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import { agentWith, allowAll, callBy } from "./Workbench.ts"

class TooDeep extends Schema.TaggedError<TooDeep>("TooDeep")("TooDeep", { depth: Schema.Int }) {
  override get message() {
    return `${this.depth} metres are too deep`
  }
}

const Depth = Schema.Int.pipe(Schema.between(0, 100))

const Site = Schema.optionalWith(Schema.String, { exact: true })

const Dive = Tool.make("dive", {
  parameters: {
    depth: Depth,
    site: Site
  },
  success: Schema.Struct({ reached: Schema.DateFromString, depth: Schema.Int }),
  failure: TooDeep
})

const call = callBy(agentWith(allowAll), "/nowhere")
const reached = new Date(0)

const failureOf = <A>(effect: Effect.Effect<A, unknown>) =>
  Effect.flatMap(Effect.flip(effect), (error) =>
    error instanceof ToolFailure ? Effect.succeed(error) : Effect.die(error)
  )

describe("define", () => {
  it.effect("TO-3: input is decoded, and the result is given in its encoded form", () =>
    Effect.gen(function* () {
      const dive = define(Dive, { handler: ({ depth }) => Effect.succeed({ reached, depth }) })
      const output = yield* dive.execute({ depth: 12 }, call)
      assert.deepStrictEqual(output, { structured: { reached: "1970-01-01T00:00:00.000Z", depth: 12 }, content: [] })
    })
  )

  it.effect.each([
    ["a field of the wrong kind", { depth: "deep" }, ["depth", "number"]],
    ["a field out of range", { depth: 101 }, ["depth", "between 0 and 100"]],
    ["a missing field", {}, ["depth", "missing"]],
    ["two faults at once", { depth: 1.5, site: 3 }, ["depth", "integer", "site", "string"]],
    ["no object at all", "depth=3", ["the input"]],
    ["nothing", undefined, ["depth", "missing"]]
  ] as const)("TO-3: %s is a tool.input failure that names field and expectation", ([, input, words]) =>
    Effect.gen(function* () {
      const dive = define(Dive, { handler: () => Effect.dieMessage("the handler ran") })
      const error = yield* failureOf(dive.execute(input, call))
      assert.strictEqual(error.type, "tool.input")
      for (const word of words) assert.include(error.message, word)
    })
  )

  it.effect("TO-3: a message about bad input stays short, however long the input", () =>
    Effect.gen(function* () {
      const dive = define(Dive, { handler: () => Effect.dieMessage("the handler ran") })
      const error = yield* failureOf(dive.execute({ depth: "x".repeat(1_000_000) }, call))
      assert.isBelow(error.message.length, 2_000)
    })
  )

  it.effect("TO-3: a result that is not of the schema is a tool.output failure", () =>
    Effect.gen(function* () {
      const dive = define(Dive, { handler: () => Effect.succeed({ reached, depth: 0.5 }) })
      const error = yield* failureOf(dive.execute({ depth: 1 }, call))
      assert.strictEqual(error.type, "tool.output")
      assert.include(error.message, "depth")
    })
  )

  it.effect("TO-3: a result that JSON cannot hold is a tool.output failure", () =>
    Effect.gen(function* () {
      const Count = Tool.make("count", { success: Schema.Unknown })
      const count = define(Count, { handler: () => Effect.succeed({ total: 10n }) })
      assert.strictEqual((yield* failureOf(count.execute({}, call))).type, "tool.output")
    })
  )

  it.effect("TO-1: the tool's own failure reaches the model in words", () =>
    Effect.gen(function* () {
      const dive = define(Dive, { handler: ({ depth }) => new TooDeep({ depth }) })
      const error = yield* failureOf(dive.execute({ depth: 99 }, call))
      assert.strictEqual(error.type, "tool.execution")
      assert.include(error.message, "99 metres are too deep")
    })
  )

  it.effect("TO-1: a failure without a message is shown as it is", () =>
    Effect.gen(function* () {
      const Plain = Tool.make("plain", { failure: Schema.Struct({ code: Schema.Int }) })
      const plain = define(Plain, { handler: () => Effect.fail({ code: 7 }) })
      assert.include((yield* failureOf(plain.execute({}, call))).message, `{"code":7}`)
    })
  )

  it.effect("TO-2: a defect becomes a failure for the model, and its cause is logged", () =>
    Effect.gen(function* () {
      const logged: Array<Cause.Cause<unknown>> = []
      const logger = Logger.make(({ cause }) => void logged.push(cause))
      const broken = define(Dive, {
        handler: () =>
          Effect.sync(() => {
            throw new TypeError("the pump is missing")
          })
      })
      const error = yield* failureOf(
        Effect.provide(broken.execute({ depth: 1 }, call), Logger.replace(Logger.defaultLogger, logger))
      )
      assert.strictEqual(error.type, "tool.execution")
      assert.include(error.message, "the pump is missing")
      assert.deepStrictEqual(
        logged.map((cause) => Cause.squash(cause) instanceof TypeError),
        [true]
      )
    })
  )

  it.effect(
    "TO-2: a handler that throws before it returns an effect, and a rendering that throws, are defects too",
    () =>
      Effect.gen(function* () {
        const boom = (): never => {
          throw new Error("boom")
        }
        for (const tool of [
          define(Dive, { handler: boom }),
          define(Dive, { handler: () => Effect.succeed({ reached, depth: 1 }), render: boom })
        ]) {
          const error = yield* failureOf(Effect.provide(tool.execute({ depth: 1 }, call), silent))
          assert.strictEqual(error.type, "tool.execution")
        }
      })
  )

  it.effect("TO-5: a decline passes through, with the tool's name", () =>
    Effect.gen(function* () {
      const dive = define(Dive, { handler: () => new ToolDeclined({ tool: "edit" }) })
      const error = yield* Effect.flip(dive.execute({ depth: 1 }, call))
      assert.strictEqual(error._tag === "ToolDeclined" && error.tool, "dive")
    })
  )

  it.effect("TO-10: interruption ends the call and is no failure of the tool", () =>
    Effect.gen(function* () {
      const [began, cleaned] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const dive = define(Dive, {
        handler: () =>
          Effect.ensuring(
            Effect.zipRight(Deferred.succeed(began, undefined), Effect.never),
            Deferred.succeed(cleaned, undefined)
          )
      })
      const fiber = yield* Effect.fork(dive.execute({ depth: 1 }, call))
      yield* Deferred.await(began)
      const exit = yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.isInterrupted(exit))
      assert.isTrue(yield* Deferred.isDone(cleaned))
    })
  )
})

const silent = Logger.replace(Logger.defaultLogger, Logger.none)
