/** The clauses of specs/http.md that a client can see, each with its test. A test fails by throwing. */
import { Schema } from "effect"
import { allFrames, answer, type Frame, frames, request, type Target } from "./Target.ts"

/** One clause. */
export interface Law {
  readonly clause: string
  readonly says: string
  readonly test: (target: Target) => Promise<void>
}

const Created = Schema.Struct({ id: Schema.String })
const Numbered = Schema.Struct({ seq: Schema.Int })
const Failure = Schema.Struct({ _tag: Schema.String, message: Schema.String })
const End = Schema.Struct({ reason: Schema.String, cursor: Schema.optional(Schema.String) })
const Head = Schema.Struct({ cursor: Schema.String })

const expect = (holds: boolean, otherwise: string): void => {
  if (!holds) throw new Error(otherwise)
}

const same = (found: unknown, expected: unknown, what: string): void =>
  expect(
    JSON.stringify(found) === JSON.stringify(expected),
    `${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`
  )

const say = (target: Target, sessionID: string, text: string, key?: string): Promise<{ readonly id: string }> =>
  answer(target, Created, `/sessions/${sessionID}/prompts`, {
    method: "POST",
    body: JSON.stringify({ prompt: { text }, resume: false }),
    ...(key === undefined ? {} : { headers: { "idempotency-key": key } })
  })

/** A new session with so many prompts that nothing runs. */
const session = async (target: Target, prompts: number): Promise<string> => {
  const body = JSON.stringify({ location: { directory: "/" } })
  const { id } = await answer(target, Created, "/sessions", { method: "POST", body })
  for (let n = 1; n <= prompts; n++) await say(target, id, `prompt ${n}`)
  return id
}

const events = (of: ReadonlyArray<Frame>): ReadonlyArray<Frame> => of.filter(({ type }) => type === "event")
const seqOf = ({ data }: Frame): number => Schema.decodeUnknownSync(Numbered)(data).seq
const replay = (target: Target, id: string, after = "-1", headers: Record<string, string> = {}) =>
  allFrames(target, `/sessions/${id}/events?follow=0&after=${encodeURIComponent(after)}`, headers)

const refusal = async (target: Target, path: string, status: number, init?: RequestInit) => {
  const response = await request(target, path, init)
  same(response.status, status, `status of ${path}`)
  return Schema.decodeUnknownSync(Schema.parseJson(Failure))(await response.text())._tag
}

