/** The black-box suite: Daybook's server keeps it, and a server that breaks a clause does not pass. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { laws, report, verify } from "../../packages/conformance/src/index.ts"
import * as Rude from "../client/support/Rude.ts"
import { layer as served, Served, token } from "../server/http/support/ServedApi.ts"

const hold = (baseUrl: string) => Effect.promise(() => verify(laws, { baseUrl, token }))

/** Passes requests on to the server, and changes the text of the streams. */
const changing = (url: string, change: (text: string) => string) =>
  Rude.serve((_number, response, request) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const { authorization = "", accept = "", "last-event-id": last, "idempotency-key": key } = request.headers
      void fetch(`${url}${request.url}`, {
        method: request.method ?? "GET",
        ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
        headers: {
          authorization,
          accept,
          "content-type": "application/json",
          ...(typeof last === "string" ? { "last-event-id": last } : {}),
          ...(typeof key === "string" ? { "idempotency-key": key } : {})
        }
      }).then(async (answer) => {
        response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" })
        const isFollowed = accept.includes("event-stream") && request.url?.includes("follow=0") === false
        if (isFollowed) return response.end()
        return response.end(change(await answer.text()))
      })
    })
  })

layer(served())("the conformance suite", (it) => {
  it.effect("HT-68: Daybook's server keeps every clause of the suite, each time", () =>
    Effect.gen(function* () {
      for (let run = 0; run < 2; run++) {
        const verdicts = yield* hold((yield* Served).url)
        assert.deepEqual(
          verdicts.filter(({ problem }) => problem !== undefined),
          [],
          report(verdicts)
        )
      }
    })
  )

  it.scoped("HT-68: a server that breaks a clause is told so, and of the others that they hold", () =>
    Effect.gen(function* () {
      const { url } = yield* Served
      const broken = [
        ["HT-45", (text: string) => text.replaceAll("event: replay.complete", "event: seam")],
        ["HT-40", (text: string) => text.replace(/event: event\n.*\n.*\n\n/, "")],
        ["HT-10", (text: string) => text.replaceAll('"message"', '"text"')],
        ["HT-54", (text: string) => text.replace(/("seq":)0\b/, "$11")]
      ] as const
      for (const [clause, change] of broken) {
        const server = yield* changing(url, change)
        const verdicts = yield* hold(server.url)
        const failed = verdicts.flatMap(({ law, problem }) => (problem === undefined ? [] : [law.clause]))
        assert.include(failed, clause, report(verdicts))
        assert.isBelow(failed.length, laws.length)
      }
    })
  )
})
