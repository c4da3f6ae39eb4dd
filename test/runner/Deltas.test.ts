/** The deltas of an answer: what arrives together is published together, and what is heard is what is stored. */
import { assert, it } from "@effect/vitest"
import type * as Response from "@effect/ai/Response"
import { Chunk, Effect, Stream } from "effect"
import type { LiveEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { runtime, say, scene } from "../support/Harness.ts"
import { finish } from "../support/ScriptedModel.ts"

it.scoped("EX-780: deltas of one text that arrive together are one delta; those of two texts stay apart", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    const heard: Array<LiveEvent> = []
    yield* (yield* EventLog).hear(id, () => (event) => heard.push(event))
    type Part = Response.StreamPartEncoded
    const text = (id: string, delta: string): Part => ({ type: "text-delta", id, delta })
    const chunks: ReadonlyArray<ReadonlyArray<Part>> = [
      [
        { type: "text-start", id: "a" },
        { type: "text-start", id: "b" }
      ],
      [text("a", "Hel"), text("a", "lo"), text("b", "and "), text("a", " you"), text("a", ".")],
      [text("b", "more")],
      [{ type: "text-end", id: "a" }, { type: "text-end", id: "b" }, finish()]
    ]
    yield* model.answer(Stream.fromChunks(...chunks.map((parts) => Chunk.fromIterable(parts))))
    yield* say(id, "Begin.", { resume: false })
    yield* sessions.resume(id)
    assert.deepStrictEqual(
      heard.flatMap((event) => (event.type === "session.next.text.delta" ? [event.data.delta] : [])),
      ["Hello", "and ", " you.", "more"]
    )
    const { items } = yield* sessions.messages({ sessionID: id })
    const answer = items.find(({ type }) => type === "assistant")
    const texts =
      answer?.type === "assistant" ? answer.content.flatMap((part) => (part.type === "text" ? [part.text] : [])) : []
    assert.deepStrictEqual(texts, ["Hello you.", "and more"])
  }).pipe(Effect.provide(runtime()))
)
