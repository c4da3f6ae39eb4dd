/**
 * The clauses about streams of events: what is replayed, how a session is followed, and the events of all sessions.
 */
import { Schema } from "effect"
import {
  admitted,
  after,
  allFrames,
  answer,
  counts,
  Cursored,
  End,
  eventOf,
  events,
  expect,
  type Frame,
  frames,
  framesUntil,
  type Law,
  refuses,
  replay,
  request,
  same,
  say,
  seqOf,
  session,
  type Target,
  texts
} from "./Kit.ts"

// Stored events: each once, in order, from any cursor on.

const Head = Schema.Struct({ cursor: Schema.String, seq: Schema.Int })
const Expired = Schema.Struct({ floorCursor: Schema.String, snapshot: Schema.String })
const HistoryPage = Schema.Struct({
  events: Schema.Array(Schema.Unknown),
  cursor: Schema.String,
  hasMore: Schema.Boolean
})
const Line = Schema.parseJson(
  Schema.Struct({
    frame: Schema.String,
    cursor: Schema.optional(Schema.String),
    event: Schema.optional(Schema.Unknown),
    reason: Schema.optional(Schema.String)
  })
)

const typesOf = (frames: ReadonlyArray<Frame>) => frames.map(({ type }) => type)
const headOf = (target: Target, id: string) => answer(target, Head, `/sessions/${id}/head`)
const endOf = (frames: ReadonlyArray<Frame>) => Schema.decodeUnknownSync(End)(frames.at(-1)?.data)

