/** Deltas as one reader gets them, however late it takes them. */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { EventID, MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { LiveEvent, SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { makeLiveDeltas } from "../../../packages/log/src/log/Follow.ts"
import type { OpenText } from "../../../packages/log/src/log/EventLog.ts"

const sessionID = SessionID.make("ses_1")
const assistantMessageID = MessageID.make("msg_1")

const delta = (textID: string, text: string): LiveEvent => ({
  type: "session.next.text.delta",
  sessionID,
  data: { assistantMessageID, textID, delta: text }
})

const event = { id: EventID.make("evt_1"), sessionID, seq: 0, position: 1, created: 0, version: 1 }
const started = (textID: string): SessionEvent => ({
  ...event,
  type: "session.next.text.started",
  data: { assistantMessageID, textID }
})
const ended = (textID: string, text: string): SessionEvent => ({
  ...event,
  type: "session.next.text.ended",
  data: { assistantMessageID, textID, text }
})

/** The deltas of a reader that is behind the seam, if texts were open when it came. */
const reading = (open: ReadonlyArray<OpenText> = []) => {
  const deltas = makeLiveDeltas(sessionID, open)
  deltas.seam()
  return deltas
}

const opened = (id: string, said: string | undefined): OpenText => ({ type: "text", id, assistantMessageID, said })

const tokens = { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }

const saidOf = (events: ReadonlyArray<LiveEvent>, textID: string): string =>
  events
    .map((each) => (each.type === "session.next.text.delta" && each.data.textID === textID ? each.data.delta : ""))
    .join("")

it("HT-46: taken deltas are a beginning of their text, behind its start and before its end", () => {
  const texts = fc.array(fc.array(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 6 }), {
    minLength: 1,
    maxLength: 4
  })
  fc.assert(
    fc.property(texts, fc.infiniteStream(fc.nat(3)), fc.nat(6), (texts, choices, known) => {
      const next = () => choices.next().value ?? 0
      // The first text may have begun before the reader came.
      const [first = []] = texts
      const before = first.slice(0, known)
      const deltas = reading(known > 0 ? [opened("0", before.join(""))] : [])
      const live = texts.flatMap((pieces, id) =>
        (id === 0 && known > 0 ? pieces.slice(known) : pieces).map((piece) => delta(String(id), piece))
      )
      const stored = texts.flatMap((pieces, id) => [started(String(id)), ended(String(id), pieces.join(""))])
      const taken = new Map<string, string>()
      const [begun, over] = [new Set(known > 0 ? ["0"] : []), new Set<string>()]
      const take = () => {
        for (const each of deltas.take()) {
          assert.strictEqual(each.type, "session.next.text.delta")
          if (each.type !== "session.next.text.delta") return
          const { textID } = each.data
          assert.isTrue(begun.has(textID) && !over.has(textID))
          taken.set(textID, (taken.get(textID) ?? "") + each.data.delta)
        }
      }
      while (live.length + stored.length > 0) {
        const choice = next()
        if (choice === 0) take()
        else if (choice === 1 || live.length === 0) {
          const each = stored.shift()
          if (each === undefined) take()
          else deltas.stored(each)
          if (each?.type === "session.next.text.started") begun.add(each.data.textID)
          if (each?.type === "session.next.text.ended") over.add(each.data.textID)
        } else {
          const each = live.shift()
          if (each !== undefined) deltas.heard(each)
        }
        if (live.length === 0 && stored.length === 0) take()
      }
      texts.forEach((pieces, id) => assert.isTrue(pieces.join("").startsWith(taken.get(String(id)) ?? "")))
    })
  )
})

it("HT-46: a reader that keeps up gets every delta, and one that is behind gets them joined", () => {
  const deltas = reading()
  deltas.stored(started("a"))
  deltas.heard(delta("a", "one "))
  assert.deepEqual(deltas.take(), [delta("a", "one ")])
  deltas.heard(delta("a", "two "))
  deltas.heard(delta("a", "three"))
  assert.deepEqual(deltas.take(), [delta("a", "two three")])
  assert.deepEqual(deltas.take(), [])
})

it("HT-46: what was said before the reader came is its first delta", () => {
  const deltas = reading([opened("a", "so far")])
  deltas.stored(started("a"))
  assert.strictEqual(saidOf(deltas.take(), "a"), "so far")
  const later = reading([opened("a", "so far")])
  later.heard(delta("a", ", and on"))
  assert.strictEqual(saidOf(later.take(), "a"), "so far, and on")
  const unknown = reading([opened("a", undefined)])
  unknown.heard(delta("a", "end"))
  assert.deepEqual(unknown.take(), [])
})

it("LG-90: a reader gets no delta before the seam, and then all of them, also the texts from before it came", () => {
  const long = "x".repeat(1_000_000)
  const deltas = makeLiveDeltas(sessionID, [opened("a", long)])
  deltas.heard(delta("a", ", and on"))
  deltas.stored(started("b"))
  deltas.heard(delta("b", "new"))
  assert.deepEqual(deltas.take(), [])
  deltas.seam()
  const taken = deltas.take()
  assert.strictEqual(saidOf(taken, "a"), `${long}, and on`)
  assert.strictEqual(saidOf(taken, "b"), "new")
})

it("LG-90: the end of an earlier step does not end a text that was open when the reader came", () => {
  const deltas = makeLiveDeltas(sessionID, [opened("a", "so far")])
  const earlier = { assistantMessageID: MessageID.make("msg_0"), finish: "stop", cost: 0, tokens }
  deltas.stored({ ...event, type: "session.next.step.ended", data: earlier })
  deltas.seam()
  assert.strictEqual(saidOf(deltas.take(), "a"), "so far")
  deltas.stored({ ...event, type: "session.next.step.ended", data: { ...earlier, assistantMessageID } })
  deltas.heard(delta("a", "late"))
  assert.deepEqual(deltas.take(), [])
})

it("HT-46: a text that grows beyond the limit while its reader waits has no more deltas, and others have", () => {
  const deltas = reading()
  for (const id of ["a", "b"]) deltas.stored(started(id))
  for (let n = 0; n < 300; n++) deltas.heard(delta("a", "x".repeat(1024)))
  deltas.heard(delta("b", "still here"))
  const taken = deltas.take()
  assert.strictEqual(saidOf(taken, "a"), "")
  assert.strictEqual(saidOf(taken, "b"), "still here")
  deltas.heard(delta("a", "late"))
  assert.deepEqual(deltas.take(), [])
})
