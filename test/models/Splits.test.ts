/**
 * Method: the real runtime on an in-memory store; a provider whose answers come in the pieces that the property chooses, each
 * in a read of its own. What is stored, and what a reader hears, must not depend on them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Effect, FastCheck, Layer, Redacted } from "effect"
import { Models } from "@daybook/models"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import type { LiveEvent, SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { readAll } from "../support/Logs.ts"

const frames = (...values: ReadonlyArray<object>): Uint8Array =>
  new TextEncoder().encode(
    [...values.map((value) => JSON.stringify(value)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("")
  )

const delta = (fields: object, finish?: string) => ({
  id: "chat-1",
  model: "splitter",
  choices: [{ index: 0, delta: fields, ...(finish === undefined ? {} : { finish_reason: finish }) }]
})

const piece = (input: string) => delta({ tool_calls: [{ index: 0, function: { arguments: input } }] })

/** Thinking, a text, and a call of a tool that does not exist; then a text. */
const answers = [
  frames(
    delta({ role: "assistant", reasoning_content: "Größer " }),
    delta({ reasoning_content: "denken 🧠." }),
    delta({ content: "Ich sehe " }),
    delta({ content: "nach: 你好 🌍" }),
    delta({ tool_calls: [{ index: 0, id: "call-1", function: { name: "lookup", arguments: "" } }] }),
    piece('{"path":"a'),
    piece('/ü"}'),
    delta({}, "tool_calls"),
    { id: "chat-1", choices: [], usage: { prompt_tokens: 20, completion_tokens: 9, total_tokens: 29 } }
  ),
  frames(delta({ role: "assistant", content: "Das " }), delta({ content: "war's." }), delta({}, "stop"))
] as const

/** The answer in pieces, each in a read of its own. */
const inPieces = (bytes: Uint8Array, cuts: ReadonlyArray<number>): Response => {
  const at = [0, ...new Set(cuts.map((cut) => cut % bytes.length)), bytes.length].toSorted((a, b) => a - b)
  const pieces = at
    .slice(1)
    .map((end, index) => bytes.subarray(at[index], end))
    .values()
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) =>
        new Promise<void>((resolve) =>
          setImmediate(() => {
            const { done, value } = pieces.next()
            if (done === true) controller.close()
            else controller.enqueue(value)
            resolve()
          })
        )
    },
    { highWaterMark: 0 }
  )
  return new Response(body, { headers: { "content-type": "text/event-stream" } })
}

/** The events without what differs from run to run: ids, in the order in which they first come, and times. */
const shapeOf = (events: ReadonlyArray<SessionEvent>): unknown => {
  const ids: Array<string> = []
  const known = (id: string): string => {
    if (!ids.includes(id)) ids.push(id)
    return `id ${ids.indexOf(id)}`
  }
  return events.map(({ data, type }) => [
    type,
    JSON.parse(
      JSON.stringify(data, (key, value: unknown) => (/time|created/i.test(key) ? undefined : value)).replaceAll(
        /"((?:ses|msg|prt|act|evt)_[^"]+)"/g,
        (_, id: string) => JSON.stringify(known(id))
      )
    ) as unknown
  ])
}

/** The joined deltas of each text and input. */
const joinedOf = (heard: ReadonlyArray<LiveEvent>): ReadonlyArray<string> => {
  const joined = new Map<string, string>()
  for (const { data } of heard) {
    const id =
      "textID" in data ? data.textID : "reasoningID" in data ? data.reasoningID : "callID" in data ? data.callID : ""
    joined.set(id, (joined.get(id) ?? "") + ("delta" in data ? data.delta : data.text))
  }
  return [...joined.values()]
}

/** Runs a prompt whose answers are cut at these places. */
const run = (cuts: ReadonlyArray<ReadonlyArray<number>>) => {
  const left = answers.map((bytes, index) => inPieces(bytes, cuts[index] ?? [])).values()
  const fetch: typeof globalThis.fetch = (input) =>
    Promise.resolve(
      String(input).endsWith("/chat/completions")
        ? (left.next().value ?? Response.error())
        : new Response("", { status: 404 })
    )
  const options: Models.Options = {
    providers: {
      pieces: { api: "openai-compatible", baseUrl: "http://127.0.0.1:9/v1", apiKey: Redacted.make("k"), fetch }
    },
    default: { providerID: "pieces", id: "splitter" }
  }
  return Effect.gen(function* () {
    const [sessions, log] = [yield* Sessions, yield* EventLog]
    const { id } = yield* sessions.create({ location: { directory: import.meta.dirname } })
    const heard: Array<LiveEvent> = []
    yield* log.hear(id, () => (event) => heard.push(event))
    yield* sessions.prompt({ sessionID: id, prompt: { text: "Sieh nach." }, resume: false })
    yield* sessions.resume(id)
    // A tool may end before or after the answer that called it does.
    const [stored, results] = Arr.partition(yield* readAll(id), ({ type }) => type === "session.next.tool.failed")
    return { stored: shapeOf([...stored, ...results]), heard: joinedOf(heard) }
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.provideMerge(Daybook.layer({ filename: ":memory:" }), Models.layerOptions(options)))
  )
}

describe("the pieces of an answer", () => {
  const cuts = FastCheck.array(FastCheck.nat(4_000), { maxLength: 60 })

  it.live("EX-T60: any split of the provider's bytes gives the same stored events, and the same joined deltas", () =>
    Effect.gen(function* () {
      const whole = yield* run([])
      assert.deepStrictEqual(whole.heard, [
        "Größer denken 🧠.",
        "Ich sehe nach: 你好 🌍",
        '{"path":"a/ü"}',
        "Das war's."
      ])
      const each = Array.from({ length: 400 }, (_, byte) => byte)
      for (const chosen of [[each, each], ...FastCheck.sample(FastCheck.tuple(cuts, cuts), 30)]) {
        assert.deepStrictEqual(yield* run(chosen), whole, JSON.stringify(chosen))
      }
    })
  )
})
