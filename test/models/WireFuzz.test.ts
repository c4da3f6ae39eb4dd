/**
 * Method: the answers of every model server, as it writes them, are changed on their way and read by the real model of their
 * protocol. `fetch` gives out exact pieces of bytes, which a socket would join. What must hold: a change that loses nothing changes
 * nothing; an answer that was cut is whole or an error; no call comes twice, nothing hangs, and no error shows what was read.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, FastCheck as fc, Predicate, TestClock } from "effect"
import { Models } from "@daybook/models"
import { classifyError } from "../../packages/core/src/model/ProviderError.ts"
import { cases } from "../support/Cases.ts"
import { type Action, modelServers, type ModelServer } from "../support/ModelServers.ts"
import { untilAsleep } from "../support/Waiting.ts"
import { answer, type Part, tool } from "./support/Client.ts"

/** The body of an answer: its pieces, and how it ends. */
interface Body {
  readonly pieces: ReadonlyArray<Uint8Array>
  readonly ending: "close" | "break" | "silence"
}

const actions: ReadonlyArray<Action> = [
  { reason: 'Grüße 🌍, "quoted" and {braced}\n\ndata: not a frame' },
  { text: "First a \\ backslash,\r\nthen [DONE] and }{ in a text. 你好" },
  { tool: "look", input: { path: 'a "b" {c}.txt' } },
  { tool: "look", input: { path: "ü/🌍.txt" } }
]

/** The frames of a server's answer, with plain line ends. */
const framesOf = (server: ModelServer): ReadonlyArray<string> => {
  const { end, said } = server.write(actions, 1)
  return [...said, ...end].map((frame) => frame.replaceAll("\r\n", "\n"))
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Reads a body with the server's model. */
const read = Effect.fnUntraced(function* (server: ModelServer, body: Body) {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of body.pieces) controller.enqueue(piece)
      if (body.ending === "close") controller.close()
    },
    pull(controller) {
      if (body.ending === "break") controller.error(new TypeError("terminated"))
    }
  })
  // Only the request of the answer gets it: a server is also asked for its models.
  const fetch: typeof globalThis.fetch = async (_, init) =>
    init?.method === "POST"
      ? new Response(stream, { headers: { "content-type": "text/event-stream" } })
      : new Response("", { status: 404 })
  const provider = { api: server.api, baseUrl: "http://127.0.0.1:9/v1", fetch, models: { [server.model]: {} } }
  const resolver = yield* Models.make({ providers: { [server.profile]: provider } })
  const { model } = yield* Effect.orDie(resolver.resolve({ providerID: server.profile, id: server.model }))
  return yield* Effect.either(answer(model, { prompt: "go", tools: [tool("look")] }))
})

interface Read {
  readonly text: string
  readonly thoughts: string
  readonly calls: ReadonlyArray<unknown>
  /** Undefined for an answer that ended well. */
  readonly error: unknown
}

const readOf = (parts: ReadonlyArray<Part>): Read => {
  const joined = (type: "text-delta" | "reasoning-delta") =>
    parts.flatMap((part) => (part.type === type && "delta" in part ? [part.delta] : [])).join("")
  const failed = parts.find((part) => part.type === "error")
  return {
    text: joined("text-delta"),
    thoughts: joined("reasoning-delta"),
    calls: parts.flatMap((part) => (part.type === "tool-call" ? [{ name: part.name, params: part.params }] : [])),
    error: failed ?? (parts.at(-1)?.type === "finish" ? undefined : "there is no end")
  }
}

const unchanged = new Map<string, Read>()

const whole = (server: ModelServer): Effect.Effect<Read> => {
  const known = unchanged.get(server.profile)
  if (known !== undefined) return Effect.succeed(known)
  const plain = read(server, { pieces: [bytesOf(framesOf(server).join(""))], ending: "close" })
  return Effect.map(plain, (parts) => {
    const all = readOf(Either.getOrThrow(parts))
    unchanged.set(server.profile, all)
    return all
  })
}

/** The answer, with the time that a late end takes. */
const patiently = <A, E, R>(reading: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(
    reading,
    Effect.zipRight(untilAsleep(2_000), Effect.zipRight(TestClock.adjust("2 seconds"), Effect.never))
  )

// --- changes that lose nothing

type Change = (frames: ReadonlyArray<string>) => ReadonlyArray<string>

const at = (frames: ReadonlyArray<string>, place: number): number => Math.floor((place * frames.length) / 100)

const insert =
  (text: string) =>
  (place: number): Change =>
  (frames) =>
    frames.toSpliced(at(frames, place), 0, text)

/** Rewrites the JSON of all frames. */
const rewritten =
  (change: (value: unknown, key: string) => unknown): Change =>
  (frames) =>
    frames.map((frame) =>
      frame.replace(
        /^data: (\{.*)$/m,
        (_, json: string) => `data: ${JSON.stringify(mapped(JSON.parse(json), "", change))}`
      )
    )

const mapped = (value: unknown, key: string, change: (value: unknown, key: string) => unknown): unknown => {
  // The input of a call is the model's own.
  if (key === "args" || key === "input") return value
  if (Array.isArray(value)) return value.map((one) => mapped(one, key, change))
  if (!Predicate.isRecord(value)) return value
  return change(Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapped(one, name, change)])), key)
}

