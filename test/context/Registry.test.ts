/** The registry (CX-10..CX-13) and the sources about the session itself (CX-20..CX-22). */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Metric, Scope, TestClock } from "effect"
import { HostContext, hostDate, layerSources } from "../../packages/core/src/context/ContextRegistry.ts"
import { text, textSource } from "../../packages/core/src/context/SystemContext.ts"
import * as Metrics from "../../packages/log/src/support/Metrics.ts"
import { folder, listener, registryAt, turn } from "./support/Look.ts"

const says = (key: string, words: string, removed?: string) =>
  textSource(key, () => Effect.succeed(text(words, removed)))

describe("the registry", () => {
  it.scoped("EP-4: removing a source is told, with the words that it left for this", () =>
    Effect.gen(function* () {
      const { context, look } = yield* registryAt(yield* folder)
      const plugin = yield* Scope.make()
      const { register } = Context.get(context, HostContext)
      yield* Scope.extend(register(says("plugin/rules", "Be brief.", "Brevity is over.")), plugin)
      const tell = listener("plugin/rules")
      assert.strictEqual(tell(yield* look()), "Be brief.")
      yield* Scope.close(plugin, Exit.void)
      assert.strictEqual(tell(yield* look()), "Brevity is over.")
    })
  )

  it.scoped("CX-13: sources of a layer are told while it lives, and their removal afterwards", () =>
    Effect.gen(function* () {
      const { context, look } = yield* registryAt(yield* folder)
      const life = yield* Scope.make()
      const sources = layerSources([
        says("plugin/rules", "Be brief.", "Brevity is over."),
        says("plugin/tone", "Be kind.")
      ])
      yield* Effect.provide(Scope.extend(Layer.build(sources), life), context)
      const [rules, tone] = [listener("plugin/rules"), listener("plugin/tone")]
      const first = yield* look()
      assert.deepStrictEqual([rules(first), tone(first)], ["Be brief.", "Be kind."])
      yield* Scope.close(life, Exit.void)
      assert.strictEqual(rules(yield* look()), "Brevity is over.")
    })
  )

  it.scoped("CX-10: a key that is taken, by a built-in source too, is a defect; so is one that is no key", () =>
    Effect.gen(function* () {
      const { register } = yield* registryAt(yield* folder)
      yield* register(says("plugin/rules", "Be brief."))
      for (const key of ["plugin/rules", "daybook/date", "Rules", "a/", "/b"]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(register(says(key, "x")))), key)
      }
    })
  )

  it.scoped("CX-11: all sources are looked at at once", () =>
    Effect.gen(function* () {
      const { look, register } = yield* registryAt(yield* folder)
      const [left, right] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      // Each ends only when the other began.
      const meets = (mine: Deferred.Deferred<void>, other: Deferred.Deferred<void>) =>
        Effect.as(Effect.zipRight(Deferred.succeed(mine, undefined), Deferred.await(other)), text("met"))
      yield* register(textSource("test/left", () => meets(left, right)))
      yield* register(textSource("test/right", () => meets(right, left)))
      const observed = yield* look()
      assert.strictEqual(observed.get("test/left")?._tag, "Available")
      assert.strictEqual(observed.get("test/right")?._tag, "Available")
    })
  )

  it.scoped("CX-12: a source that fails, breaks or never answers is unavailable; the others are not held up", () =>
    Effect.gen(function* () {
      const { look, register } = yield* registryAt(yield* folder)
      yield* register(textSource("test/fails", () => Effect.fail("no")))
      yield* register(textSource("test/breaks", () => Effect.die(new Error("no"))))
      yield* register({
        key: "test/throws",
        load: () => {
          throw new Error("no")
        }
      })
      yield* register(textSource("test/hangs", () => Effect.never))
      yield* register(says("test/works", "Be brief."))
      const counted = Metric.value(Metric.tagged(Metrics.contextUnavailable, "source", "test/hangs"))
      const before = (yield* counted).count
      const looking = yield* Effect.fork(look())
      yield* TestClock.adjust("10 seconds")
      const observed = yield* Fiber.join(looking)
      for (const key of ["test/fails", "test/breaks", "test/throws", "test/hangs"]) {
        assert.strictEqual(observed.get(key)?._tag, "Unavailable", key)
      }
      assert.strictEqual(listener("test/works")(observed), "Be brief.")
      assert.strictEqual((yield* counted).count, before + 1)
    })
  )
})

const model = (id: string) => ({
  ref: { providerID: "acme", id },
  name: `Acme ${id}`,
  contextTokens: 0,
  outputTokens: 0
})

describe("about the session", () => {
  it.scoped("EP-1: the folder and the platform are told", () =>
    Effect.gen(function* () {
      const here = yield* folder
      const { look } = yield* registryAt(here)
      const told = listener("daybook/environment")(yield* look()) ?? ""
      assert.include(told, here)
      assert.include(told, process.platform)
    })
  )

  it.effect("EP-1: the date is told, and told again when it is another", () =>
    Effect.gen(function* () {
      const look = () => Effect.map(hostDate.load(turn), (seen) => new Map([[hostDate.key, seen]]))
      const tell = listener("daybook/date")
      yield* TestClock.setTime(Date.UTC(2031, 4, 6, 12))
      assert.strictEqual(tell(yield* look()), "Today's date is 2031-05-06.")
      assert.isUndefined(tell(yield* look()))
      yield* TestClock.adjust("1 day")
      assert.strictEqual(tell(yield* look()), "Today's date is 2031-05-07 now.")
    })
  )

  it.effect("CX-21: the date is that of the host's time zone", () =>
    Effect.gen(function* () {
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          const before = process.env["TZ"]
          process.env["TZ"] = "Pacific/Kiritimati"
          return before
        }),
        (before) =>
          Effect.sync(() => {
            if (before === undefined) delete process.env["TZ"]
            else process.env["TZ"] = before
          })
      )
      yield* TestClock.setTime(Date.UTC(2031, 0, 8, 12))
      const seen = yield* hostDate.load(turn)
      assert.strictEqual(listener("daybook/date")(new Map([[hostDate.key, seen]])), "Today's date is 2031-01-09.")
    }).pipe(Effect.scoped)
  )

  it.scoped("CX-22: the model is told per turn; while none is resolved nothing waits, and nothing is said", () =>
    Effect.gen(function* () {
      const { look } = yield* registryAt(yield* folder)
      const tell = listener("daybook/model")
      assert.isUndefined(tell(yield* look()))
      assert.strictEqual(tell(yield* look({ model: model("m1") })), "You answer as the model Acme m1 (acme/m1).")
      assert.isUndefined(tell(yield* look()))
      assert.include(tell(yield* look({ model: model("m2") })), "Acme m2 (acme/m2)")
    })
  )
})
