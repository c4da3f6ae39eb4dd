/** The clauses of specs/http.md that a client can see, each with its test, in the order in which they are tested. */
import { Schema } from "effect"
import {
  admitted,
  answer,
  aPrompt,
  expect,
  type Law,
  posted,
  rawStatus,
  refusal,
  refuses,
  replay,
  request,
  same,
  say,
  session,
  type Target
} from "./Kit.ts"
import { feedLaws, followLaws, replayLaws } from "./StreamLaws.ts"

// Who may use a server, from where, and with what.

/** Requests that need a token, streams among them. */
const guarded = (id: string): ReadonlyArray<readonly [path: string, init?: RequestInit]> => [
  ["/sessions"],
  [`/sessions/${id}`],
  [`/sessions/${id}/events?follow=0`],
  [`/sessions/${id}/history`],
  ["/events?follow=0"],
  ["/head"],
  ["/sessions", posted({ location: { directory: "/" } })],
  [`/sessions/${id}/prompts`, posted({ prompt: { text: "hi" }, resume: false })]
]

/** After many wrong tokens a server may answer 429: that refuses too. */
const refusesToken = async (target: Target, path: string, init: RequestInit, secret: string) => {
  const { response, text } = await refusal(target, path, 401, init).catch((error: unknown) =>
    refusal(target, path, 429, init).catch(() => Promise.reject(error))
  )
  expect(
    response.status === 429 || /bearer/i.test(response.headers.get("www-authenticate") ?? ""),
    "no www-authenticate"
  )
  expect(secret === "" || !text.includes(secret), `the error of ${path} has the token`)
}

const accessLaws: ReadonlyArray<Law> = [
  {
    clause: "HT-20",
    says: "without a token every endpoint refuses, and says what is needed",
    test: async (target) => {
      for (const [path, init] of guarded(await session(target, 1)))
        await refusesToken(target, path, { ...init, headers: { authorization: "" } }, "")
    }
  },
  {
    clause: "HT-20",
    says: "a wrong token, or a right one in another place, is refused, and no error repeats it",
    test: async (target) => {
      const id = await session(target, 1)
      const wrong = `${target.token.slice(0, -1)}${target.token.endsWith("x") ? "y" : "x"}`
      for (const path of ["/sessions", `/sessions/${id}/events?follow=0`, "/events?follow=0"])
        await refusesToken(target, path, { headers: { authorization: `Bearer ${wrong}` } }, wrong)
      for (const authorization of [target.token, `Basic ${target.token}`])
        await refusesToken(target, "/sessions", { headers: { authorization } }, target.token)
      for (const name of ["token", "access_token"])
        await refusesToken(
          target,
          `/sessions?${name}=${target.token}`,
          { headers: { authorization: "" } },
          target.token
        )
    }
  },
  {
    clause: "HT-20",
    says: "the documents and `/health` need no token",
    test: async (target) => {
      for (const path of ["/health", "/openapi.json"]) {
        const response = await request(target, path, { headers: { authorization: "" } })
        same(response.status, 200, `status of ${path}`)
        await response.json()
      }
    }
  },
  {
    clause: "HT-21",
    says: "a token that may only read reads, and is refused where more is needed",
    untestable: ({ readToken }) => (readToken === undefined ? "no token that may only read was given" : undefined),
    test: async (target) => {
      const id = await session(target, 1)
      const headers = { authorization: `Bearer ${target.readToken}` }
      for (const path of [`/sessions/${id}`, `/sessions/${id}/events?follow=0`])
        same((await request(target, path, { headers })).status, 200, `status of ${path}`)
      for (const [path, init] of guarded(id)) {
        if (init === undefined) continue
        const refused = await refuses(target, path, 403, "Forbidden", { ...init, headers })
        same(refused.fields["needs"], "prompt", "scope that is needed")
      }
      await refuses(target, `/sessions/${id}`, 403, "Forbidden", { method: "DELETE", headers })
      same((await request(target, `/sessions/${id}`)).status, 200, "status of the session that was not removed")
    }
  },
  {
    clause: "HT-24",
    says: "a page of another origin, and a request for another host, are refused, and no header permits them",
    test: async (target) => {
      const id = await session(target, 1)
      for (const path of ["/sessions", `/sessions/${id}/events?follow=0`, "/openapi.json"]) {
        for (const origin of ["https://conformance.invalid", "null"]) {
          const { response } = await refuses(target, path, 403, "SiteRefused", { headers: { origin } })
          same(response.headers.get("access-control-allow-origin"), null, "access-control-allow-origin")
        }
        same(await rawStatus(target, path, ["host", "conformance.invalid"]), 403, `status of ${path} for another host`)
      }
      const own = await request(target, "/sessions")
      same(own.headers.get("access-control-allow-origin"), null, "access-control-allow-origin")
    }
  },
  {
    clause: "HT-15",
    says: "a request with two tokens, or with two origins, is refused",
    test: async (target) => {
      const { origin } = new URL(target.baseUrl)
      for (const twice of [
        ["authorization", "Bearer wrong"],
        ["origin", origin, "origin", "https://conformance.invalid"]
      ])
        same(await rawStatus(target, "/sessions", twice), 400, `status with ${twice.join(" ")}`)
    }
  }
]