export const replayLaws: ReadonlyArray<Law> = [
  {
    clause: "HT-40",
    says: "a replay has every event of the session once, in order, the creation first",
    test: async (target) => {
      const [id, other] = [await session(target, 6), await session(target, 2)]
      const whole = events(await replay(target, id)).map(eventOf)
      counts(whole.map(({ seq }) => seq))
      same(whole.length, 7, "events of a session with 6 prompts")
      same(whole[0]?.type, "session.created", "type of the first event")
      for (const { position, seq, sessionID } of whole) {
        same(sessionID, id, `session of event ${seq}`)
        expect(seq === 0 || position > (whole[seq - 1]?.position ?? 0), `the position of event ${seq} does not grow`)
      }
      same(new Set(whole.map((event) => event.id)).size, whole.length, "different ids of events")
      same(events(await replay(target, other)).length, 3, "events of another session")
      same(
        admitted(await replay(target, id)).map((data) => JSON.stringify(data).includes("\u{1F4D3}")),
        Array.from({ length: 6 }, () => true),
        "prompts with their texts"
      )
    }
  },
  {
    clause: "HT-40",
    says: "from any cursor on a replay has exactly the rest, by `after` before `Last-Event-ID`, each time the same",
    test: async (target) => {
      const id = await session(target, 5)
      const whole = events(await replay(target, id))
      same(new Set(whole.map(({ cursor }) => cursor)).size, 6, "different cursors of events")
      for (const [index, { cursor }] of whole.entries()) {
        expect(cursor !== undefined && cursor !== "", `event ${index} has no id`)
        for (const rest of [
          await replay(target, id, after(cursor)),
          await replay(target, id, after(cursor), { "last-event-id": whole[0]?.cursor ?? "" }),
          await replay(target, id, "", { "last-event-id": cursor ?? "" })
        ]) {
          same(events(rest), whole.slice(index + 1), `events after cursor ${cursor}`)
        }
      }
    }
  },
  {
    clause: "HT-41",
    says: "a sequence number is a cursor too, and `incarnation` says of which life of the session",
    test: async (target) => {
      const id = await session(target, 3)
      const whole = events(await replay(target, id))
      for (let seq = -1; seq < 4; seq++)
        same(events(await replay(target, id, after(seq))), whole.slice(seq + 1), `events after ${seq}`)
      await refuses(target, `/sessions/${id}/events?follow=0&after=1&incarnation=999`, 404, "SessionNotFound")
    }
  },
  {
    clause: "HT-42",
    says: "a cursor of another database or kind, a text that is none, and one ahead of the log are refused",
    test: async (target) => {
      const id = await session(target, 1)
      const { cursor } = await headOf(target, id)
      const { cursor: ofFeed } = await answer(target, Cursored, "/head")
      for (const path of [`/sessions/${id}/events?follow=0`, `/sessions/${id}/history?limit=1`]) {
        for (const foreign of ["d1.00000000.1.0", "nonsense", "d9.x", "1e3", ofFeed])
          await refuses(target, path + after(foreign), 400, "ForeignCursor")
        await refuses(target, path + after(1_000_000), 400, "CursorAhead")
      }
      await refuses(target, `/sessions/${id}/events?follow=0`, 400, "ForeignCursor", {
        headers: { "last-event-id": "nonsense" }
      })
      await refuses(target, `/events?follow=0${after(cursor)}`, 400, "ForeignCursor")
    }
  },
  {
    clause: "HT-43",
    says: "a cursor below the floor is refused, with the floor's cursor and the path of a snapshot to go on from",
    test: async (target) => {
      const id = await session(target, 2)
      const path = `/sessions/${id}/events?follow=0&after=-1000`
      const { fields } = await refuses(target, path, 410, "CursorExpired")
      const { floorCursor, snapshot } = Schema.decodeUnknownSync(Expired)(fields)
      counts(events(await replay(target, id, after(floorCursor))).map(seqOf))
      const { cursor } = await answer(target, Cursored, snapshot)
      same(events(await replay(target, id, after(cursor))).length, 3, "events after the snapshot")
    }
  },
  {
    clause: "HT-44",
    says: "lines of JSON have the same frames as server-sent events",
    test: async (target) => {
      const id = await session(target, 3)
      const path = `/sessions/${id}/events?follow=0`
      const response = await request(target, path, { headers: { accept: "application/x-ndjson" } })
      same(response.headers.get("content-type")?.split(";")[0], "application/x-ndjson", "type of lines")
      const lines = (await response.text())
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => Schema.decodeUnknownSync(Line)(line))
      const stream = await replay(target, id)
      same(
        lines.map(({ frame }) => frame),
        typesOf(stream),
        "types of frames"
      )
      same(
        lines.flatMap(({ cursor, event, frame }) => (frame === "event" ? [[cursor, event]] : [])),
        events(stream).map(({ cursor, data }) => [cursor, data]),
        "events"
      )
      same(lines.at(-1)?.cursor, endOf(stream).cursor, "cursor of the end")
    }
  },
  {
    clause: "HT-45",
    says: "one seam with its cursor stands where stored events end; then, without following, an end with its cursor",
    test: async (target) => {
      const id = await session(target, 2)
      const { cursor: head } = await headOf(target, id)
      for (const found of [await replay(target, id), await replay(target, id, after(head))]) {
        const before = found.length - 2
        same(typesOf(found), [...Array.from({ length: before }, () => "event"), "replay.complete", "end"], "frames")
        same(Schema.decodeUnknownSync(Cursored)(found.at(-2)?.data).cursor, head, "cursor of the seam")
        same(endOf(found), { reason: "complete", cursor: head }, "end")
      }
      await say(target, id, "later")
      same(events(await replay(target, id, after(head))).map(seqOf), [3], "events after the cursor of the end")
    }
  },
  {
    clause: "HT-53",
    says: "the head is the cursor and the number of the latest event: nothing is replayed after it",
    test: async (target) => {
      const id = await session(target, 2)
      const { cursor, seq } = await headOf(target, id)
      same(seq, 2, "number of the latest event")
      same(events(await replay(target, id, after(cursor))).length, 0, "events after the head")
      await say(target, id, "later")
      same(events(await replay(target, id, after(cursor))).map(seqOf), [3], "events after the head and one more")
      same((await headOf(target, id)).seq, 3, "number of the latest event and one more")
    }
  },
  {
    clause: "HT-54",
    says: "with types, only their events are sent, and the cursors of seam and end pass the others",
    test: async (target) => {
      const id = await session(target, 2)
      const { cursor } = await headOf(target, id)
      for (const [types, seqs] of [
        ["session.created", [0]],
        ["session.next.prompt.admitted", [1, 2]],
        ["session.created,session.next.prompt.admitted", [0, 1, 2]],
        ["session.next.renamed", []]
      ] as const) {
        const found = await replay(target, id, `&type=${types}`)
        same(events(found).map(seqOf), seqs, `sequence numbers of ${types}`)
        same(endOf(found).cursor, cursor, "cursor of the end")
      }
    }
  },
  {
    clause: "HT-1",
    says: "the pages of a history have the events of the replay, and the cursor of each continues it",
    test: async (target) => {
      const id = await session(target, 5)
      const whole = events(await replay(target, id))
      const found: Array<unknown> = []
      let cursor = whole[0]?.cursor
      for (let pages = 0; pages < 10; pages++) {
        const page = await answer(target, HistoryPage, `/sessions/${id}/history?limit=2${after(cursor)}`)
        expect(page.events.length <= 2, `a page of 2 has ${page.events.length} events`)
        found.push(...page.events)
        cursor = page.cursor
        if (!page.hasMore) break
      }
      same(
        found,
        whole.slice(1).map(({ data }) => data),
        "events of the pages"
      )
      same(
        events(await allFrames(target, `/sessions/${id}/events?follow=0${after(cursor)}`)).length,
        0,
        "events after them"
      )
    }
  }
]

