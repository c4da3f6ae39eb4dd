/** The services of handlers, and toolkits of `@effect/ai` (TO-126, TO-127). */
import * as Tool from "@effect/ai/Tool"
import * as Toolkit from "@effect/ai/Toolkit"
import * as SqlClient from "@effect/sql/SqlClient"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Ref, Schema } from "effect"
import { HostTools, layerToolkit, layerTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import { runtime, say, scene } from "../support/Harness.ts"
import { callParts, calls, says } from "../support/ScriptedModel.ts"
import { resultsIn } from "../runner/support/Runs.ts"

/** Calls the tool once and returns what the second request shows of it. */
const shown = Effect.fnUntraced(function* (name: string, params: unknown = {}) {
  const { id, model, sessions } = yield* scene()
  yield* model.answer(calls(callParts("c1", name, params)))
  yield* model.answer(says("I see."))
  yield* say(id, "go", { resume: false })
  yield* sessions.resume(id)
  yield* model.request
  return String(resultsIn(yield* model.request)[0]?.[1])
})

class Greeting extends Context.Tag("test/Greeting")<Greeting, string>() {}

const greet = define(Tool.make("greet", { parameters: { name: Schema.String }, success: Schema.String }), {
  handler: ({ name }) => Effect.map(Greeting, (greeting) => `${greeting}, ${name}`)
})

it.scoped("TO-126: a handler gets the services of the place where its tool was registered", () =>
  Effect.gen(function* () {
    const host = yield* HostTools
    yield* Effect.provideService(host.register([greet]), Greeting, "Good morning")
    assert.strictEqual(
      yield* Effect.provideService(shown("greet", { name: "Ada" }), Greeting, "Go away"),
      "Good morning, Ada"
    )
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-126: a service of the runtime does not replace the host's service of that name", () =>
  Effect.gen(function* () {
    const own = yield* SqlClient.SqlClient
    const other: SqlClient.SqlClient = Object.assign(Object.create(own), { reserve: own.reserve })
    const same = define(Tool.make("same", { success: Schema.Boolean }), {
      handler: () => Effect.map(SqlClient.SqlClient, (sql) => sql === other)
    })
    yield* Effect.provideService((yield* HostTools).register([same]), SqlClient.SqlClient, other)
    assert.include(yield* shown("same"), "true")
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-126: what a handler acquires is released when its call ends", () =>
  Effect.gen(function* () {
    const open = yield* Ref.make(0)
    const acquired = Effect.acquireRelease(
      Ref.updateAndGet(open, (n) => n + 1),
      () => Ref.update(open, (n) => n - 1)
    )
    const held = define(Tool.make("held", { success: Schema.String }), {
      handler: () => Effect.map(acquired, (n) => `open: ${n}`)
    })
    yield* (yield* HostTools).register([held])
    assert.strictEqual(yield* shown("held"), "open: 1")
    assert.strictEqual(yield* Ref.get(open), 0)
  }).pipe(Effect.provide(runtime()))
)

it.scoped("TO-126: the tools of a layer last as long as the layer", () =>
  Effect.gen(function* () {
    const host = yield* HostTools
    const tools = Layer.provide(layerTools([greet]), Layer.succeed(Greeting, "Hello"))
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* Layer.build(Layer.provide(tools, Layer.succeed(HostTools, host)))
        assert.strictEqual(yield* shown("greet", { name: "Ada" }), "Hello, Ada")
      })
    )
    assert.include(yield* shown("greet", { name: "Ada" }), 'there is no tool "greet"')
  }).pipe(Effect.provide(runtime()))
)

class Sides extends Context.Tag("test/Sides")<Sides, number>() {}
class Loaded extends Schema.TaggedError<Loaded>("test/Loaded")("Loaded", { sides: Schema.Int }) {
  override get message() {
    return `the die with ${this.sides} sides is loaded`
  }
}

const roll = Tool.make("roll", {
  description: "Rolls a die",
  parameters: { times: Schema.Int },
  success: Schema.Struct({ on: Schema.DateFromString, results: Schema.Array(Schema.Int) }),
  failure: Loaded
})
const dice = Toolkit.make(roll, Tool.make("cheat", { success: Schema.String, failure: Loaded, failureMode: "return" }))
const handlers = dice.toLayer(
  Effect.map(Sides, (sides) => ({
    roll: ({ times }) => Effect.succeed({ on: new Date(0), results: Array.from({ length: times }, () => sides) }),
    cheat: () => new Loaded({ sides })
  }))
)
const withDice = layerToolkit(dice).pipe(
  Layer.provide(handlers),
  Layer.provide(Layer.succeed(Sides, 6)),
  Layer.provideMerge(runtime())
)

it.scoped("TO-127: a toolkit's tools are called with decoded input, and their results are encoded", () =>
  Effect.gen(function* () {
    const text = yield* shown("roll", { times: 2 })
    assert.deepStrictEqual(JSON.parse(text), { on: "1970-01-01T00:00:00.000Z", results: [6, 6] })
  }).pipe(Effect.provide(withDice))
)

it.scoped("TO-127: invalid input of a toolkit's tool names the field", () =>
  Effect.gen(function* () {
    assert.match(yield* shown("roll", { times: "often" }), /times/)
  }).pipe(Effect.provide(withDice))
)

it.scoped("TO-127: a toolkit's failure is a result that the model reads, also if it is returned", () =>
  Effect.gen(function* () {
    assert.include(yield* shown("cheat"), "the die with 6 sides is loaded")
  }).pipe(Effect.provide(withDice))
)

it("TO-127: a toolkit with a tool that its provider runs does not compile", () => {
  const search = Tool.providerDefined({
    id: "acme.search",
    toolkitName: "AcmeSearch",
    providerName: "search",
    args: {},
    success: Schema.Void
  })
  // @ts-expect-error The provider runs this tool, so there is no handler to call.
  assert.isDefined(layerToolkit(Toolkit.make(search({}))))
})