// A prompt is admitted once, however often it is sent.

const Titled = Schema.Struct({ title: Schema.optional(Schema.String), updatedAt: Schema.Number })
const Waiting = Schema.Array(Schema.Struct({ id: Schema.String, prompt: Schema.Struct({ text: Schema.String }) }))
const Receipt = Schema.Struct({ id: Schema.String, sessionID: Schema.String, admittedSeq: Schema.Int })
const Waited = Schema.Struct({ settled: Schema.Boolean })

const send = (target: Target, sessionID: string, text: string, more: object, headers = {}) =>
  answer(target, Receipt, `/sessions/${sessionID}/prompts`, posted(aPrompt(text, more), headers))

const conflicts = (target: Target, sessionID: string, text: string, more: object, headers = {}) =>
  refuses(target, `/sessions/${sessionID}/prompts`, 409, "PromptConflictError", posted(aPrompt(text, more), headers))

/** A new id: the server may know the ids of an earlier run of the suite. */
const fresh = () => `msg_${crypto.randomUUID()}`

const promptLaws: ReadonlyArray<Law> = [
  {
    clause: "HT-12",
    says: "a repeated idempotency key admits one prompt, and one with other content is refused",
    test: async (target) => {
      const id = await session(target, 0)
      const headers = { "idempotency-key": crypto.randomUUID() }
      const first = await send(target, id, "hi", {}, headers)
      same(await send(target, id, "hi", {}, headers), first, "receipt of the repetition")
      await conflicts(target, id, "other", {}, headers)
      await send(target, id, "hi", {}, { "idempotency-key": crypto.randomUUID() })
      same(admitted(await replay(target, id)).length, 2, "prompts that two keys admitted")
    }
  },
  {
    clause: "HT-12",
    says: "a repeated id admits one prompt, and other content, delivery or session with it is refused",
    test: async (target) => {
      const [id, other] = [await session(target, 0), await session(target, 0)]
      const more = { id: fresh() }
      const first = await send(target, id, "hi", more)
      same([first.id, first.sessionID], [more.id, id], "id and session of the receipt")
      await say(target, id, "between")
      same(await send(target, id, "hi", more), first, "receipt of the repetition")
      await conflicts(target, id, "other", more)
      await conflicts(target, id, "hi", { ...more, delivery: "queue" })
      await conflicts(target, other, "hi", more)
      same(admitted(await replay(target, id)).length, 2, "prompts of the session")
      same(admitted(await replay(target, other)).length, 0, "prompts of the other session")
    }
  },
  {
    clause: "HT-12",
    says: "of concurrent repetitions one is admitted, and all have its receipt",
    test: async (target) => {
      const id = await session(target, 0)
      const more = { id: fresh() }
      const receipts = await Promise.all(Array.from({ length: 12 }, () => send(target, id, "hi", more)))
      for (const receipt of receipts) same(receipt, receipts[0], "receipt")
      same(admitted(await replay(target, id)).length, 1, "prompts of the session")
    }
  },
  {
    clause: "HT-1",
    says: "what was accepted is read at once: prompts wait in their order, with their texts, and a title is that of the session",
    test: async (target) => {
      const id = await session(target, 0)
      const said = ["one", "zwei \u{1F9EA}", 'three "quoted"\n\ttabbed']
      for (const text of said) await say(target, id, text)
      const waiting = await answer(target, Waiting, `/sessions/${id}/prompts`)
      same(
        waiting.map(({ prompt }) => prompt.text),
        said,
        "texts of the prompts that wait"
      )
      const renamed = await request(target, `/sessions/${id}/title`, posted({ title: "seen" }, {}, "PUT"))
      same(renamed.status, 204, "status of a new title")
      same((await answer(target, Titled, `/sessions/${id}`)).title, "seen", "title")
      same((await answer(target, Waited, `/sessions/${id}/wait`)).settled, true, "whether an idle session has settled")
    }
  }
]

// Requests that do not fit, and errors.

const Document = Schema.Struct({ openapi: Schema.String, paths: Schema.Object })

