/**
 * The inspector's reader of events. Method: a TCP proxy between reader and server cuts the first connections after some bytes;
 * the reader's pauses end at once.
 */
import { connect, createServer, type Socket } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { Frame } from "../../packages/api/src/wire/EventFrames.ts"
import { Api } from "../../packages/inspector/src/page/net/Api.ts"
import { follow, type FollowState, linesOf } from "../../packages/inspector/src/page/net/Follow.ts"
import * as Rude from "../client/support/Rude.ts"
import * as ServedApi from "../server/http/support/ServedApi.ts"
import * as Sample from "./support/Sample.ts"

/** A proxy of the server; connection N is cut after the Nth number of bytes. Returns its address. */
const cutting = Effect.fnUntraced(function* (bytes: ReadonlyArray<number>) {
  const { url } = yield* ServedApi.Served
  const open = new Set<Socket>()
  let count = 0
  const server = createServer((client) => {
    let left = bytes[count++] ?? Number.POSITIVE_INFINITY
    const upstream = connect(Number(new URL(url).port), "127.0.0.1")
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on("error", () => undefined).once("close", () => (client.destroy(), upstream.destroy()))
    }
    client.on("data", (part) => upstream.write(part))
    upstream.on("data", (part) => {
      client.write(part.subarray(0, Math.min(left, part.length)))
      left -= part.length
      if (left <= 0) client.end()
    })
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.async<void>((resume) => {
        for (const socket of open) socket.destroy()
        server.close(() => resume(Effect.void))
      })
  )
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    connections: () => count
  }
})

/** Follows until the predicate holds. */
const followed = (base: string, path: string, isDone: (frames: ReadonlyArray<Frame>, state: FollowState) => boolean) =>
  Effect.gen(function* () {
    const [frames, states]: [Array<Frame>, Array<FollowState>] = [[], []]
    const done = yield* Deferred.make<void>()
    const abort = yield* Effect.acquireRelease(
      Effect.sync(() => new AbortController()),
      (controller) => Effect.sync(() => controller.abort())
    )
    const look = () => {
      if (isDone(frames, states.at(-1) ?? "connecting")) Deferred.unsafeDone(done, Effect.void)
    }
    void follow(new Api(ServedApi.token, base), {
      path,
      signal: abort.signal,
      pause: () => Promise.resolve(),
      frames: (more) => (frames.push(...more), look()),
      state: (state) => (states.push(state), look())
    })
    yield* Deferred.await(done)
    return { frames, states }
  })

const seqs = (frames: ReadonlyArray<Frame>) =>
  frames.flatMap((each) => (each.frame === "event" ? [each.event.seq] : []))

layer(ServedApi.layer(), { excludeTestServices: true })("the reader of events", (it) => {
  it.scoped("IP-5: cut anywhere, it continues at its cursor: each event once, in order", () =>
    Effect.gen(function* () {
      const id = yield* Sample.store("ses_cut", Sample.long("cut", 600))
      const cuts = [0, 90, 400, 900, 1_700, 5_000, 17_001, 40_003, 41]
      const proxy = yield* cutting(cuts)
      const { frames, states } = yield* followed(
        proxy.url,
        `/sessions/${id}/events`,
        (_frames, state) => state === "live"
      )
      const found = seqs(frames)
      assert.deepEqual(
        found,
        Array.from({ length: found.length }, (_, index) => index + (found[0] ?? 0))
      )
      assert.isAtLeast(found.length, 600)
      assert.strictEqual(proxy.connections(), cuts.length + 1)
      assert.strictEqual(states.filter((state) => state === "lost").length, cuts.length)
    })
  )

  it.scoped(
    "IP-5: a replay that is not followed ends, and a refused token or a missing session is not tried again",
    () =>
      Effect.gen(function* () {
        const { url } = yield* ServedApi.Served
        const id = yield* Sample.store("ses_end", Sample.rich("end"))
        const ended = yield* followed(url, `/sessions/${id}/events?follow=0`, (_frames, state) => state === "ended")
        assert.strictEqual(ended.states.filter((state) => state === "connecting").length, 1)
        const missing = yield* followed(url, "/sessions/ses_missing/events", (_frames, state) => state === "removed")
        assert.deepEqual(missing.frames, [])
        const abort = new AbortController()
        const states: Array<FollowState> = []
        yield* Effect.promise(() =>
          follow(new Api("wrong", url), {
            path: `/sessions/${id}/events`,
            signal: abort.signal,
            frames: () => undefined,
            state: (state) => states.push(state)
          })
        )
        assert.deepEqual(states, ["connecting", "refused"])
      })
  )

  it.scoped(
    "IP-19: it goes on at the floor that a refusal names; the same floor again, or without a use for it, ends it",
    () =>
      Effect.gen(function* () {
        const asked: Array<string | null> = []
        const server = yield* Rude.serve((number, response, { url }) => {
          asked.push(new URL(url ?? "", "http://a").searchParams.get("after"))
          Rude.refuses(response, 410, {
            _tag: "CursorExpired",
            floorCursor: number === 0 ? "one" : "two",
            message: "no"
          })
        })
        const reading = (pruned?: () => void) =>
          Effect.promise(async () => {
            const states: Array<FollowState> = []
            await follow(new Api(ServedApi.token, server.url), {
              path: "/events",
              signal: new AbortController().signal,
              frames: () => undefined,
              state: (state) => states.push(state),
              ...(pruned === undefined ? {} : { pruned })
            })
            return states
          })
        let times = 0
        assert.deepEqual(yield* reading(() => times++), ["connecting", "expired"])
        assert.deepEqual([asked, times], [[null, "one", "two"], 2])
        assert.deepEqual(yield* reading(), ["connecting", "expired"])
        assert.lengthOf(asked, 4)
      })
  )

  it("IP-5: a line counts when it is complete", () => {
    assert.deepEqual(linesOf('{"a":1}\n\n{"b":2}\n{"c"'), [['{"a":1}', '{"b":2}'], '{"c"'])
    assert.deepEqual(linesOf(""), [[], ""])
  })
})
