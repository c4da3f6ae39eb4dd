/**
 * The stream of the live page over real HTTP: what is replayed, what follows, where a reader continues, and what one that does
 * not read costs. Method: the log is a file; a second store appends to it as another process does.
 */
import { assert, it } from "@effect/vitest"
import { SqlClient } from "@effect/sql"
import { Effect, Fiber, Stream, Struct, TestClock } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { serverSentEvents, stream as streamOf } from "../../packages/cli/src/watch/ShellFeed.ts"
import * as ShellFeed from "../../packages/cli/src/watch/ShellFeed.ts"
import * as LocalServer from "../../packages/server/src/http/LocalServer.ts"
import { fileLog, memoryLog, temporaryDatabase } from "../support/Database.ts"
import { pruned } from "../support/Pruning.ts"
import { append, closed, create, eventsOf, opened, ran } from "./support/Facts.ts"
import { ask, read, received } from "./support/Http.ts"
import { serving } from "./support/Served.ts"

const [one, two] = [SessionID.make("ses_one"), SessionID.make("ses_two")]

/** The events of a text that are events of shells, as id and command or type. */
const seen = (text: string): ReadonlyArray<string> =>
  received(text)
    .filter(({ event }) => event === undefined)
    .map(({ data, id }) => {
      const event = JSON.parse(data ?? "") as { readonly type: string; readonly data: { readonly command?: string } }
      return `${id} ${event.data.command ?? event.type.replace("session.next.shell.", "")}`
    })

const isCaughtUp = (text: string) => received(text).at(-1)?.event === "caught-up"

it.scopedLive("SL-221: the stream replays the shells of all sessions, then follows what other processes append", () =>
  Effect.gen(function* () {
    const filename = yield* temporaryDatabase
    const elsewhere = Store.layer({ filename })
    yield* Effect.provide(Effect.all([create(one), create(two), append(one, opened(), ran("a"))]), elsewhere)
    yield* serving(({ at }) =>
      Effect.gen(function* () {
        const reader = yield* read(at("/events"))
        assert.strictEqual(reader.headers["content-type"], "text/event-stream; charset=utf-8")
        assert.deepStrictEqual(seen(yield* reader.until(isCaughtUp)), ["5 opened", "6 a"])
        yield* Effect.provide(append(two, ran("b"), closed()), elsewhere)
        const text = yield* reader.until((text) => text.includes("shell.closed") && isCaughtUp(text))
        assert.deepStrictEqual(seen(text), ["5 opened", "6 a", "7 b", "8 closed"])
        const [first] = received(text)
        const [stored] = (yield* (yield* EventLog).readFeed({ after: 4 })).events
        assert.deepStrictEqual(JSON.parse(first?.data ?? ""), JSON.parse(JSON.stringify(stored)))
      })
    ).pipe(Effect.provide(elsewhere))
  })
)

it.scopedLive("SL-221: a reader that asks for lines gets the same events as frames, and the mark behind them", () =>
  Effect.gen(function* () {
    yield* create(one)
    yield* append(one, opened(), ran("a"), ran("b"))
    yield* serving(({ at }) =>
      Effect.gen(function* () {
        const lines = yield* read(at("/events", { after: 3 }), { headers: { accept: "application/x-ndjson" } })
        assert.strictEqual(lines.headers["content-type"], "application/x-ndjson")
        const text = yield* lines.until((text) => text.includes("replay.complete"))
        const frames = text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]))
        const [stored] = (yield* (yield* EventLog).readFeed({ after: 3 })).events
        assert.deepStrictEqual(frames[0], { frame: "event", cursor: "4", event: JSON.parse(JSON.stringify(stored)) })
        assert.deepStrictEqual(frames.at(-1), { frame: "replay.complete", cursor: "5" })
        assert.strictEqual(frames.length, 3)
      })
    )
  }).pipe(Effect.provide(fileLog))
)

it.scopedLive("SL-221: a reader continues behind any event, in `after` or in Last-Event-ID, which counts first", () =>
  Effect.gen(function* () {
    yield* create(one)
    yield* append(one, opened(), ...Array.from({ length: 40 }, (_, index) => ran(`command ${index}`)), closed())
    yield* serving(({ at }) =>
      Effect.gen(function* () {
        const textOf = (query: Record<string, number>, headers = {}) =>
          Effect.scoped(Effect.flatMap(read(at("/events", query), { headers }), ({ until }) => until(isCaughtUp)))
        const all = seen(yield* textOf({}))
        assert.strictEqual(all.length, 42)
        for (const [index, line] of all.entries()) {
          const id = Number(line.split(" ", 1)[0])
          assert.deepStrictEqual(seen(yield* textOf({ after: id })), all.slice(index + 1))
          assert.deepStrictEqual(
            seen(yield* textOf({ after: 0 }, { "last-event-id": String(id) })),
            all.slice(index + 1)
          )
        }
      })
    )
  }).pipe(Effect.provide(fileLog))
)

