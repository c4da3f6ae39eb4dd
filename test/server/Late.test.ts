/** Clients that begin to follow in the middle of a text: what was said so far, then the rest, and nothing twice. */
import { it } from "@effect/vitest"
import { Deferred, Effect, Stream } from "effect"
import { assert } from "vitest"
import { callParts, calls, finish, textParts } from "../support/ScriptedModel.ts"
import { connect, deltasOf, fresh, script, textOf, type Frame, type Served } from "./support/Served.ts"

const text = (delta: string) => ({ type: "text-delta" as const, id: "t", delta })
const thought = (delta: string) => ({ type: "reasoning-delta" as const, id: "r", delta })

const thoughtOf = (frames: ReadonlyArray<Frame>): string =>
  frames.map((frame) => (frame["type"] === "reasoning_delta" ? String(frame["text"]) : "")).join("")

/** Frames until one whose text ends so. */
const said = (end: string) => (frame: Frame) => String(frame["text"]).endsWith(end)

/** How a client that comes late begins to follow. */
const ways: Record<string, (start: Frame | undefined) => Record<string, unknown>> = {
  "by resume": () => ({ op: "resume" }),
  "by resume after the start": (start) => ({ op: "resume", after: start?.["event"] }),
  "by the same send": () => ({ op: "send", id: "m1", input: "hi" })
}

const accented = "文字 e\u0301!"
const whole = `before\n\n${accented}😀.`

/** A client that sends and is told of the start. */
const sending = Effect.fnUntraced(function* (served: Served) {
  const sender = yield* connect(served.path)
  yield* sender.ask({ op: "send", id: "m1", input: "hi" })
  const [start] = yield* sender.untilType("start")
  return { sender, start }
})

for (const [way, request] of Object.entries(ways)) {
  it.scopedLive(
    `SO-24, SO-38, SO-85: who follows ${way} in the middle of a text is sent what there is, then the rest`,
    () =>
      Effect.gen(function* () {
        const served = yield* fresh()
        const [inThought, inText] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const until = (gate: Deferred.Deferred<void>) => Stream.execute(Deferred.await(gate))
        yield* script(served, ({ answer }) =>
          Effect.zipRight(
            answer(calls(textParts("a", "before"), callParts("c", "no_such_tool", {}))),
            answer(
              Stream.make({ type: "reasoning-start" as const, id: "r" }, thought("so "), thought("far")).pipe(
                Stream.concat(until(inThought)),
                Stream.concat(Stream.make(thought(" and on"), { type: "reasoning-end" as const, id: "r" })),
                // Half a character is under way.
                Stream.concat(
                  Stream.make({ type: "text-start" as const, id: "t" }, text("文字 "), text("e\u0301!\ud83d"))
                ),
                Stream.concat(until(inText)),
                Stream.concat(Stream.make(text("\ude00"), text("."), { type: "text-end" as const, id: "t" }, finish()))
              )
            )
          )
        )
        const { sender, start } = yield* sending(served)
        yield* sender.until(said("far"))
        const thinking = yield* connect(served.path)
        yield* thinking.ask(request(start))
        const thoughts = yield* thinking.until(said("far"))
        assert.deepStrictEqual([thoughtOf(thoughts), deltasOf(thoughts)], ["so far", "before"])
        yield* Deferred.succeed(inThought, undefined)
        yield* sender.until(said("!"))
        const late = yield* connect(served.path)
        yield* late.ask(request(start))
        const texts = yield* late.until(said("!"))
        assert.strictEqual(deltasOf(texts), `before\n\n${accented}`)
        yield* Deferred.succeed(inText, undefined)
        for (const [client, before] of [
          [thinking, thoughts],
          [late, texts]
        ] as const) {
          const frames = [...before, ...(yield* client.untilType("done"))]
          assert.strictEqual(deltasOf(frames), whole)
          assert.strictEqual(textOf(frames.findLast(({ type }) => type === "message")), whole)
          assert.strictEqual(thoughtOf(frames), "so far and on")
        }
      })
  )
}

it.scopedLive(
  "SO-24: clients that come at any moment of a text, and of one that is too long to keep, get all of it once",
  () =>
    Effect.gen(function* () {
      const served = yield* fresh()
      const pieces = ["one ", "x".repeat(700_000), "two ", "y".repeat(700_000), "end"]
      const gates = new Map<string, Deferred.Deferred<void>>()
      for (const piece of pieces) gates.set(piece, yield* Deferred.make<void>())
      yield* script(served, ({ answer }) =>
        answer(
          Stream.concat(
            Stream.make({ type: "text-start" as const, id: "t" }),
            Stream.concat(
              Stream.flatMap(Stream.fromIterable(pieces), (piece) =>
                Stream.concat(Stream.make(text(piece)), Stream.execute(Deferred.await(gates.get(piece)!)))
              ),
              Stream.make({ type: "text-end" as const, id: "t" }, finish())
            )
          )
        )
      )
      const { sender } = yield* sending(served)
      const clients = []
      for (const piece of pieces) {
        yield* sender.until(said(piece.slice(-1)))
        const client = yield* connect(served.path)
        yield* client.ask({ op: "resume" })
        yield* client.untilType("start")
        clients.push(client)
        yield* Deferred.succeed(gates.get(piece)!, undefined)
      }
      for (const client of clients) assert.strictEqual(deltasOf(yield* client.untilType("done")), pieces.join(""))
    })
)
