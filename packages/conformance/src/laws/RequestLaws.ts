/** Requests that do not fit, and errors. */
import { Schema } from "effect"
import { expect, type Law, posted, refusal, refuses, replay, same, session } from "../Kit.ts"
import { answer } from "../Target.ts"

const Titled = Schema.Struct({ title: Schema.optional(Schema.String) })
const Document = Schema.Struct({ openapi: Schema.String, paths: Schema.Object })

export const requestLaws: ReadonlyArray<Law> = [
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