it.scopedLive(
  "SL-221: a reader that connects again after the server was started again misses and repeats nothing",
  () =>
    Effect.gen(function* () {
      yield* create(one)
      yield* append(one, opened(), ran("before"))
      const [port, first] = yield* serving(({ at, port }) =>
        Effect.gen(function* () {
          const reader = yield* read(at("/events"))
          return [port, yield* reader.until(isCaughtUp)] as const
        })
      )
      yield* append(one, ran("while nobody served"))
      const last = received(first).at(-1)?.id ?? ""
      const second = yield* serving(
        ({ at }) =>
          Effect.gen(function* () {
            const reader = yield* read(at("/events"), { headers: { "last-event-id": last } })
            yield* append(one, ran("after"))
            return yield* reader.until((text) => text.includes('"after"') && isCaughtUp(text))
          }),
        { port }
      )
      assert.deepStrictEqual(
        [...seen(first), ...seen(second)],
        ["3 opened", "4 before", "5 while nobody served", "6 after"]
      )
    }).pipe(Effect.provide(fileLog))
)

it.scopedLive(
  "SL-221: of one session, ids are its sequence numbers; pruned events are left out of one and of all",
  () =>
    Effect.gen(function* () {
      yield* create(one)
      yield* create(two)
      yield* append(two, ran("elsewhere"))
      yield* append(one, opened(), ran("first"), closed())
      yield* pruned(one)
      yield* append(one, opened(), ran("second"))
      const text = (feed?: ShellFeed.ShellFeed) =>
        serving(
          ({ at }) => Effect.flatMap(read(at("/events")), ({ until }) => until(isCaughtUp)),
          feed === undefined ? {} : { feed, session: one }
        )
      assert.deepStrictEqual(seen(yield* text(yield* ShellFeed.ofSession(one))), ["5 opened", "6 second"])
      assert.deepStrictEqual(seen(yield* text()), ["5 elsewhere", "9 opened", "10 second"])
    }).pipe(Effect.provide(Store.layer({ filename: ":memory:" })))
)

it.scopedLive(
  "SL-222: a cursor that is no whole number, or ahead of the log, a removed session and a 17th stream are refused",
  () =>
    Effect.gen(function* () {
      yield* create(one)
      yield* append(one, opened())
      yield* serving(({ at }) =>
        Effect.gen(function* () {
          for (const wrong of ["x", "", "1.5", "-2", "1e3", " 1", "+1", "0x1", "99999999999999999", "NaN"]) {
            assert.strictEqual((yield* ask(at("/events", { after: wrong }))).status, 400, wrong)
            const headers = { "last-event-id": wrong }
            if (wrong.trim() === wrong && wrong !== "") {
              assert.strictEqual((yield* ask(at("/events", { after: 1 }), { headers })).status, 400, wrong)
            }
          }
          assert.strictEqual((yield* ask(at("/events", { after: 4 }))).status, 409)
          const readers = yield* Effect.all(Array.from({ length: 16 }, () => read(at("/events"))))
          assert.isTrue(readers.every(({ status }) => status === 200))
          const refused = yield* ask(at("/events"))
          assert.deepStrictEqual([refused.status, refused.headers["retry-after"]], [503, "10"])
        })
      )
      const feed = yield* ShellFeed.ofSession(one)
      yield* serving(
        ({ at }) =>
          Effect.gen(function* () {
            const reader = yield* read(at("/events"))
            yield* reader.until(isCaughtUp)
            yield* (yield* EventLog).remove(one)
            // The stream ends, and the reader that connects again gets the reason.
            yield* reader.ended
            assert.strictEqual((yield* ask(at("/events"))).status, 410)
          }),
        { feed, session: one }
      )
    }).pipe(Effect.provide(fileLog))
)

it.scopedLive("SL-222: a stream that begins at a damaged event gets the reason with status 500", () =>
  Effect.gen(function* () {
    yield* create(one)
    yield* append(one, opened(), ran("damaged"))
    yield* (yield* SqlClient.SqlClient)`UPDATE event SET data = replace(data, 'damaged', 'changed') WHERE position = 4`
    yield* serving(({ at }) =>
      Effect.gen(function* () {
        const { body, status } = yield* ask(at("/events", { after: 3 }))
        assert.deepStrictEqual([status, body.includes("daybook doctor")], [500, true])
      })
    )
  }).pipe(Effect.provide(fileLog))
)

