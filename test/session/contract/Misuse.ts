/** What callers give that is none of what the types say: it ends in an error that says so, never in a defect. */
import { existsSync, readFileSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname } from "node:path"
import { Tool } from "@effect/ai"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Schema, Scope, Stream, Struct, TestClock } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../../packages/core/src/tool/HostTools.ts"
import { define } from "../../../packages/core/src/tool/ToolDefinition.ts"
import { MessageID, PartID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { dataOf } from "../../runner/support/Runs.ts"
import { newSession, type Runtimes, say, scene, userTexts } from "../../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../../support/ScriptedModel.ts"

export const misuse = ({ open, runtime }: Runtimes) => {
  /** An id past its brand, as a caller without types gives it. */
  const past = (text: string) => SessionID.make(text, { disableValidation: true })

  it.layer(runtime())("misuse", (it) => {
    for (const id of ["nope", "", "ses_../../etc/passwd", "ses_a\u0000b", `ses_${"x".repeat(97)}`]) {
      it.effect(`IB-9: no session is there under ${JSON.stringify(id).slice(0, 30)}, whatever is asked of it`, () =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const log = yield* EventLog
          const sessionID = past(id)
          const asked = {
            get: sessions.get(sessionID),
            messages: sessions.messages({ sessionID }),
            message: sessions.message(sessionID, MessageID.make("msg_x")),
            context: sessions.context(sessionID),
            inbox: sessions.inbox(sessionID),
            events: Stream.runHead(sessions.events({ sessionID })),
            history: sessions.history({ sessionID }),
            resume: sessions.resume(sessionID),
            wait: sessions.wait(sessionID),
            switchAgent: sessions.switchAgent(sessionID, "build"),
            switchModel: sessions.switchModel(sessionID, { providerID: "p", id: "m" }),
            move: sessions.move(sessionID, { directory: tmpdir() }),
            rename: sessions.rename(sessionID, "x"),
            remove: sessions.remove(sessionID)
          }
          for (const [verb, effect] of Object.entries(asked)) {
            const error = yield* Effect.flip<unknown, object, never>(effect)
            assert.deepInclude(error, { _tag: "SessionNotFound", sessionID: id }, verb)
          }
          assert.strictEqual(yield* log.latest(sessionID), -1)
          const refused = yield* Effect.flip(log.append(sessionID, [draft("session.next.renamed", { title: "x" })]))
          assert.deepInclude(refused, { _tag: "EventRefused", sessionID: id })
          yield* sessions.interrupt(sessionID)
        })
      )
    }

    it.effect("IB-8: a value of the wrong form is refused by its field, in a few words", () =>
      Effect.gen(function* () {
        const { id, sessions } = yield* scene()
        const location = { directory: tmpdir() }
        const model = { providerID: "", id: "m" }
        const asked = {
          'location.directory: Expected a non empty string, actual ""': sessions.create({
            location: { directory: "" }
          }),
          'model.providerID: Expected a non empty string, actual ""': sessions.create({ location, model }),
          'directory: Expected a non empty string, actual ""': sessions.list({ directory: "" }),
          "search: use 1000 characters at most": sessions.list({ search: "x".repeat(1_001) }),
          "id: expected msg_ followed by 1-96 letters, digits, dots, underscores or hyphens": say(id, "x", { id: "no" })
        }
        for (const [message, effect] of Object.entries(asked)) {
          const error = yield* Effect.flip<unknown, Error, Sessions>(effect)
          assert.strictEqual(String(error), `InvalidInput: ${message}`)
        }
        const switched = yield* Effect.flip(sessions.switchModel(id, model))
        assert.deepInclude(switched, { _tag: "InvalidInput", field: "model.providerID" })
      })
    )

    for (const after of [NaN, Infinity, 1e30]) {
      it.effect(`LG-10: a cursor of ${after} is ahead of every event`, () =>
        Effect.gen(function* () {
          const log = yield* EventLog
          const { id: sessionID } = yield* newSession()
          const asked = [
            log.read({ sessionID, after }),
            Stream.runHead(log.tail({ sessionID, after })),
            Stream.runHead(log.tailMarked({ sessionID, after })),
            Stream.runHead(log.feed({ after }))
          ]
          for (const effect of asked) {
            const error = yield* Effect.flip<unknown, object, never>(effect)
            assert.deepInclude(error, { _tag: "CursorAhead", cursor: after })
          }
        })
      )
    }

    it.effect("LG-7: a cursor between two events stands on the earlier one; one before all events is too old", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id: sessionID } = yield* newSession()
        yield* Effect.forEach(["a", "b", "c"], (title) => sessions.rename(sessionID, title))
        const page = yield* sessions.history({ sessionID, after: 1.5 })
        assert.deepStrictEqual(page.events.map(Struct.get("seq")), [2, 3])
        const error = yield* Effect.flip(sessions.history({ sessionID, after: -Infinity }))
        assert.strictEqual(error._tag, "CursorExpired")
      })
    )

    for (const [asked, capacity] of [
      [NaN, 4_096],
      [0, 1],
      [-1, 1],
      [2.5, 2],
      [Infinity, 65_536]
    ] as const) {
      it.effect(
        `LG-13: a live buffer of ${asked} is one of ${capacity}, and whoever publishes does not trip over it`,
        () =>
          Effect.gen(function* () {
            const log = yield* EventLog
            const { id: sessionID } = yield* newSession()
            const ended = yield* Effect.fork(Effect.flip(Stream.runDrain(log.live({ sessionID, capacity: asked }))))
            yield* TestClock.adjust("1 millis")
            const text = { assistantMessageID: MessageID.make("msg_x"), textID: PartID.make("prt_x"), delta: "x" }
            // At one go: the subscriber has no turn to take any of them.
            yield* log
              .publishLive({ type: "session.next.text.delta", sessionID, data: text })
              .pipe(
                Effect.replicateEffect(capacity + 1, { discard: true }),
                Effect.withMaxOpsBeforeYield(Number.MAX_SAFE_INTEGER)
              )
            assert.deepInclude(yield* ended, { _tag: "SubscriberOverflow", capacity })
          })
      )
    }
  })

  it.scoped("TO-23: outputs of a database in memory are kept in a folder of their own, which goes with the layer", () =>
    Effect.gen(function* () {
      const layer = yield* Scope.make()
      const context = yield* Scope.extend(open(), layer)
      const outputPaths = yield* Effect.gen(function* () {
        const tools = yield* HostTools
        const sessions = yield* Sessions
        const model = yield* ScriptedModel
        yield* tools.register([
          define(Tool.make("long", { success: Schema.String }), {
            handler: () => Effect.succeed("line\n".repeat(3_000))
          })
        ])
        const { id } = yield* newSession()
        yield* model.answer(calls(callParts("call", "long", {})))
        yield* model.answer(says("done"))
        yield* say(id, "go", { resume: false })
        yield* sessions.resume(id)
        const [success] = yield* dataOf(id, "session.next.tool.success")
        return success?.outputPaths ?? []
      }).pipe(Effect.provide(context), Effect.scoped)
      const [kept = ""] = outputPaths
      assert.strictEqual(statSync(dirname(kept)).mode & 0o777, 0o700)
      assert.strictEqual(readFileSync(kept, "utf8").length, 15_000)
      yield* Scope.close(layer, Exit.void)
      assert.isFalse(existsSync(dirname(kept)))
    })
  )

  for (const steerBatchLimit of [0, -1, NaN, 0.5]) {
    it.scoped(`TU-5: with a batch limit of ${steerBatchLimit} a steer still becomes visible, and costs one turn`, () =>
      Effect.gen(function* () {
        const { id, model, sessions } = yield* scene()
        yield* model.answer(says("one"))
        yield* say(id, "go", { resume: false })
        yield* sessions.resume(id)
        assert.deepStrictEqual(userTexts(yield* model.request), ["go"])
        assert.strictEqual(yield* model.pending, 0)
      }).pipe(Effect.provide(runtime({ steerBatchLimit })))
    )
  }
}