/** Every clause, in the order in which they are tested. */
export const laws: ReadonlyArray<Law> = [
  {
    clause: "HT-20",
    says: "without a token, or with a wrong one, nothing is answered",
    test: async (target) => {
      for (const authorization of ["", "Bearer wrong"]) {
        same(await refusal(target, "/sessions", 401, { headers: { authorization } }), "Unauthorized", "code")
      }
    }
  },
  {
    clause: "HT-3",
    says: "an invalid id is refused as such, not as that of no session",
    test: async (target) => {
      for (const path of ["/sessions/nope", "/sessions/ses_nope%20/events", `/sessions/ses_${"x".repeat(97)}/head`]) {
        same(await refusal(target, path, 400), "HttpApiDecodeError", `code of ${path}`)
      }
    }
  },
  {
    clause: "HT-10",
    says: "an error has its status, its code and a message",
    test: async (target) => {
      same(await refusal(target, "/sessions/ses_conformance_none", 404), "SessionNotFound", "code")
    }
  },
  {
    clause: "HT-12",
    says: "a repeated idempotency key admits one prompt",
    test: async (target) => {
      const id = await session(target, 0)
      // The server may know the keys of an earlier run of the suite.
      const key = crypto.randomUUID()
      same(await say(target, id, "hi", key), await say(target, id, "hi", key), "receipt of the repetition")
      const body = JSON.stringify({ prompt: { text: "other" }, resume: false })
      const again = { method: "POST", body, headers: { "idempotency-key": key } }
      same(await refusal(target, `/sessions/${id}/prompts`, 409, again), "PromptConflictError", "code")
    }
  },
  {
    clause: "HT-40",
    says: "a replay has every event once, in order; from any cursor on, exactly the rest",
    test: async (target) => {
      const id = await session(target, 6)
      const whole = events(await replay(target, id))
      same(
        whole.map(seqOf),
        whole.map((_, index) => index),
        "sequence numbers"
      )
      expect(whole.length >= 7, `a session with 6 prompts has ${whole.length} events`)
      for (const [index, { cursor }] of whole.entries()) {
        expect(cursor !== undefined, `event ${index} has no id`)
        for (const rest of [
          await replay(target, id, cursor),
          // `after` counts before the header.
          await replay(target, id, cursor, { "last-event-id": whole[0]?.cursor ?? "" }),
          await allFrames(target, `/sessions/${id}/events?follow=0`, { "last-event-id": cursor ?? "" })
        ]) {
          same(events(rest), whole.slice(index + 1), `events after cursor ${cursor}`)
        }
      }
    }
  },
  {
    clause: "HT-42",
    says: "a cursor of another database, and a text that is none, are refused",
    test: async (target) => {
      const id = await session(target, 1)
      for (const after of ["d1.00000000.1.0", "nonsense", "d9.x"]) {
        same(await refusal(target, `/sessions/${id}/events?after=${after}`, 400), "ForeignCursor", `code for ${after}`)
      }
      same(await refusal(target, `/sessions/${id}/events?after=1000000`, 400), "CursorAhead", "code")
      const { cursor } = await answer(target, Head, "/head")
      const ofFeed = `/sessions/${id}/events?after=${encodeURIComponent(cursor)}`
      same(await refusal(target, ofFeed, 400), "ForeignCursor", "code for a cursor of the feed")
    }
  },
  {
    clause: "HT-44",
    says: "lines of JSON have the same frames as server-sent events",
    test: async (target) => {
      const id = await session(target, 3)
      const path = `/sessions/${id}/events?follow=0`
      const typeOf = ({ headers }: Response) => headers.get("content-type")?.split(";")[0]
      const response = await request(target, path, { headers: { accept: "application/x-ndjson" } })
      same(typeOf(response), "application/x-ndjson", "type of lines")
      const text = await response.text()
      same(typeOf(await request(target, path)), "text/event-stream", "type of server-sent events")
      const Line = Schema.parseJson(
        Schema.Struct({
          frame: Schema.String,
          cursor: Schema.optional(Schema.String),
          event: Schema.optional(Schema.Unknown)
        })
      )
      const lines = text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => Schema.decodeUnknownSync(Line)(line))
      const stream = await replay(target, id)
      same(
        lines.map(({ frame }) => frame),
        stream.map(({ type }) => type),
        "types of frames"
      )
      same(
        lines.flatMap(({ cursor, event, frame }) => (frame === "event" ? [[cursor, event]] : [])),
        events(stream).map(({ cursor, data }) => [cursor, data]),
        "events"
      )
    }
  },
  {
    clause: "HT-45",
    says: "one seam stands where stored events end; without following, an end with its cursor follows",
    test: async (target) => {
      const id = await session(target, 2)
      const found = await replay(target, id)
      same(
        found.slice(-2).map(({ type }) => type),
        ["replay.complete", "end"],
        "last frames"
      )
      same(found.filter(({ type }) => type === "replay.complete").length, 1, "number of seams")
      const { cursor = "", reason } = Schema.decodeUnknownSync(End)(found.at(-1)?.data)
      same(reason, "complete", "reason of the end")
      await say(target, id, "later")
      same(events(await replay(target, id, cursor)).length, 1, "events after the cursor of the end")
    }
  },
  {
    clause: "HT-40",
    says: "a stream follows: new events come after the seam, and a reader that left goes on without gap or repetition",
    test: async (target) => {
      const id = await session(target, 2)
      const seen: Array<number> = []
      let [cursor, followed] = ["-1", 0]
      for (let connection = 0; connection < 4; connection++) {
        let isFollowing = false
        for await (const frame of frames(target, `/sessions/${id}/events?after=${encodeURIComponent(cursor)}`)) {
          if (frame.type === "replay.complete") {
            isFollowing = true
            await say(target, id, `during connection ${connection}`)
          }
          if (frame.type !== "event") continue
          seen.push(seqOf(frame))
          cursor = frame.cursor ?? cursor
          if (isFollowing) followed++
          // The first connection is left within the replay.
          if (isFollowing || seen.length === 2) break
        }
        await say(target, id, `between connections ${connection}`)
      }
      same(
        seen,
        seen.map((_, index) => index),
        "sequence numbers over connections"
      )
      same(followed, 3, "connections that had a new event behind the seam")
    }
  },
  {
    clause: "HT-53",
    says: "the head is the cursor of the latest event: nothing is replayed after it",
    test: async (target) => {
      const id = await session(target, 2)
      const { cursor } = await answer(target, Head, `/sessions/${id}/head`)
      same(events(await replay(target, id, cursor)).length, 0, "events after the head")
      await say(target, id, "later")
      same(events(await replay(target, id, cursor)).length, 1, "events after the head and one more")
    }
  },
  {
    clause: "HT-54",
    says: "with types, only their events are sent, and the cursor passes the others",
    test: async (target) => {
      const id = await session(target, 2)
      const found = await allFrames(target, `/sessions/${id}/events?follow=0&type=session.created`)
      same(events(found).map(seqOf), [0], "sequence numbers")
      const { cursor } = await answer(target, Head, `/sessions/${id}/head`)
      same(Schema.decodeUnknownSync(End)(found.at(-1)?.data).cursor, cursor, "cursor of the end")
    }
  },
  {
    clause: "HT-51",
    says: "the feed has the events of all sessions in one order, and goes on from its cursors",
    test: async (target) => {
      const { cursor: start } = await answer(target, Head, "/head")
      const ids = [await session(target, 1), await session(target, 1)]
      const feed = (after: string) => allFrames(target, `/events?follow=0&after=${encodeURIComponent(after)}`)
      const whole = events(await feed(start))
      const Placed = Schema.Struct({ position: Schema.Int, sessionID: Schema.String })
      const placed = whole.map(({ data }) => Schema.decodeUnknownSync(Placed)(data))
      const positions = placed.map(({ position }) => position)
      same(
        positions,
        [...positions].sort((a, b) => a - b),
        "positions"
      )
      for (const id of ids)
        expect(
          placed.some(({ sessionID }) => sessionID === id),
          `${id} is not in the feed`
        )
      for (const [index, { cursor }] of whole.entries()) {
        const rest = events(await feed(cursor ?? "")).slice(0, whole.length - index - 1)
        same(rest, whole.slice(index + 1), `events after cursor ${cursor}`)
      }
    }
  }
]