it.scopedLive("SL-222: the place of a stream is free again when its reader has gone", () =>
  Effect.gen(function* () {
    yield* create(one)
    yield* serving(({ at }) =>
      Effect.gen(function* () {
        for (let round = 0; round < 40; round++) {
          const { status } = yield* Effect.scoped(Effect.tap(read(at("/events")), ({ until }) => until(isCaughtUp)))
          assert.strictEqual(status, 200)
        }
      })
    )
  }).pipe(Effect.provide(fileLog))
)

/**
 * Method: a long log in pages of half a megabyte. One reader stops after the first text, another one reads 150 pages: the
 * pages that were read for the first one meanwhile are those that its connection buffers.
 */
it.scopedLive("SL-223: for a reader that does not read, the server reads no more than the connection buffers", () =>
  Effect.gen(function* () {
    const events = eventsOf(Array.from({ length: 8 }, (_, index) => ran(`${index}`, { stdout: "x".repeat(60_000) })))
    // A server that does not wait would read all of them, and no more.
    const mostPages = 160
    const pages = new Map<number, number>()
    const feed = {
      changes: Effect.succeed(Effect.never),
      cursorOf: ({ position }) => position,
      page: (after) =>
        Effect.sync(() => {
          const stream = Math.floor(Math.max(0, after) / 1_000_000)
          const read = (pages.get(stream) ?? 0) + 1
          pages.set(stream, read)
          return {
            events: events.map((event, index) => ({ ...event, position: after + index + 1 })),
            cursor: after + events.length,
            hasMore: read < mostPages
          }
        })
    } satisfies ShellFeed.ShellFeed
    yield* serving(
      ({ at }) =>
        Effect.gen(function* () {
          const slow = yield* read(at("/events", { after: 0 }))
          yield* slow.until((text) => text.length > 0)
          yield* slow.pause
          const quick = yield* read(at("/events", { after: 1_000_000 }))
          yield* quick.until(() => (pages.get(1) ?? 0) >= 150)
          assert.isBelow(pages.get(0) ?? 0, 50)
          // Nothing is lost: it goes on where it was.
          yield* slow.resume
          const ids = received(yield* slow.until(({ length }) => length > 30_000_000)).map(({ id }) => Number(id))
          assert.isAbove(ids.length, 400)
          assert.deepStrictEqual(
            ids,
            Array.from(ids, (_, index) => index + 1)
          )
        }),
      { feed }
    )
  }).pipe(Effect.provide(memoryLog))
)

/** Method: the pages of a long log are counted while other requests are answered. */
it.scopedLive("SL-223: while a stream reads a long log, other requests are answered after a few of its pages", () =>
  Effect.gen(function* () {
    yield* create(one)
    yield* (yield* EventLog).append(one, [
      opened(),
      ...Array.from({ length: 255 }, () => draft("session.next.renamed", { title: "x".repeat(100) }))
    ])
    const all = yield* ShellFeed.ofAll
    let pages = 0
    const page = () => {
      pages++
      return Effect.map(all.page(0), (read) => ({ ...read, events: [], hasMore: pages < 1_200 }))
    }
    yield* serving(
      ({ at }) =>
        Effect.gen(function* () {
          yield* Effect.forkScoped(read(at("/events")))
          for (let round = 0; round < 2; round++) assert.strictEqual((yield* ask(at("/"))).status, 200)
          assert.isBelow(pages, 1_000)
        }),
      { feed: { ...all, page } }
    )
  }).pipe(Effect.provide(fileLog))
)

it.scoped("SL-223: a reader of a quiet log gets a heartbeat every 15 seconds, which moves its cursor", () =>
  Effect.gen(function* () {
    yield* create(one)
    const feed = yield* ShellFeed.ofAll
    const texts: Array<string> = []
    const stream = yield* streamOf(feed, -1, serverSentEvents)
    const fiber = yield* Effect.fork(
      Stream.runForEach(Stream.take(stream, 3), (text) => Effect.sync(() => texts.push(text)))
    )
    yield* TestClock.adjust("14 seconds")
    assert.strictEqual(texts.length, 2)
    yield* TestClock.adjust("1 second")
    yield* Fiber.join(fiber)
    const beat = LocalServer.sseHeartbeat(2)
    assert.deepStrictEqual(texts, [
      LocalServer.sseOpening(1_000),
      LocalServer.sseFrame({ id: 2, event: "caught-up", data: "{}" }),
      beat
    ])
    assert.strictEqual(beat, ": alive\nid: 2\n\n")
  }).pipe(Effect.provide(memoryLog))
)

it("SL-221: frames are joined to texts of at most 64 Ki characters, in order, and a longer frame stays alone", () => {
  const frames = [10, 65_526, 1, 70_000, 5, 6].map((length) => "x".repeat(length))
  const texts = LocalServer.joined(frames)
  assert.strictEqual(texts.join(""), frames.join(""))
  assert.deepStrictEqual(texts.map(Struct.get("length")), [65_536, 1, 70_000, 11])
})
