import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { boundedBody } from "../../packages/core/src/http/BoundedBody.ts"

const limits = { body: 20, event: 10, stream: 60 }

/** What is read of a body that comes in these pieces: its text, or why it failed. */
const read = (type: string, pieces: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece))
        controller.close()
      }
    })
    const response = boundedBody(new Response(body, { headers: { "content-type": type } }), limits)
    return response.text().catch((error: unknown) => String(error))
  })

const tooLarge = (what: string, limit: number) =>
  `HttpRefused: ${what} has more than ${limit} bytes, which is the limit`

describe("a body with limits", () => {
  it.effect("LM-10: it may be as large as its limit and no larger, however it is cut", () =>
    Effect.gen(function* () {
      const whole = "x".repeat(20)
      assert.strictEqual(yield* read("application/json", [whole]), whole)
      assert.strictEqual(yield* read("application/json", whole.split("")), whole)
      for (const pieces of [[`${whole}y`], [whole, "y"], [...`${whole}y`]]) {
        assert.strictEqual(yield* read("application/json", pieces), tooLarge("the answer", 20))
      }
    })
  )

  it.effect("LM-10: an event may be as large as its limit, with each of the line ends, and no larger", () =>
    Effect.gen(function* () {
      for (const eol of ["\n", "\r", "\r\n"]) {
        const event = `${"x".repeat(10 - 2 * eol.length)}${eol}${eol}`
        const fine = event.repeat(6)
        assert.strictEqual(yield* read("text/event-stream", [fine]), fine)
        assert.strictEqual(yield* read("Text/Event-Stream; charset=utf-8", fine.split("")), fine)
        const long = `${event}${"x".repeat(5)}${eol}${"x".repeat(6)}`
        assert.strictEqual(yield* read("text/event-stream", [...long]), tooLarge("a message", 10), JSON.stringify(eol))
      }
    })
  )

  it.effect("LM-10: small events without an end are as large as the stream may be", () =>
    Effect.gen(function* () {
      const ping = ": ping\n\n"
      assert.strictEqual(yield* read("text/event-stream", [ping.repeat(7)]), ping.repeat(7))
      assert.strictEqual(yield* read("text/event-stream", Array(8).fill(ping)), tooLarge("the answer", 60))
      assert.strictEqual(yield* read("text/event-stream", ["\n".repeat(61)]), tooLarge("the answer", 60))
    })
  )
})
