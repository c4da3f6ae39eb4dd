/** Method: the law of the suite that waits for the server's own times, against a true server and one that sends no comments. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { laws, verify } from "../../packages/conformance/src/index.ts"
import * as Broken from "../conformance/support/Broken.ts"
import { layer, Served, token } from "../server/http/support/ServedApi.ts"

it.scopedLive(
  "HT-47: Daybook's server sends a comment in time, and one that sends none does not pass",
  () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const silent = yield* Broken.serve(url, { sends: ({ text }) => (text.startsWith(":") ? [] : [text]) })
      const slow = laws.filter((law) => law.slow === true)
      const problems = yield* Effect.promise(() =>
        Promise.all(
          [url, silent.url].map(async (baseUrl) => {
            const verdicts = await verify(slow, { baseUrl, token })
            return verdicts.map(({ problem }) => problem === undefined)
          })
        )
      )
      assert.deepEqual(problems, [[true], [false]])
    }).pipe(Effect.provide(layer())),
  { timeout: 60_000 }
)
