/** What is logged of runs that fail. */
import { assert, it } from "@effect/vitest"
import { Cause, Deferred, Effect, HashMap, Logger, LogLevel, Stream, Struct } from "effect"
import { newSession, runtime, say, scene } from "../support/Harness.ts"
import { failure, ScriptedModel } from "../support/ScriptedModel.ts"

interface Line {
  readonly message: string
  readonly level: string
  readonly sessionID: unknown
  readonly cause: string
}

/** Runs with a log whose warnings and errors are kept; `first` completes with the first of them. */
const logged = <A, E, R>(use: (lines: ReadonlyArray<Line>, first: Deferred.Deferred<Line>) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const first = yield* Deferred.make<Line>()
    const lines: Array<Line> = []
    const logger = Logger.make<unknown, void>(({ annotations, cause, logLevel, message }) => {
      if (!LogLevel.greaterThanEqual(logLevel, LogLevel.Warning)) return
      const line = {
        message: String(message),
        level: logLevel.label,
        sessionID: Object.fromEntries(HashMap.toEntries(annotations))["sessionID"],
        cause: Cause.pretty(cause)
      }
      lines.push(line)
      Deferred.unsafeDone(first, Effect.succeed(line))
    })
    return yield* Effect.provide(use(lines, first), Logger.replace(Logger.defaultLogger, logger))
  })

const refusal = Stream.fail(failure("the model is out"))

it.live("EX-17: a run that fails is logged with its session and its cause", () =>
  logged((lines, first) =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* (yield* ScriptedModel).answer(refusal)
      yield* say(id, "look")
      const line = yield* Deferred.await(first)
      assert.deepStrictEqual([line.message, line.level], ["the work of a session failed", "WARN"])
      assert.strictEqual(line.sessionID, id)
      assert.include(line.cause, "ProviderFailed")
      assert.lengthOf(lines, 1)
    }).pipe(Effect.provide(runtime()))
  )
)

it.live("EX-17: it is logged once, also while callers wait for it and receive its failure", () =>
  logged((lines) =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      const gate = yield* Deferred.make<void>()
      yield* model.answer(Stream.unwrap(Effect.as(Deferred.await(gate), refusal)))
      yield* say(id, "look")
      yield* model.request
      const waiting = yield* Effect.fork(sessions.wait(id))
      const joined = yield* Effect.fork(Effect.flip(sessions.resume(id)))
      // The callers have been counted when their fibers have come to their wait.
      yield* Effect.yieldNow({ priority: 1 })
      yield* Deferred.succeed(gate, undefined)
      yield* waiting
      assert.strictEqual((yield* joined)._tag, "ProviderFailed")
      assert.deepStrictEqual(lines.map(Struct.get("sessionID")), [id])
    }).pipe(Effect.provide(runtime()))
  )
)
