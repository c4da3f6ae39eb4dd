import { assert, layer } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Option, Redacted, Stream } from "effect"
import { DaybookClient, layer as layerOf } from "../../packages/client/src/DaybookClient.ts"
import * as RemoteSessions from "../../packages/client/src/RemoteSessions.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { newSession, say } from "../support/Harness.ts"
import { Served, token } from "../server/http/support/ServedApi.ts"
import { clientOf, layer as served } from "./support/ServedClient.ts"

layer(served())("the facade over a client", (it) => {
  it.effect("HT-64: programs for the facade run on it; a lost connection is a defect", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const { id } = yield* newSession()
      const program = Effect.gen(function* () {
        yield* say(id, "hi", { resume: false })
        const sessions = yield* Sessions
        const missing = yield* Effect.flip(sessions.get(SessionID.make("ses_none")))
        const [event] = yield* Stream.runCollect(Stream.take(sessions.events({ sessionID: id }), 1))
        return [missing._tag, event?.type, (yield* sessions.inbox(id)).length, yield* sessions.active]
      })
      const over = (token?: string) =>
        Effect.provide(
          program,
          RemoteSessions.layer.pipe(Layer.provide(Layer.effect(DaybookClient, clientOf(url, token))))
        )
      assert.deepEqual(yield* over(), ["SessionNotFound", "session.next.prompt.admitted", 1, []])
      const refused = yield* Effect.exit(over("wrong"))
      const defect = Exit.isFailure(refused) ? Option.getOrUndefined(Cause.dieOption(refused.cause)) : undefined
      assert.deepInclude(defect, { _tag: "Unauthorized" })
    })
  )

  it.effect("HT-60: the layer needs an address and a token alone, plain or redacted", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const { id } = yield* newSession()
      const title = (given: string | Redacted.Redacted) =>
        Effect.flatMap(DaybookClient, (client) => client.rename(id, "over the layer")).pipe(
          Effect.zipRight(Effect.flatMap(DaybookClient, (client) => client.get(id))),
          Effect.provide(layerOf({ baseUrl: url, token: given })),
          Effect.map(({ title }) => title)
        )
      for (const given of [token, Redacted.make(token)]) assert.strictEqual(yield* title(given), "over the layer")
      assert.strictEqual((yield* Effect.flip(title("wrong")))._tag, "Unauthorized")
    })
  )
})
