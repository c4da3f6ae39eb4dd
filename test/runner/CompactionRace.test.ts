/** What others write into a session while its conversation is summarized. Method: a summary that is held meanwhile. */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { asksForSummary, brief, checkpointIn, exchange, long, narrow, summary } from "../compaction/support/Talks.ts"
import { allUserTexts, say, scene } from "../support/Harness.ts"
import { finish, says, textParts } from "../support/ScriptedModel.ts"

it.scoped("CM-9: what a switch of agents says while a summary is written is not lost with what it summarizes", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    for (const name of ["one", "two", "three"]) yield* exchange(id, name)
    const [asked, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    yield* model.answer(
      Stream.unwrap(
        Effect.as(
          Effect.zipRight(Deferred.succeed(asked, undefined), Deferred.await(gate)),
          Stream.fromIterable([...textParts("s", summary("To be told")), finish()])
        )
      )
    )
    yield* model.answer(says("Four is done."))
    yield* say(id, long("four", 150))
    const working = yield* Effect.fork(sessions.wait(id))
    yield* Deferred.await(asked)
    yield* sessions.switchAgent(id, "careful")
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(working)
    const [first, next] = [yield* model.request, yield* model.request]
    assert.isTrue(asksForSummary(first))
    assert.isDefined(checkpointIn(next))
    assert.include(allUserTexts(next).join("\n"), "Change nothing from here on.")
  }).pipe(
    Effect.provide(
      narrow({ agents: [brief(), { ...brief(), name: "careful", enterReminder: "Change nothing from here on." }] })
    )
  )
)
