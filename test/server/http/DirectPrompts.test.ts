/** Prompts that are admitted without the routes of the other endpoints. */
import { assert, layer } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { issue } from "../../../packages/server/src/http/Tokens.ts"
import { newSession } from "../../support/Harness.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { request, token } from "./support/ServedApi.ts"

/** The endpoint takes both; only the first one is taken before it. */
const ways = { direct: "application/json", endpoint: "application/json; charset=utf-8" } as const

type Way = keyof typeof ways

/** The same of all answers, whichever session, way and moment they are of. */
const normal = (text: string, sessionID: string, way: Way) =>
  text
    .replaceAll(sessionID, "SESSION")
    .replaceAll(`-${way}`, "-WAY")
    .replaceAll(/"createdAt":\d+/g, '"createdAt":0')

/** Status, headers and body of each request, one after another, on a session of its own. */
const answers = (way: Way, requests: ReadonlyArray<RequestInit & { readonly sessionID?: string }>) =>
  Effect.gen(function* () {
    const { id } = yield* newSession()
    const found = yield* Effect.forEach(requests, ({ sessionID = id, ...init }) =>
      Effect.gen(function* () {
        const body = String(init.body).replaceAll("-WAY", `-${way}`)
        const headers = { "content-type": ways[way], ...init.headers }
        const response = yield* request(`/sessions/${sessionID}/prompts`, { method: "POST", ...init, body, headers })
        const shown = [...response.headers].filter(([name]) => name !== "date" && name !== "content-length")
        const text = yield* Effect.promise(() => response.text())
        return { status: response.status, headers: shown, body: normal(text, id, way) }
      })
    )
    const inbox = yield* (yield* Sessions).inbox(id)
    return { found, inbox: normal(JSON.stringify(inbox), id, way) }
  })

const sent = (body: object, headers: Record<string, string> = {}) => ({
  body: JSON.stringify({ resume: false, ...body }),
  headers
})

const taken = Metric.counter("daybook_http_direct_prompts_total", { incremental: true })

const bearer = (given: string) => ({ authorization: `Bearer ${given}` })

layer(ServedApi.layer({ inboxLimit: 4 }))("a prompt over HTTP", (it) => {
  it.effect("HT-30: a small prompt is answered, refused and stored as the endpoint does it", () =>
    Effect.gen(function* () {
      const other = yield* newSession()
      const hi = { id: "msg_a-WAY", prompt: { text: "hi" } }
      const requests = [
        sent(hi),
        sent(hi),
        sent({ ...hi, prompt: { text: "another text" } }),
        sent({ id: "msg_b-WAY", prompt: { text: "hi" }, delivery: "queue", expand: false }),
        sent({ id: "msg_c-WAY", prompt: { text: "hi" }, delivary: "queue" }),
        sent({ id: "msg_c-WAY", prompt: { text: "hi", unknown: 1 } }),
        sent({ prompt: { text: "hi" }, id: "msg_c-WAY" }),
        sent({ id: "msg_d-WAY", prompt: { text: "\u2028 ü" } }),
        sent({ id: "not an id", prompt: { text: "hi" } }),
        sent({ prompt: { text: " " } }),
        sent({ prompt: { text: "hi" }, delivery: "soon" }),
        sent({ prompt: { text: 1 } }),
        { body: "{" },
        { body: "" },
        { body: "null" },
        sent(hi, bearer(issue(token, { scope: "prompt", sessionID: other.id }))),
        sent(hi, bearer(issue(token, { scope: "read" }))),
        sent(hi, bearer(issue(token, { scope: "prompt", expires: -1 }))),
        sent(hi, bearer("wrong")),
        sent(hi, { authorization: `Basic ${token}` }),
        sent(hi, { authorization: "" }),
        { ...sent(hi), sessionID: "ses_unknown" },
        { ...sent(hi), sessionID: "nope" },
        sent({ id: "msg_e-WAY", prompt: { text: "the inbox is full" } }),
        sent(hi)
      ]
      const direct = yield* answers("direct", requests)
      assert.deepEqual(direct, yield* answers("endpoint", requests))
      assert.deepEqual(
        direct.found.map(({ status }) => status),
        [
          200, 200, 409, 200, 400, 400, 200, 200, 400, 400, 400, 400, 400, 400, 400, 403, 403, 401, 401, 401, 401, 404,
          400, 429, 200
        ]
      )
    })
  )

  it.effect("HT-30: a small prompt takes the shorter way, and a large, encoded, refused or unusual one does not", () =>
    Effect.gen(function* () {
      const { id } = yield* newSession()
      const takes = Effect.fnUntraced(function* (init: RequestInit, at = `/sessions/${id}/prompts`) {
        const before = (yield* Metric.value(taken)).count
        const headers = { "content-type": ways.direct, ...init.headers }
        const { status } = yield* request(at, { method: "POST", ...init, headers })
        return { status, taken: (yield* Metric.value(taken)).count - before }
      })
      const hi = (bytes = 2) => ({ prompt: { text: "h".repeat(bytes) } })
      const around = JSON.stringify({ resume: false, ...hi(0) }).length
      assert.deepStrictEqual(yield* takes(sent(hi())), { status: 200, taken: 1 })
      assert.deepStrictEqual(yield* takes(sent(hi(65_536 - around))), { status: 200, taken: 1 })
      assert.deepStrictEqual(yield* takes(sent(hi(65_537 - around))), { status: 200, taken: 0 })
      const others = [
        sent(hi(), { "content-type": ways.endpoint }),
        sent(hi(), { "idempotency-key": "once" }),
        sent({ ...hi(), delivery: "soon" }),
        sent(hi(), bearer("wrong")),
        { body: "{" }
      ]
      assert.deepStrictEqual(yield* Effect.forEach(others, (init) => takes(init)), [
        { status: 200, taken: 0 },
        { status: 429, taken: 0 },
        { status: 400, taken: 0 },
        { status: 401, taken: 0 },
        { status: 400, taken: 0 }
      ])
      assert.deepStrictEqual(yield* takes(sent(hi()), `/sessions/${id}/prompts?x=1`), { status: 400, taken: 0 })
    })
  )
})
