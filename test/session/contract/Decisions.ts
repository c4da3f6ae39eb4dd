/** What sessions say of decisions, from the facade down: real sessions whose model calls a tool that asks. */
import { realpathSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Answer, PermissionAsker } from "../../../packages/core/src/permission/PermissionAsker.ts"
import { type PermissionEvent, PermissionStore } from "../../../packages/core/src/permission/PermissionStore.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../../packages/core/src/tool/HostTools.ts"
import { fromJsonSchema } from "../../../packages/core/src/tool/ToolDefinition.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { newSession, type Runtimes, say, temporaryFolder } from "../../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../../support/ScriptedModel.ts"

/** A tool of the host that asks. */
const paint = fromJsonSchema({
  name: "paint",
  parameters: { type: "object" },
  authorize: ({ colour }) => ({ resources: [String(colour)], title: "Paint", definition: "one" }),
  execute: () => Effect.succeed({ structured: {}, content: [{ type: "text", text: "painted" }] })
})

export const deciding = ({ runtime }: Runtimes) => {
  /** A session of a runtime in which the answers are given in turn. */
  const asking = Effect.fnUntraced(function* (...answers: ReadonlyArray<Answer>) {
    const left = [...answers]
    const permissionAsker = Layer.succeed(PermissionAsker, {
      ask: () => Effect.sync(() => left.shift() ?? Answer.Unavailable())
    })
    const context = yield* Layer.build(runtime({ permissionAsker }))
    return yield* Effect.gen(function* () {
      const [log, model, sessions, store] = [
        yield* EventLog,
        yield* ScriptedModel,
        yield* Sessions,
        yield* PermissionStore
      ]
      yield* (yield* HostTools).register([paint])
      const folder = realpathSync(yield* temporaryFolder)
      const { id } = yield* newSession(folder)
      /** One turn in which the model calls the tool. */
      const paints = Effect.fnUntraced(function* (callID: string, colour: string) {
        yield* model.answer(calls(callParts(callID, "paint", { colour })))
        yield* model.answer(says("done"))
        yield* say(id, "go")
        yield* Effect.ignore(sessions.wait(id))
      }, Effect.provide(context))
      const decided = Effect.map(log.read({ sessionID: id }), ({ events }) =>
        events.filter(
          (event): event is PermissionEvent =>
            event.type === "session.next.permission.decided" || event.type === "session.next.permission.revoked"
        )
      )
      return { decided, folder, id, log, paints, sessions, store }
    }).pipe(Effect.provide(context))
  })

  const uid = process.getuid === undefined ? {} : { uid: process.getuid() }

  it.scoped("PM-46: each decision on a call is an event before the call's result, with who decided and why", () =>
    Effect.gen(function* () {
      const { decided, id, log, paints, store, folder } = yield* asking(
        Answer.Once(),
        Answer.Session(),
        Answer.Correct({ message: "blue is wrong" }),
        Answer.AlwaysFor({ resources: ["gre*"] }),
        Answer.Decline()
      )
      for (const [callID, colour] of [
        ["once", "red"],
        ["session", "pink"],
        ["again", "pink"],
        ["corrected", "blue"],
        ["always", "green"],
        ["used", "grey"],
        ["declined", "black"]
      ] as const) {
        yield* paints(callID, colour)
      }
      const [saved] = yield* store.list(folder)
      const number = saved?.number ?? 0
      const common = { permission: "paint", definition: "one", ...uid }
      const events = yield* decided
      assert.deepStrictEqual(
        events.map(({ data }) => {
          const { assistantMessageID: _message, ...rest } = { assistantMessageID: "", ...data }
          return rest
        }),
        [
          { callID: "once", resources: ["red"], decision: "once", ...common },
          { callID: "session", resources: ["pink"], decision: "session", patterns: ["pink"], ...common },
          { callID: "again", resources: ["pink"], decision: "approved", ...common },
          { callID: "corrected", resources: ["blue"], decision: "corrected", ...common },
          {
            callID: "always",
            resources: ["green"],
            decision: "always",
            patterns: ["gre*"],
            saved: [number],
            ...common
          },
          { callID: "used", resources: ["grey"], decision: "approved", used: [number], ...common },
          { callID: "declined", resources: ["black"], decision: "declined", ...common }
        ]
      )
      const { events: all } = yield* log.read({ sessionID: id })
      const [first] = events
      const result = all.find(({ type }) => type === "session.next.tool.success")
      assert.isBelow(first?.seq ?? 0, result?.seq ?? 0)
      assert.deepStrictEqual(yield* store.decisions({ folder, limit: 100 }), events)
      assert.deepStrictEqual(yield* store.decisions({ limit: 2 }), events.slice(-2))
      assert.deepStrictEqual(yield* store.decisions({ folder: "/elsewhere", limit: 100 }), [])
    })
  )

  it.scoped("PM-46: what nobody decided is no event, and a long resource is shortened", () =>
    Effect.gen(function* () {
      const { decided, paints } = yield* asking(Answer.Unavailable(), Answer.Once())
      yield* paints("nobody", "red")
      yield* paints("long", "x".repeat(5_000))
      const events = yield* decided
      assert.lengthOf(events, 1)
      assert.isBelow(JSON.stringify(events[0]?.data).length, 1_000)
    })
  )

  it.scoped("PM-45: a revoked approval is asked about again in the session that runs, which has it as an event", () =>
    Effect.gen(function* () {
      const { decided, folder, paints, store } = yield* asking(Answer.Always(), Answer.Once())
      yield* paints("first", "red")
      yield* paints("second", "red")
      const [saved] = yield* store.list(folder)
      assert.lengthOf(yield* store.revoke([saved?.number ?? 0]), 1)
      yield* paints("third", "red")
      assert.deepStrictEqual(
        (yield* decided).map(({ data, type }) => [
          type.split(".").at(-1),
          "decision" in data ? data.decision : data.number
        ]),
        [
          ["decided", "always"],
          ["decided", "approved"],
          ["revoked", saved?.number],
          ["decided", "once"]
        ]
      )
    })
  )

  it.scoped("PM-45: revoking what a removed session saved brings no session back", () =>
    Effect.gen(function* () {
      const { folder, id, log, paints, sessions, store } = yield* asking(Answer.Always())
      yield* paints("first", "red")
      const [saved] = yield* store.list(folder)
      yield* sessions.remove(id)
      assert.lengthOf(yield* store.revoke([saved?.number ?? 0]), 1)
      assert.strictEqual((yield* Effect.flip(log.head(id)))._tag, "SessionNotFound")
    })
  )
}
