/**
 * Method: the expander itself, over a port to resources that breaks in ways a server of ours would not: it dies, and it
 * never answers. The prompt has to come out all the same, from within the region where admission cannot be interrupted.
 */
import { tmpdir } from "node:os"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema, Struct, TestClock } from "effect"
import * as Agents from "../../packages/core/src/agent/Agents.ts"
import * as PromptExpander from "../../packages/core/src/prompt/PromptExpander.ts"
import { ResourceReader } from "../../packages/core/src/prompt/PromptExpander.ts"
import * as Templates from "../../packages/core/src/prompt/Templates.ts"
import { Session } from "../../packages/log/src/domain/Message.ts"
import { kinds, textOf } from "./support/Expanding.ts"

const session = Schema.decodeUnknownSync(Session)({
  id: "ses_faults",
  location: { directory: tmpdir() },
  cost: 0,
  tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
  createdAt: 0,
  updatedAt: 0
})

const expand = (text: string, read: ResourceReader["Type"]["read"], templates = Templates.layer()) =>
  Effect.flatMap(PromptExpander.PromptExpander, (expander) => expander.expand(session, { text })).pipe(
    Effect.uninterruptible,
    Effect.provide(
      PromptExpander.layer.pipe(
        Layer.provide([
          Agents.layer(),
          templates,
          Layer.succeed(ResourceReader, { servers: Effect.succeed(["own"]), read })
        ])
      )
    ),
    Effect.map((expansion) => expansion?.parts ?? [])
  )

it.effect("PX-7: a defect becomes a failure that says nothing of its inside; what else is mentioned is looked up", () =>
  Effect.gen(function* () {
    const parts = yield* expand("@own:x://one @no/such.file @plan", () => Effect.die(new Error("secret detail")))
    assert.deepStrictEqual(kinds(parts), ["failure own:x://one", "failure no/such.file", "failure plan"])
    assert.include(textOf(parts[0]), "internal error")
    assert.notInclude(textOf(parts[0]), "secret detail")
  })
)

it.effect("PX-7: a defect before anything is looked at is one failure", () =>
  Effect.gen(function* () {
    const broken = Effect.dieMessage("secret detail")
    const templates = Layer.succeed(Templates.Templates, {
      find: () => broken,
      list: () => broken,
      problems: () => broken
    })
    const parts = yield* expand("/review @plan", () => broken, templates)
    assert.deepStrictEqual(parts.map(Struct.get("kind")), ["failure"])
    assert.notInclude(textOf(parts[0]), "secret detail")
  })
)

it.effect("PX-18: a server that never answers holds the prompt for 70 seconds", () =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<void>()
    const never = () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never)
    const running = yield* Effect.fork(expand("@own:x://one", never))
    yield* Deferred.await(asked)
    yield* TestClock.adjust("70 seconds")
    const parts = yield* Fiber.join(running)
    assert.deepStrictEqual(kinds(parts), ["failure own:x://one"])
    assert.include(textOf(parts[0]), "in time")
  })
)
