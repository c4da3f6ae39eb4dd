/** Stored events: each once, in order, from any cursor on. */
import { Schema } from "effect"
import { admitted, after, counts, Cursored, End, eventOf, events, expect, type Law, refuses } from "../Kit.ts"
import { replay, same, say, seqOf, session } from "../Kit.ts"
import { allFrames, answer, type Frame, request, type Target } from "../Target.ts"

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
