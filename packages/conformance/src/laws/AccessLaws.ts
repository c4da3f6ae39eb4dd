/** Who may use a server, from where, and with what. */
import { expect, type Law, posted, refusal, refuses, same, session } from "../Kit.ts"
import { rawStatus, request, type Target } from "../Target.ts"

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

export const accessLaws: ReadonlyArray<Law> = [
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
