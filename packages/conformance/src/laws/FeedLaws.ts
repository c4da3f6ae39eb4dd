/** The events of all sessions, in one order. */
import { Schema } from "effect"
import { after, Cursored, eventOf, events, expect, type Law, refuses, same, say, session } from "../Kit.ts"
import { allFrames, answer, frames, framesUntil, type Target } from "../Target.ts"

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
