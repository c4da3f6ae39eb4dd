/** What bounds a session on a server. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { newSession } from "../../support/Harness.ts"
import { clientOf } from "../../client/support/ServedClient.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, Served } from "./support/ServedApi.ts"

const served = ServedApi.layer({}, { contextTokens: 1_234 }, { budget: { tokens: 5_000 } })

it.scoped(
  "HT-59: limits are the model's window, and the configured budget unless the session has one or a parent",
  () =>
    Effect.gen(function* () {
      const [sessions, client] = [yield* Sessions, yield* clientOf((yield* Served).url)]
      const { id } = yield* newSession("/")
      const child = yield* sessions.create({ location: { directory: "/" }, parentID: id })
      assert.deepStrictEqual({ ...(yield* client.limits(id)) }, { contextTokens: 1_234, budget: { tokens: 5_000 } })
      assert.deepStrictEqual({ ...(yield* client.limits(child.id)) }, { contextTokens: 1_234 })
      yield* sessions.setBudget(id, { tokens: 7 })
      assert.deepStrictEqual({ ...(yield* client.limits(id)) }, { contextTokens: 1_234 })
      assert.strictEqual((yield* answer("/sessions/ses_unknown/limits")).status, 404)
    }).pipe(Effect.provide(served))
)
