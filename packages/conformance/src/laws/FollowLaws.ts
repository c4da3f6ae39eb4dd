/** New events: behind the seam, each once, for every reader, over connections that end. */
import { after, counts, eventOf, events, expect, type Law, same, say, seqOf, session } from "../Kit.ts"
import { type Frame, frames, framesUntil, type Target, texts } from "../Target.ts"

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
