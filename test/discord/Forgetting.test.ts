/** What the outbox forgets, and what it keeps. Spec: DI-71 in specs/discord.md. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { sessionOf, snowflakeOf } from "../../packages/discord/src/domain/Names.ts"
import * as Outbox from "../../packages/discord/src/outbox/Outbox.ts"
import { nonceOf } from "../../packages/discord/src/post/Post.ts"
import { temporaryFolder } from "../support/Harness.ts"

const day = 86_400_000
const start = Date.UTC(2026, 0, 1)
/** An id of the hour of a day. */
const idOf = (days: number, hours = 0) => snowflakeOf(start + days * day + hours * 3_600_000)

it.scoped("DI-71: posts of 60 days ago are forgotten, but the last one of a thread, and what is not sent yet", () =>
  Effect.gen(function* () {
    const outbox = yield* Outbox.make({ filename: join(yield* temporaryFolder, "outbox.sqlite") })
    const keyOf = (thread: string, event: string) => ({ sessionID: sessionOf(thread), event, chunk: 0 })
    /** A message of the thread that shows its text, or one that is not sent yet. */
    const post = Effect.fnUntraced(function* (thread: string, event: string, message?: string) {
      const body = { content: event }
      yield* outbox.put(thread, { type: "post", key: keyOf(thread, event), body, target: { type: "begin" } })
      const due = yield* outbox.nextPost(thread)
      if (due !== undefined && message !== undefined) yield* outbox.created(due.id, message, body)
    })
    const isKept = (thread: string, event: string) =>
      Effect.map(outbox.targetOf(nonceOf(keyOf(thread, event))), (target) => target !== undefined)
    const [old, busy, gone] = [idOf(0), idOf(1), idOf(2)]
    for (const thread of [old, busy, gone]) yield* outbox.addPlace(thread, "1", thread)
    yield* post(old, "first", idOf(0, 1))
    yield* post(old, "last", idOf(0, 2))
    yield* post(old, "unsent")
    yield* post(busy, "early", idOf(1, 1))
    yield* post(busy, "late", idOf(80))
    yield* post(gone, "only", idOf(2, 1))
    yield* outbox.closed(gone, "it was deleted")
    yield* outbox.react(busy, idOf(1, 2), "✅")
    yield* outbox.reacted(idOf(1, 2), "✅")
    yield* outbox.react(busy, idOf(1, 3), "👀")
    yield* outbox.forget(idOf(60))
    const kept = yield* Effect.forEach(
      [
        [old, "first"],
        [old, "last"],
        [old, "unsent"],
        [busy, "early"],
        [busy, "late"],
        [gone, "only"]
      ] as const,
      ([thread, event]) => isKept(thread, event)
    )
    assert.deepStrictEqual(kept, [false, true, true, false, true, false])
    assert.deepStrictEqual((yield* outbox.places).map(Struct.get("channel")), [old, busy])
    assert.strictEqual((yield* outbox.nextReaction(busy))?.message, idOf(1, 3))
    // The place behind which a message would be looked for stays known.
    assert.strictEqual(yield* outbox.newest(old), idOf(0, 2))
  })
)
