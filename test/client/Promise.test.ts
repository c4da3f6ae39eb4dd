/** The client for programs without Effect. */
import { assert, it, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { connect, DaybookError } from "../../packages/client/src/promise.ts"
import { newSession, say } from "../support/Harness.ts"
import { Served, token } from "../server/http/support/ServedApi.ts"
import * as Rude from "./support/Rude.ts"
import { layer as served } from "./support/ServedClient.ts"

/** Runs a program that knows nothing of Effect. */
const program = <A>(run: (daybook: ReturnType<typeof connect>, url: string) => Promise<A>) =>
  Effect.flatMap(Served, ({ url }) => Effect.promise(() => run(connect({ baseUrl: url, token }), url)))

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error
  )

/** Calls a verb as a program without types does, and returns why it fails: a promise, or the first event of an iterable. */
const refusal = async (verb: unknown, given: ReadonlyArray<unknown>): Promise<unknown> => {
  assert(Predicate.isFunction(verb))
  const result: unknown = verb(...given)
  if (!Predicate.hasProperty(result, Symbol.asyncIterator)) return failureOf(Promise.resolve(result))
  return failureOf((result as AsyncIterable<unknown>)[Symbol.asyncIterator]().next())
}

/** A client of a server that cuts every connection off, and how many there were. */
const unserved = Effect.map(
  Rude.serve((_number, response) => response.destroy()),
  ({ requests, url }) => ({ daybook: connect({ baseUrl: url, token, giveUpAfter: 0 }), requests })
)

it.scoped("HT-500: each verb about a session refuses an id of another form, and sends nothing", () =>
  Effect.gen(function* () {
    const { daybook, requests } = yield* unserved
    const byID =
      "get compact context head inbox limits live metrics questions remove rename reset resume settle switchAgent"
    const inOptions = "branch events eventsMarked fork history label messages redo request tail tree undo"
    const refusals = (names: string, sessionID: string, given: unknown) =>
      Effect.forEach(names.split(" "), (name) =>
        Effect.map(
          Effect.promise(() => refusal(Object.entries(daybook).find(([known]) => known === name)?.[1], [given, "x"])),
          (error) => {
            assert.instanceOf(error, DaybookError, name)
            assert.deepInclude(error, { code: "SessionNotFound", fields: { sessionID } }, name)
          }
        )
      )
    for (const sessionID of ["nope", "ses 1", "../../health", ""]) {
      yield* refusals(`${byID} todos unprune usage wait`, sessionID, sessionID)
      yield* refusals(inOptions, sessionID, { sessionID, messageID: "msg_x" })
      // As in the facade: nothing runs there.
      assert.isUndefined(yield* Effect.promise(() => daybook.interrupt(sessionID)))
    }
    assert.strictEqual(requests(), 0)
  })
)

it.scoped("HT-500: a call with arguments that its verb does not take rejects with an error of the client", () =>
  Effect.gen(function* () {
    const { daybook } = yield* unserved
    const { with: _, ...verbs } = daybook
    const odd = [undefined, null, 5, NaN, true, {}, [], Symbol("x"), 10n, () => 1]
    const fields = { messageID: 5, callID: "\ud800", types: 5, after: {}, limit: "x", prompt: 5, answers: 3 }
    const given = [...odd, { sessionID: 5 }, { sessionID: "ses_x", ...fields }]
    for (const [name, verb] of Object.entries(verbs)) {
      for (const first of given) {
        const error = yield* Effect.promise(() => refusal(verb, [first, null]))
        assert.instanceOf(error, DaybookError, `${name} ${String(first)}`)
        assert.include(["InvalidInput", "SessionNotFound", "ServerUnreachable"], error.code, name)
      }
    }
    const refused = yield* Effect.promise(() => refusal(daybook.prompt, []))
    assert.deepInclude(refused, { code: "InvalidInput", message: "prompt: the verb does not take the arguments ()" })
  })
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