const requestLaws: ReadonlyArray<Law> = [
  {
    clause: "HT-3",
    says: "an invalid id is refused as such, not as that of no session",
    test: async (target) => {
      const long = `ses_${"x".repeat(97)}`
      for (const path of ["/sessions/nope", "/sessions/ses_nope%20/events", `/sessions/${long}/head`, "/sessions/ses_"])
        await refuses(target, path, 400, "HttpApiDecodeError")
    }
  },
  {
    clause: "HT-3",
    says: "a missing, wrong or unknown field, and an unknown parameter, are refused by name, and nothing is changed",
    test: async (target) => {
      const id = await session(target, 1)
      const before = await replay(target, id)
      for (const [path, field, init] of [
        [`/sessions/${id}/title`, "misspelt", posted({ title: "changed", misspelt: 1 }, {}, "PUT")],
        [`/sessions/${id}/title`, "title", posted({}, {}, "PUT")],
        [`/sessions/${id}/prompts`, "text", posted({ prompt: { text: 1 }, resume: false })],
        [`/sessions/${id}/prompts`, "misspelt", posted({ prompt: { text: "x" }, resume: false, misspelt: 1 })],
        [`/sessions/${id}/events?afer=1&follow=0`, "afer", {}],
        [`/sessions/${id}?afer=1`, "afer", {}],
        [`/sessions/${id}/history?limit=many`, "limit", {}],
        [`/sessions/${id}/events?follow=0&type=nope`, "type", {}]
      ] as const) {
        const refused = await refuses(target, path, 400, "HttpApiDecodeError", init)
        expect(
          JSON.stringify(refused.fields["issues"] ?? []).includes(`"${field}"`),
          `the error of ${path} does not name ${field}`
        )
      }
      same(await replay(target, id), before, "events after refusals")
      same((await answer(target, Titled, `/sessions/${id}`)).title, undefined, "title after refusals")
    }
  },
  {
    clause: "HT-501",
    says: "a body that is not JSON, or is nested too deeply, is refused, and nothing fails",
    test: async (target) => {
      const id = await session(target, 0)
      for (const body of ["{", "not JSON", "[".repeat(50_000), "[".repeat(5_000) + "]".repeat(5_000)])
        for (const path of ["/sessions", `/sessions/${id}/prompts`])
          await refuses(target, path, 400, "BodyUnreadable", { method: "POST", body })
    }
  },
  {
    clause: "HT-502",
    says: "a path without endpoints is 404, and one without the method is 405 with those that it has",
    test: async (target) => {
      await refuses(target, "/conformance/none", 404, "EndpointNotFound")
      const { response } = await refuses(target, "/sessions", 405, "MethodNotAllowed", posted({}, {}, "PUT"))
      const allow = response.headers.get("allow")?.split(/, */) ?? []
      expect(
        ["GET", "POST"].every((method) => allow.includes(method)),
        `the header allow is ${allow.join(", ")}`
      )
    }
  },
  {
    clause: "HT-10",
    says: "an error has its status, its code, its fields and a message, on every path",
    test: async (target) => {
      const sessionID = "ses_conformance_none"
      for (const rest of ["", "/events?follow=0", "/history", "/head", "/messages", "/prompts", "/snapshot"])
        same(
          (await refuses(target, `/sessions/${sessionID}${rest}`, 404, "SessionNotFound")).fields["sessionID"],
          sessionID,
          `field sessionID of ${rest}`
        )
      const prompt = posted({ prompt: { text: "x" }, resume: false })
      await refuses(target, `/sessions/${sessionID}/prompts`, 404, "SessionNotFound", prompt)
      const id = await session(target, 0)
      const { message } = await refusal(target, `/sessions/${id}/prompts`, 400, posted({ prompt: { text: " " } }))
      expect(!/\bat \S+:\d+:\d+/.test(message), "the message has a stack")
    }
  },
  {
    clause: "HT-2",
    says: "the document describes the endpoints of this suite",
    test: async (target) => {
      const { openapi, paths } = await answer(target, Document, "/openapi.json")
      expect(openapi.startsWith("3.1."), `the document is of OpenAPI ${openapi}`)
      for (const path of ["/sessions", "/events", "/sessions/{sessionID}/events", "/sessions/{sessionID}/prompts"])
        expect(path in paths, `the document does not have ${path}`)
    }
  }
]

export type { Law } from "./Kit.ts"

export const laws: ReadonlyArray<Law> = [
  ...accessLaws,
  ...requestLaws,
  ...promptLaws,
  ...replayLaws,
  ...followLaws,
  ...feedLaws
]
