/** The text of a run out of deltas and durable texts, in whatever order and with whatever gaps they come. */
import { it } from "@effect/vitest"
import * as fc from "effect/FastCheck"
import { assert, describe } from "vitest"
import { Struct } from "effect"
import { MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import type { LiveEvent, SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import type { OpenText } from "../../packages/log/src/log/EventLog.ts"
import * as Follow from "../../packages/log/src/log/Follow.ts"
import * as RunStream from "../../packages/transcript/src/RunStream.ts"

const sessionID = "ses_a" as SessionEvent["sessionID"]
let seq = 0
const started = (message: string, text: string) =>
  ({
    type: "session.next.text.started",
    seq: ++seq,
    sessionID,
    data: { assistantMessageID: message, textID: text }
  }) as unknown as RunStream.TextEvent
const ended = (message: string, id: string, text: string) =>
  ({
    type: "session.next.text.ended",
    seq: ++seq,
    sessionID,
    data: { assistantMessageID: message, textID: id, text }
  }) as unknown as RunStream.TextEvent
const delta = (message: string, id: string, text: string) =>
  ({
    type: "session.next.text.delta",
    sessionID,
    data: { assistantMessageID: message, textID: id, delta: text }
  }) as unknown as RunStream.TextEvent

interface Reader {
  readonly deltas: Follow.LiveDeltas
  state: RunStream.DeltaState
}

/** A reader of the run that comes while these texts are open. */
const reader = (open: ReadonlyArray<Pick<OpenText, "id" | "said">> = [], state = RunStream.begin()): Reader => ({
  deltas: Follow.makeLiveDeltas(
    sessionID,
    open.map(({ id, said }) => ({ type: "text", id, assistantMessageID: MessageID.make("msg_1"), said }))
  ),
  state
})

const takeOf = (to: Reader, events: ReadonlyArray<SessionEvent | LiveEvent>): string =>
  events.reduce((told, event) => {
    const [next, text] = RunStream.deltaStep(to.state, event as RunStream.TextEvent)
    to.state = next
    return told + text
  }, "")

/** What is told when the reader has read all that is stored. */
const seam = (to: Reader): string => {
  to.deltas.seam()
  return takeOf(to, to.deltas.take())
}

const isDelta = (event: RunStream.TextEvent): event is LiveEvent & RunStream.TextEvent =>
  event.type === "session.next.text.delta"

/** What is told, event by event, live events as the reader hears them. */
const tell = (to: Reader, events: ReadonlyArray<RunStream.TextEvent>): ReadonlyArray<string> =>
  events.map((event) => {
    if (isDelta(event)) to.deltas.heard(event)
    else to.deltas.stored(event)
    return takeOf(to, [...(isDelta(event) ? [] : [event]), ...to.deltas.take()])
  })

/** What a reader that came at the beginning of the run is told. */
const tellAll = (events: ReadonlyArray<RunStream.TextEvent>): ReadonlyArray<string> => {
  const to = reader()
  seam(to)
  return tell(to, events)
}

describe("Deltas", () => {
  it("SO-24: deltas are told as they come, and the end of their text adds what is missing", () => {
    seq = 0
    const told = tellAll([started("m", "t"), delta("m", "t", "He"), delta("m", "t", "l"), ended("m", "t", "Hello")])
    assert.deepStrictEqual(told, ["", "He", "l", "lo"])
  })

  it("SO-24: deltas that are ahead of their text's start are kept for it", () => {
    seq = 0
    const told = tellAll([delta("m", "t", "He"), started("m", "t"), delta("m", "t", "llo"), ended("m", "t", "Hello")])
    assert.deepStrictEqual(told, ["", "He", "llo", ""])
  })

  it("SO-24: of a text that is in the log and has no deltas yet, each delta is told", () => {
    for (const known of [true, false]) {
      seq = 0
      const start = started("m", "t")
      const late = reader([{ id: "t", said: "" }], known ? RunStream.deltaStep(RunStream.begin(), start)[0] : undefined)
      const first = [...tell(late, known ? [] : [start]), seam(late)]
      const told = tell(late, [delta("m", "t", "He"), ended("m", "t", "Hello")])
      assert.strictEqual([...first, ...told].join("|"), known ? "|He|llo" : "||He|llo")
    }
  })

  it("SO-24: of a text under way its beginning is told where it is given, and each delta after it once", () => {
    for (const known of [true, false]) {
      seq = 0
      const start = started("m", "t")
      const late = reader(
        [{ id: "t", said: "He" }],
        known ? RunStream.deltaStep(RunStream.begin(), start)[0] : undefined
      )
      const first = [...tell(late, known ? [] : [start]), seam(late)]
      const told = tell(late, [delta("m", "t", "l"), ended("m", "t", "Hello"), delta("m", "t", "!")])
      assert.deepStrictEqual([...first, ...told], known ? ["He", "l", "lo", ""] : ["", "He", "l", "lo", ""])
    }
  })

  it("SO-24: of a text under way whose beginning is not given, nothing is told before its end", () => {
    for (const known of [true, false]) {
      seq = 0
      const start = started("m", "t")
      const late = reader(
        [{ id: "t", said: undefined }],
        known ? RunStream.deltaStep(RunStream.begin(), start)[0] : undefined
      )
      const first = [...tell(late, known ? [] : [start]), seam(late)]
      const told = tell(late, [delta("m", "t", "lo"), ended("m", "t", "Hello")])
      assert.strictEqual([...first, ...told].join("|"), known ? "||Hello" : "|||Hello")
    }
  })

  it("SO-24: half a character at the end of what was said waits for its other half", () => {
    seq = 0
    const late = reader([{ id: "t", said: "a\ud83d" }])
    tell(late, [started("m", "t")])
    const first = seam(late)
    const told = tell(late, [delta("m", "t", "\ude00"), ended("m", "t", "a😀")])
    assert.deepStrictEqual([first, ...told], ["a", "😀", ""])
  })

  it("SO-25: of two texts under way the later is told after the first", () => {
    seq = 0
    const texts = [
      { id: "a", said: "o" },
      { id: "b", said: "t" }
    ]
    const begun = [started("m", "a"), started("m", "b")]
    const rest = [delta("m", "b", "w"), delta("m", "a", "n"), ended("m", "b", "two"), ended("m", "a", "one")]
    const early = reader(texts)
    const none = tell(early, begun)
    assert.deepStrictEqual([...none, seam(early)], ["", "", "o"])
    assert.strictEqual(["o", ...tell(early, rest)].join(""), "onetwo")
  })

  it("SO-24: deltas that come after the end of their text are dropped", () => {
    seq = 0
    const told = tellAll([started("m", "t"), ended("m", "t", "Hello"), delta("m", "t", "Hello")])
    assert.deepStrictEqual(told, ["", "Hello", ""])
  })

  it("SO-25: texts of one message follow each other, those of two are set apart, and empty ones leave nothing", () => {
    seq = 0
    const told = tellAll([
      started("m", "a"),
      ended("m", "a", "one"),
      started("m", "b"),
      ended("m", "b", "two"),
      started("n", "c"),
      ended("n", "c", ""),
      started("o", "d"),
      ended("o", "d", "three")
    ])
    assert.strictEqual(told.join(""), "onetwo\n\nthree")
  })

  it("SO-25: of two texts at once the later is told after the first", () => {
    seq = 0
    const told = tellAll([
      started("m", "a"),
      started("m", "b"),
      delta("m", "a", "o"),
      delta("m", "b", "t"),
      ended("m", "b", "two"),
      delta("m", "a", "n"),
      ended("m", "a", "one")
    ])
    assert.strictEqual(told.join(""), "onetwo")
    assert.deepStrictEqual(told.slice(2, 5), ["o", "", ""])
  })

  it("SO-24: early deltas beyond a bound are dropped, and their text is told whole at its end", () => {
    seq = 0
    const long = "x".repeat(200_000)
    const told = tellAll([
      delta("m", "t", long),
      delta("m", "t", long),
      delta("m", "t", "y"),
      started("m", "t"),
      delta("m", "t", "z"),
      ended("m", "t", `${long}${long}yz`)
    ])
    assert.deepStrictEqual(told.map(Struct.get("length")), [0, 0, 0, 0, 0, 400_002])
  })

  it("SO-24: nothing is told of what is outside of the run", () => {
    seq = 0
    const outside = reader([], RunStream.initial)
    seam(outside)
    const told = tell(outside, [started("m", "t"), delta("m", "t", "He"), ended("m", "t", "Hello")])
    assert.strictEqual(told.join(""), "")
  })

  const texts = fc.array(
    fc.record({ message: fc.integer({ min: 0, max: 2 }), text: fc.string({ unit: "binary", maxLength: 12 }) }),
    { maxLength: 5 }
  )

  it("FR-7: whatever deltas are late, early or missing, what is told is at each moment a beginning of the whole", () => {
    fc.assert(
      fc.property(texts, fc.infiniteStream(fc.nat()), fc.nat({ max: 12 }), (given, random, listensAfter) => {
        seq = 0
        const pick = (below: number) => (random.next().value ?? 0) % below
        const ordered = [...given].sort((a, b) => a.message - b.message)
        const durable: Array<RunStream.TextEvent> = []
        const underWay: Array<{ readonly id: string; readonly said: undefined }> = []
        const live: Array<{ readonly event: RunStream.TextEvent; readonly after: number }> = []
        for (const [at, { message, text }] of ordered.entries()) {
          const id = `t${at}`
          const cuts = Array.from({ length: text.length }, (_, i) => text[i] ?? "")
          durable.push(started(`m${message}`, id))
          // Of a text that starts before the reader listens, the reader misses the first deltas.
          const missed = seq > listensAfter ? 0 : pick(cuts.length + 1)
          const heard = cuts.slice(missed)
          if (missed > 0) underWay.push({ id, said: undefined })
          // An overflow ends hearing for good.
          const kept = pick(4) === 0 ? heard.slice(0, pick(heard.length + 1)) : heard
          for (const piece of kept) live.push({ event: delta(`m${message}`, id, piece), after: durable.length })
          durable.push(ended(`m${message}`, id, text))
        }
        // Two lanes, each in its own order; live ones may be a little ahead of the log, or any way behind it.
        const merged: Array<RunStream.TextEvent> = []
        let [d, l] = [0, 0]
        while (d < durable.length || l < live.length) {
          const next = live[l]
          const mayLive = next !== undefined && next.after <= d + 1
          if (mayLive && (d === durable.length || pick(2) === 0)) {
            merged.push(next.event)
            l += 1
          } else merged.push(...durable.slice(d, ++d))
        }
        const byMessage = [0, 1, 2].map((message) =>
          ordered.map((text) => (text.message === message ? text.text : "")).join("")
        )
        const whole = byMessage.filter((text) => text !== "").join("\n\n")
        let told = ""
        const to = reader(underWay)
        seam(to)
        for (const piece of tell(to, merged)) {
          told += piece
          assert.isTrue(whole.startsWith(told))
          const last = piece.charCodeAt(piece.length - 1)
          if (last >= 0xd800 && last <= 0xdbff) assert.isFalse(/^[\udc00-\udfff]/.test(whole.slice(told.length)))
        }
        assert.strictEqual(told, whole)
      })
    )
  })
})