// New events: behind the seam, each once, for every reader, over connections that end.

const isEvent = ({ type }: Frame): boolean => type === "event"

/** Follows until the event with this number has come. */
const until = (target: Target, id: string, last: number, query = "", headers: Record<string, string> = {}) =>
  framesUntil((frame) => isEvent(frame) && seqOf(frame) >= last, target, `/sessions/${id}/events?${query}`, headers)

export const followLaws: ReadonlyArray<Law> = [
  {
    clause: "HT-40",
    says: "a stream follows: new events come after the seam, and a reader that left goes on without gap or repetition",
    test: async (target) => {
      const id = await session(target, 2)
      const seen: Array<number> = []
      let [cursor, followed] = ["-1", 0]
      for (let connection = 0; connection < 4; connection++) {
        let isFollowing = false
        for await (const frame of frames(target, `/sessions/${id}/events?${after(cursor)}`)) {
          expect(frame.type !== "end", `the stream that follows ended: ${JSON.stringify(frame.data)}`)
          if (frame.type === "replay.complete") {
            expect(!isFollowing, "a second seam came")
            isFollowing = true
            await say(target, id, `during connection ${connection}`)
          }
          if (!isEvent(frame)) continue
          seen.push(seqOf(frame))
          cursor = frame.cursor ?? cursor
          if (isFollowing) followed++
          // The first connection is left within the replay.
          if (isFollowing || seen.length === 2) break
        }
        await say(target, id, `between connections ${connection}`)
      }
      counts(seen)
      same(followed, 3, "connections that had a new event behind the seam")
    }
  },
  {
    clause: "HT-40",
    says: "events that are stored while a reader replays or follows come once, in order, one by one",
    test: async (target) => {
      const id = await session(target, 10)
      const [found] = await Promise.all([
        until(target, id, 30),
        Promise.all(Array.from({ length: 20 }, (_, index) => say(target, id, `meanwhile ${index}`)))
      ])
      counts(events(found).map(seqOf))
      same(found.filter(({ type }) => type === "replay.complete").length, 1, "number of seams")
      const seqs: Array<number> = []
      for await (const frame of frames(target, `/sessions/${id}/events?${after(30)}`)) {
        if (isEvent(frame)) seqs.push(seqOf(frame))
        if (seqs.length === 5) break
        // Each comes before the next one is stored.
        await say(target, id, `then ${seqs.length}`)
      }
      counts(seqs, 31)
    }
  },
  {
    clause: "HT-40",
    says: "every reader of a session has the same frames, with the same cursors, and none of another session",
    test: async (target) => {
      const [id, other] = [await session(target, 3), await session(target, 3)]
      const { cursor } = (await until(target, id, 1)).at(-1) ?? {}
      const saying = async () => {
        for (const text of ["one", "two"]) {
          await say(target, other, `elsewhere ${text}`)
          await say(target, id, text)
        }
      }
      const reading = Promise.all([
        until(target, id, 5),
        until(target, id, 5, after(cursor)),
        until(target, id, 5, "", { "last-event-id": cursor ?? "" }),
        until(target, id, 5, "type=session.next.prompt.admitted")
      ])
      const [[first, ...others]] = await Promise.all([reading, saying()])
      const [whole, rest] = [events(first), others.map(events)]
      counts(whole.map(seqOf))
      for (const frame of whole) same(eventOf(frame).sessionID, id, "session of an event")
      for (const found of rest) same(found, whole.slice(-found.length), "events of another reader")
      same(
        rest.map(({ length }) => length),
        [4, 4, 5],
        "events of the readers"
      )
    }
  },
  {
    clause: "HT-47",
    says: "a comment comes every 15 seconds on a stream without events",
    slow: true,
    test: async (target) => {
      const id = await session(target, 1)
      let [isPastSeam, began] = [false, Date.now()]
      for await (const text of texts(target, `/sessions/${id}/events`)) {
        if (isPastSeam && /^:/m.test(text)) break
        if (text.includes("replay.complete")) [isPastSeam, began] = [true, Date.now()]
      }
      const seconds = Math.round((Date.now() - began) / 1_000)
      expect(isPastSeam && seconds <= 20, `the first comment came after ${seconds} seconds`)
    }
  }
]