const reversed = (value: unknown): unknown =>
  Predicate.isRecord(value) ? Object.fromEntries(Object.entries(value).toReversed()) : value

const extended = (value: unknown): unknown =>
  Predicate.isRecord(value) ? { ...value, x_new: { a: [1, null] } } : value

const isComment = (frame: string): boolean => frame.startsWith(":")

/** The last empty line ends the stream's last event. */
const isBefore = (frames: ReadonlyArray<string>, index: number): boolean => index < frames.length - 1
const shortened = (frame: string): string => frame.replace(/\n\n$/, "\n")

/** Each is made in this order: the first ones need frames of one object. */
const changes: Readonly<Record<string, (place: number) => Change>> = {
  "fields in another order": () => rewritten(reversed),
  "unknown fields": () => rewritten(extended),
  comment: insert(": keep-alive\n\n"),
  "empty data": insert("data:\n\n"),
  "name without data": insert("event: ping\n\n"),
  "unknown event": insert('event: brand.new\ndata: {"type":"brand.new","x":{"y":[1]}}\n\n'),
  "event without a type": insert('data: {"x_new":true}\n\n'),
  "retry field": insert("retry: 3000\nid: 7\n\n"),
  "dropped empty line": (place) => (frames) =>
    frames.map((frame, index) => (index === at(frames, place) && isBefore(frames, index) ? shortened(frame) : frame)),
  "dropped empty lines": () => (frames) =>
    frames.map((frame, index) => (isBefore(frames, index) ? shortened(frame) : frame)),
  "two frames in one line": (place) => (frames) => {
    const first = at(frames, place)
    const next = frames[first + 1]
    if (next === undefined || isComment(next) || isComment(frames[first] ?? "")) return frames
    const glued = `${(frames[first] ?? "").replace(/\n\n$/, "")}${next.replace(/^event: .*\n/, "")}`
    return frames.toSpliced(first, 2, glued)
  },
  "no space after the colon": () => (frames) => frames.map((frame) => frame.replace(/^data: /m, "data:")),
  "doubled end": () => (frames) => [...frames.slice(0, -1), frames.at(-1) ?? "", frames.at(-1) ?? ""],
  "byte order mark": () => (frames) => ["\ufeff", ...frames]
}

const harmless = fc.array(fc.record({ name: fc.constantFrom(...Object.keys(changes)), place: fc.nat(99) }), {
  maxLength: 3
})

/** By name, which a counterexample prints. */
const anyServer = fc.constantFrom(...modelServers.map(({ profile }) => profile))
const named = (name: string): ModelServer => {
  const server = modelServers.find(({ profile }) => profile === name)
  if (server === undefined) throw new Error(`there is no server ${name}`)
  return server
}
const lineEnd = fc.constantFrom("\n", "\r\n", "\r")
const ending = fc.constantFrom("close" as const, "silence" as const, "break" as const)
const cuts = fc.array(fc.nat(9_999), { maxLength: 12 })

/** Splits bytes at these places, in parts of ten thousand. */
const split = (bytes: Uint8Array, places: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const edges = [
    0,
    ...places.map((place) => Math.floor((place * bytes.length) / 10_000)).sort((a, b) => a - b),
    bytes.length
  ]
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge))
}

describe("an answer on its way", () => {
  it.effect.prop(
    "MD-127: changes that lose nothing change neither texts nor calls, on every server",
    [anyServer, harmless, lineEnd, cuts, ending],
    ([name, picked, eol, places, ending]) =>
      Effect.gen(function* () {
        const server = named(name)
        const frames = Object.entries(changes).reduce(
          (before, [name, change]) =>
            picked.reduce((under, one) => (one.name === name ? change(one.place)(under) : under), before),
          framesOf(server)
        )
        // The mark belongs at the start, whatever was put before it since.
        const text = frames.join("").replaceAll("\n", eol)
        const bytes = bytesOf(text.includes("\ufeff") ? `\ufeff${text.replaceAll("\ufeff", "")}` : text)
        const reading = read(server, { pieces: split(bytes, places), ending })
        const parts = yield* ending === "silence" ? patiently(reading) : reading
        assert.deepStrictEqual(Either.isRight(parts) ? readOf(parts.right) : parts.left, yield* whole(server))
      }),
    { fastCheck: { numRuns: cases(120) } }
  )

  it.effect.prop(
    "MD-128: an answer that was cut is whole, or an error in a few words; no text is lost and no call doubled",
    [anyServer, fc.nat(9_999), cuts, fc.constantFrom("close" as const, "break" as const)],
    ([name, place, places, ending]) =>
      Effect.gen(function* () {
        const server = named(name)
        const all = bytesOf(framesOf(server).join(""))
        const bytes = all.subarray(0, Math.floor((place * all.length) / 10_000))
        const wanted = yield* whole(server)
        const outcome = yield* read(server, { pieces: split(bytes, places), ending })
        const failure = Either.isLeft(outcome) ? outcome.left : readOf(outcome.right).error
        if (failure === undefined && Either.isRight(outcome))
          return assert.deepStrictEqual(readOf(outcome.right), wanted)
        const { message, retryable } = classifyError(failure)
        assert.isAtMost(message.length, 1_000)
        assert.notMatch(message, /[{[]"/)
        // Less than a line may be anything.
        assert.isTrue(retryable || !bytes.includes(10), message)
      }),
    { fastCheck: { numRuns: cases(120) } }
  )
})
