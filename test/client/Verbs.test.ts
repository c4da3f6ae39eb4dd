/** The verbs of the client, over TCP. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { DaybookClient } from "../../packages/client/src/DaybookClient.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { issue } from "../../packages/server/src/http/Tokens.ts"
import { newSession, say } from "../support/Harness.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import { Served, token } from "../server/http/support/ServedApi.ts"
import * as Cutter from "./support/Cutter.ts"
import * as Rude from "./support/Rude.ts"
import { clientOf, layer as served } from "./support/ServedClient.ts"

const unknown = SessionID.make("ses_unknown")

layer(served())("the verbs of a client", (it) => {
  it.effect("HT-60: a verb of the client has the result of the facade's verb", () =>
    Effect.gen(function* () {
      const [remote, sessions] = [yield* DaybookClient, yield* Sessions]
      const { id } = yield* newSession()
      yield* (yield* ScriptedModel).answer(says("hello"))
      const answer = yield* remote.ask({ sessionID: id, prompt: { text: "hi" } })
      assert.strictEqual(answer.text, "hello")
      yield* say(id, "later", { resume: false })
      yield* remote.rename(id, "over HTTP")
      const both = [
        [yield* remote.get(id), yield* sessions.get(id)],
        [yield* remote.list({ search: "over", limit: 1 }), yield* sessions.list({ search: "over", limit: 1 })],
        [yield* remote.messages({ sessionID: id }), yield* sessions.messages({ sessionID: id })],
        [yield* remote.message(id, answer.messageID), yield* sessions.message(id, answer.messageID)],
        [yield* remote.message(id, MessageID.make("msg_none")), undefined],
        [yield* remote.inbox(id), yield* sessions.inbox(id)],
        [yield* remote.usage(id), yield* sessions.usage(id)],
        [yield* remote.request({ sessionID: id }), yield* sessions.request({ sessionID: id })],
        [yield* remote.history({ sessionID: id, limit: 3 }), yield* sessions.history({ sessionID: id, limit: 3 })],
        [yield* remote.wait(id), yield* sessions.wait(id)],
        [yield* remote.active, yield* sessions.active]
      ]
      for (const [over, within] of both) assert.deepEqual(over, within)
    })
  )

  it.effect("HT-60: an error is the facade's own, with its class, its fields and its message", () =>
    Effect.gen(function* () {
      const [remote, sessions] = [yield* DaybookClient, yield* Sessions]
      const { id } = yield* newSession()
      const input = yield* say(id, "hi", { resume: false })
      const conflicting = { sessionID: id, id: input.id, prompt: { text: "other" }, resume: false }
      const failures = [
        [yield* Effect.flip(remote.get(unknown)), yield* Effect.flip(sessions.get(unknown))],
        [yield* Effect.flip(remote.prompt(conflicting)), yield* Effect.flip(sessions.prompt(conflicting))],
        [
          yield* Effect.flip(remote.history({ sessionID: id, after: Number.NaN })),
          yield* Effect.flip(sessions.history({ sessionID: id, after: Number.NaN }))
        ]
      ]
      for (const [over, within] of failures) {
        assert.deepEqual({ ...over }, { ...within })
        assert.strictEqual(over?.constructor, within?.constructor)
        assert.strictEqual(over?.message, within?.message)
      }
    })
  )

  it.effect("HT-60: an argument that does not fit its schema is refused by its field, and nothing is sent", () =>
    Effect.gen(function* () {
      const remote = yield* DaybookClient
      const refused = yield* Effect.flip(remote.ask({ sessionID: unknown, id: "nope", prompt: { text: "hi" } }))
      assert.deepInclude(refused, { _tag: "InvalidInput", field: "id" })
      // A caller without types: the client's schema refuses what the compiler would.
      const bad = "../../openapi.json" as SessionID
      assert.deepInclude(yield* Effect.flip(remote.get(bad)), { _tag: "SessionNotFound", sessionID: bad })
    })
  )

  it.scoped("HT-62: a refused token, a closed port and another server are different errors", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const { id } = yield* newSession()
      const failing = (baseUrl: string, given?: string) =>
        Effect.flatMap(clientOf(baseUrl, given), (client) => Effect.flip(client.rename(id, "x")))
      const reader = issue(token, { scope: "read" })
      assert.deepInclude(yield* failing(url, "wrong"), { _tag: "Unauthorized" })
      assert.deepInclude(yield* failing(url, reader), { _tag: "Forbidden", needs: "prompt" })
      const closed = yield* Effect.scoped(
        Effect.map(
          Cutter.make(url, () => undefined),
          (cutter) => cutter.url
        )
      )
      const unreachable = yield* failing(closed)
      assert.strictEqual(unreachable._tag, "ServerUnreachable")
      assert.strictEqual(unreachable.message, "the server cannot be reached: the connection was refused (ECONNREFUSED)")
      const other = yield* Rude.serve((_number, response) => response.writeHead(404).end("<html>"))
      assert.deepInclude(yield* failing(other.url), { _tag: "UnexpectedAnswer", status: 404 })
      const foreign = yield* Rude.serve((_number, response) =>
        response.writeHead(404, { "content-type": "application/json" }).end('{"error":"not found"}')
      )
      assert.include((yield* failing(foreign.url)).message, "is not one of the API: the body has another form")
      assert.deepInclude(yield* failing(`${url}/elsewhere`), { _tag: "UnexpectedAnswer" })
    })
  )
})