// The events of all sessions, in one order.

const feed = (target: Target, cursor: string | undefined, query = "") =>
  allFrames(target, `/events?follow=0${query}${after(cursor)}`)
const head = (target: Target) => answer(target, Cursored, "/head")

/** Positions grow. */
const ascends = (found: ReadonlyArray<ReturnType<typeof eventOf>>): void => {
  const positions = found.map(({ position }) => position)
  same(
    positions,
    [...new Set(positions)].sort((a, b) => a - b),
    "positions"
  )
}

export const feedLaws: ReadonlyArray<Law> = [
  {
    clause: "HT-51",
    says: "the feed has every event of all sessions once, in one order, and goes on from its cursors",
    test: async (target) => {
      const { cursor: start } = await head(target)
      const ids = [await session(target, 1), await session(target, 1)]
      for (const id of ids) await say(target, id, "again")
      const whole = events(await feed(target, start))
      const found = whole.map(eventOf)
      ascends(found)
      for (const id of ids) {
        const seqs = found.flatMap(({ seq, sessionID }) => (sessionID === id ? [seq] : []))
        same(seqs, [0, 1, 2], `events of ${id}`)
      }
      for (const [index, { cursor }] of whole.entries()) {
        expect(cursor !== undefined && cursor !== "", `event ${index} of the feed has no id`)
        const rest = events(await feed(target, cursor)).slice(0, whole.length - index - 1)
        same(rest, whole.slice(index + 1), `events after cursor ${cursor}`)
      }
    }
  },
  {
    clause: "HT-51",
    says: "the feed follows, with one seam, and with types sends only their events",
    test: async (target) => {
      const { cursor: start } = await head(target)
      const id = await session(target, 1)
      const mine: Array<number> = []
      let seams = 0
      for await (const frame of frames(target, `/events?${after(start)}`)) {
        if (frame.type === "replay.complete") {
          seams++
          await say(target, id, "while it follows")
        }
        if (frame.type !== "event") continue
        const { seq, sessionID } = eventOf(frame)
        if (sessionID === id) mine.push(seq)
        if (seq >= 2 && sessionID === id) break
      }
      same([mine, seams], [[0, 1, 2], 1], "events of the session, and seams")
      const created = events(await feed(target, start, "&type=session.created")).map(eventOf)
      expect(
        created.every(({ type }) => type === "session.created"),
        "the feed has events of other types"
      )
      expect(
        created.some(({ sessionID }) => sessionID === id),
        "the feed lacks an event of the type"
      )
      const seam = await framesUntil(({ type }) => type === "replay.complete", target, `/events?${after(start)}`)
      const { cursor } = Schema.decodeUnknownSync(Cursored)(seam.at(-1)?.data)
      same(
        events(await feed(target, cursor)).filter((frame) => eventOf(frame).sessionID === id),
        [],
        "events after the seam"
      )
    }
  },
  {
    clause: "HT-53",
    says: "the head of the feed is the cursor of the latest event of all sessions",
    test: async (target) => {
      const { cursor } = await head(target)
      const id = await session(target, 1)
      const own = events(await feed(target, cursor)).map(eventOf)
      same(
        own.flatMap(({ seq, sessionID }) => (sessionID === id ? [seq] : [])),
        [0, 1],
        "events after the head"
      )
      const { cursor: later } = await head(target)
      const rest = events(await feed(target, later)).map(eventOf)
      same(
        rest.filter(({ sessionID }) => sessionID === id),
        [],
        "events of the session after the later head"
      )
    }
  },
  {
    clause: "HT-42",
    says: "a cursor that the feed did not give is refused there",
    test: async (target) => {
      const id = await session(target, 1)
      const { cursor } = await answer(target, Cursored, `/sessions/${id}/head`)
      for (const foreign of ["d1.00000000.0", "nonsense", cursor])
        await refuses(target, `/events?follow=0${after(foreign)}`, 400, "ForeignCursor")
    }
  }
]
