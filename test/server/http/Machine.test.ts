/** Figures and shells over TCP, of a server whose host gives none. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ServedApi from "./support/ServedApi.ts"
import { answer } from "./support/ServedApi.ts"

it.scopedLive("HT-55, HT-56: a server that has no figures or no shells says so", () =>
  Effect.gen(function* () {
    for (const [path, what] of [
      ["/stats", "stats"],
      ["/sessions/ses_1/stats", "stats"],
      ["/shells", "shells"]
    ]) {
      const { body, status } = yield* answer(path ?? "")
      assert.strictEqual(status, 501)
      assert.deepInclude(body, { _tag: "NotServed", what })
    }
  }).pipe(Effect.provide(ServedApi.layer()))
)
