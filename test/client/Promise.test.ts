/** The client for programs without Effect. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { connect, DaybookError } from "../../packages/client/src/promise.ts"
import { newSession, say } from "../support/Harness.ts"
import { Served, token } from "../server/http/support/ServedApi.ts"
import { layer as served } from "./support/ServedClient.ts"

/** Runs a program that knows nothing of Effect. */
const program = <A>(run: (daybook: ReturnType<typeof connect>, url: string) => Promise<A>) =>
  Effect.flatMap(Served, ({ url }) => Effect.promise(() => run(connect({ baseUrl: url, token }), url)))

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error
  )

layer(served())("promises", (it) => {
  it.effect("HT-65: verbs return promises and take plain texts as ids; errors have the code and the fields", () =>
    program(async (daybook, url) => {
      const { id } = await daybook.create({ location: { directory: "/" }, title: "plain" })
      assert.strictEqual((await daybook.get(String(id))).title, "plain")
      assert.deepEqual(await daybook.active(), [])
      const error = await failureOf(daybook.get("ses_none"))
      assert.instanceOf(error, DaybookError)
      assert.deepInclude(error, { code: "SessionNotFound", message: "there is no session ses_none" })
      assert.deepEqual(error.fields, { sessionID: "ses_none" })
      const refused = await failureOf(connect({ baseUrl: url, token: "wrong" }).list())
      assert.deepInclude(refused, { code: "Unauthorized" })
    })
  )

  it.effect("HT-65: streams are async iterables that end with the loop", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* say(id, "one", { resume: false })
      yield* say(id, "two", { resume: false })
      const seqs = yield* program(async (daybook) => {
        const seen: Array<number> = []
        for await (const { seq } of daybook.events({ sessionID: id })) {
          seen.push(seq)
          if (seen.length === 2) break
        }
        return seen
      })
      assert.deepEqual(seqs, [1, 2])
    })
  )

  it.effect("HT-65: a signal ends calls and streams with its reason", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      yield* say(id, "one", { resume: false })
      yield* program(async (daybook) => {
        const abort = new AbortController()
        const reading = daybook.with({ signal: abort.signal })
        const iterate = async () => {
          for await (const _event of reading.events({ sessionID: id })) abort.abort(new Error("enough"))
        }
        assert.deepInclude(await failureOf(iterate()), { message: "enough" })
        assert.deepInclude(await failureOf(reading.get(id)), { message: "enough" })
        assert.strictEqual((await daybook.get(id)).id, id)
      })
    })
  )
})
