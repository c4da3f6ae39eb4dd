/** What the inspector makes of events, without a browser. */
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, FastCheck as fc, Struct } from "effect"
import { ActivityID, EventID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { SessionEvent } from "../../packages/log/src/events/SessionEvents.ts"
import { kindOf, passes, shortType, summaryOf } from "../../packages/inspector/src/page/state/EventPages.ts"
import { Epochs, longestText, mostChanges, Story, storyTypes } from "../../packages/inspector/src/page/fold/Story.ts"
import { proseOf } from "../../packages/inspector/src/page/fold/Prose.ts"
import { type Block, changesOf } from "../../packages/inspector/src/page/fold/RequestBlocks.ts"
import {
  agoText,
  costText,
  durationText,
  endOf,
  stateOf,
  tokensText,
  visible
} from "../../packages/inspector/src/page/fold/Words.ts"
import {
  boxAt,
  boxesOf,
  longestSpans,
  mostRows,
  moved,
  scaleOf,
  ticks,
  Timeline,
  timeScale,
  zoomed
} from "../../packages/inspector/src/page/fold/Timeline.ts"
import { parseRoute, hrefOf } from "../../packages/inspector/src/page/state/Route.ts"
import { beginning, long, rich, type Timed } from "./support/Sample.ts"
import { forAll } from "../support/Cases.ts"

/** The drafts as events of one session. */
const eventsOf = (drafts: ReadonlyArray<Timed>): ReadonlyArray<SessionEvent> => {
  let created = beginning
  return drafts.map(([after, each], seq) => {
    created += after
    const envelope = {
      seq,
      position: seq + 1,
      id: EventID.make(`evt_${seq}`),
      sessionID: SessionID.make("ses_a"),
      created
    }
    // A draft with an envelope is an event of its type.
    return { ...each, ...envelope, version: 1 } as SessionEvent
  })
}

const storyOf = (drafts: ReadonlyArray<Timed>): Story => {
  const story = new Story()
  for (const event of eventsOf(drafts)) story.add(event)
  return story
}

describe("the end of a run", () => {
  const activity = { id: ActivityID.make("act_a"), state: "completed" } as const
  const error = { type: "answer.empty", message: "The model answered nothing." }

  it("IP-620: a session whose answer is not whole has that as its state, and its sentence", () => {
    assert.strictEqual(stateOf({ activity: { ...activity, error } }, false, false), "answer empty")
    assert.strictEqual(endOf({ activity: { ...activity, error } }), "The model answered nothing.")
  })

  it("IP-620: a whole answer has no sentence, and a failed run has its reason", () => {
    assert.deepEqual([stateOf({ activity }, false, false), endOf({ activity })], ["completed", undefined])
    const failed = { ...activity, state: "failed", error: { type: "provider", message: "overloaded" } } as const
    assert.strictEqual(endOf({ activity: failed }), "The last run failed: overloaded")
  })
})

describe("the story of a session", () => {
  const story = storyOf(rich("a"))
  const spans = (lane: string) => story.timeline.spans.filter((span) => span.lane === lane)

  it("IP-12: each prompt, activity, turn, call, compaction and retry is a span with its length and outcome", () => {
    assert.deepEqual(
      ["prompt", "activity", "turn", "tool", "compaction", "retry"].map((lane) => spans(lane).length),
      [3, 3, 5, 4, 1, 1]
    )
    assert.deepEqual(
      spans("turn").map(({ outcome }) => outcome),
      ["completed", "completed", "completed", "completed", "failed"]
    )
    assert.deepEqual(
      spans("tool").map(({ end = 0, label, start }) => [label, end - start]),
      [
        ["read", 35],
        ["bash", 4_200],
        ["bash", 9_300],
        ["bash", 160]
      ]
    )
    assert.strictEqual(spans("retry")[0]?.label, "retry 1: overloaded")
    assert.strictEqual((spans("retry")[0]?.end ?? 0) - (spans("retry")[0]?.start ?? 0), 2_000)
  })

  it("IP-12: what an activity left open ends with it", () => {
    const whole = rich("b")
    const cut = whole.findIndex(([, { type }]) => type === "session.next.tool.success")
    const settled = whole.find(([, { type }]) => type === "session.next.activity.settled")
    assert.isDefined(settled)
    const ended = storyOf([...whole.slice(0, cut), ...(settled === undefined ? [] : [settled])])
    const open = ended.timeline.spans.filter(({ end, lane }) => end === undefined && lane !== "prompt")
    assert.deepEqual(open, [])
  })

  it("IP-14: every charged request is a point with the sums so far and the budget left", () => {
    const { points } = story.spending
    assert.deepEqual(
      points.map(({ cost, input, output }) => [cost, input, output]),
      [
        [0.021, 2_140, 180],
        [0.034, 2_900, 420],
        [0.012, 3_400, 90],
        [0.008, 3_600, 120],
        [0.009, 1_500, 60]
      ]
    )
    assert.closeTo(points.at(-1)?.totalCost ?? 0, 0.084, 1e-9)
    assert.closeTo(points.at(-1)?.costLeft ?? 0, 0.916, 1e-9)
    assert.strictEqual(points.at(-1)?.totalTokens, 14_410)
  })

  it("IP-15: an epoch has its baseline, its sources and what was told since", () => {
    const { epochs } = story.epochs
    assert.deepEqual(
      epochs.map(({ changes, sources }) => [sources, changes.map(({ kind }) => kind)]),
      [
        [
          ["date", "instructions"],
          ["updated", "compacted"]
        ],
        [["date", "instructions"], []]
      ]
    )
    assert.include(epochs[0]?.baseline, "Debian 13")
  })

  it("IP-5: an event that comes twice counts once", () => {
    const events = eventsOf(rich("c"))
    const twice = new Story()
    for (const event of [...events, ...events]) twice.add(event)
    assert.strictEqual(twice.count, events.length)
    assert.deepEqual(twice.spending.points, storyOf(rich("c")).spending.points)
  })

  it("IP-11: kept texts and changes have a limit", () => {
    const epochs = new Epochs()
    epochs.begin({ seq: 0, at: 0 }, "x".repeat(longestText * 2), [])
    for (let seq = 1; seq <= mostChanges + 7; seq++) epochs.change({ seq, at: seq, kind: "updated", text: `${seq}` })
    assert.isBelow(epochs.epochs[0]?.baseline.length ?? 0, longestText + 100)
    assert.strictEqual(epochs.epochs[0]?.changes.length, mostChanges)
    assert.strictEqual(epochs.dropped, 7)
  })
})

describe("the types of a story", () => {
  it("IP-11: the events that are not asked for change nothing", () => {
    const asked: ReadonlyArray<string> = storyTypes
    const [whole, chosen] = [new Story(), new Story()]
    for (const event of eventsOf(rich("t"))) {
      whole.add(event)
      if (asked.includes(event.type)) chosen.add(event)
    }
    assert.isBelow(chosen.count, whole.count)
    assert.deepEqual(chosen.timeline.spans, whole.timeline.spans)
    assert.deepEqual(chosen.spending, whole.spending)
    assert.deepEqual(chosen.epochs, whole.epochs)
    assert.deepEqual(chosen.turns, whole.turns)
  })
})

describe("the picture of a timeline", () => {
  it("IP-12: a drawn time and its time belong together, and a long pause is short", () => {
    const interval = fc.record({ start: fc.nat(10_000_000), size: fc.nat(50_000) })
    forAll([fc.array(interval, { minLength: 1, maxLength: 20 }), fc.boolean()], 40, (found, shorten) => {
      const intervals = found.map(({ size, start }) => ({ start, end: start + size }))
      const scale = timeScale(intervals, shorten)
      const times = intervals.flatMap(({ end, start }) => [start, end]).sort((a, b) => a - b)
      const drawn = times.map(scale.drawn)
      for (const [index, at] of drawn.entries()) {
        assert.closeTo(scale.timeAt(at), times[index] ?? 0, 0.001)
        assert.isAtMost(drawn[index - 1] ?? 0, at + 0.001)
        assert.isAtMost(at, scale.length + 0.001)
      }
      if (!shorten) assert.closeTo(scale.length, Math.max(1, (times.at(-1) ?? 0) - (times[0] ?? 0)), 0.001)
    })
    const night = timeScale([
      { start: 0, end: 10_000 },
      { start: 9 * 3_600_000, end: 9 * 3_600_000 + 10_000 }
    ])
    assert.strictEqual(night.length, 20_000 + night.pauseLength)
    assert.isBelow(night.pauseLength, 1_000)
  })

  it("IP-12: the boxes of a long session are bounded by the width, and a failure is not hidden", () => {
    const timeline = new Timeline()
    for (let at = 0; at < 50_000; at++) {
      const outcome = at === 31_234 ? "failed" : "completed"
      timeline.touch(at * 10 + 5)
      timeline.add({ lane: "tool", key: `${at}`, seq: at, label: "bash", start: at * 10, end: at * 10 + 5, outcome })
    }
    const scale = scaleOf(timeline)
    const boxes = boxesOf(timeline, scale, { from: 0, to: scale.length }, 800)
    assert.isAtMost(boxes.length, 802)
    const failed = boxes.find(({ span }) => span.outcome === "failed")
    assert.strictEqual(failed?.span.seq, 31_234)
    assert.strictEqual(boxAt(boxes, (failed?.x ?? 0) + 1, (failed?.y ?? 0) + 1)?.span.outcome, "failed")
    const near = boxesOf(timeline, scale, { from: 1_000, to: 1_100 }, 800)
    assert.deepEqual(
      near.map(({ span }) => span.seq),
      Arr.range(100, 110)
    )
  })

  it("IP-12: spans at the same time stand below each other, in a bounded number of rows", () => {
    const timeline = new Timeline()
    for (let at = 0; at < 10; at++) timeline.begin("tool", `${at}`, { seq: at, start: at }, "bash")
    assert.deepEqual(timeline.spans.map(Struct.get("row")), [0, 1, 2, 3, 4, 5, 5, 5, 5, 5])
    assert.strictEqual(timeline.rowsOf("tool"), mostRows)
    assert.deepEqual(longestSpans(timeline.spans, ["tool"], 100, 2).map(Struct.get("seq")), [0, 1])
  })

  it("IP-12: a window stays within the session", () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true })
    forAll([share, share, fc.double({ min: -3, max: 3, noNaN: true }), share], 40, (from, size, by, around) => {
      const length = 10_000
      const window = {
        from: from * length * (1 - size),
        to: from * length * (1 - size) + Math.max(20, size * length)
      }
      for (const next of [zoomed(window, Math.exp(by), around, length), moved(window, by, length)]) {
        assert.isAtLeast(next.from, 0)
        assert.isAtMost(next.to, length + 0.001)
        assert.isBelow(next.from, next.to)
      }
    })
    assert.deepEqual(ticks({ from: 0, to: 10_000 }, 800, 100), [0, 2_000, 4_000, 6_000, 8_000, 10_000])
  })
})

describe("the difference between requests", () => {
  const block = (title: string, text: string, kind: Block["kind"] = "message"): Block => ({
    kind,
    title,
    text,
    tokens: 1
  })

  it("IP-13: it names new, changed, equal and removed parts, and the lines of what changed", () => {
    const before = [block("System", "a\nb", "system"), block("user", "hello"), block("old", "gone", "tool")]
    const after = [block("System", "a\nc", "system"), block("user", "hello"), block("assistant", "hi")]
    const changes = changesOf(before, after)
    assert.deepEqual(
      changes.map(({ block, change }) => [block.title, change]),
      [
        ["System", "changed"],
        ["user", "same"],
        ["old", "removed"],
        ["assistant", "added"]
      ]
    )
    assert.deepEqual(changes[0]?.lines, [
      { change: "same", text: "a" },
      { change: "removed", text: "b" },
      { change: "added", text: "c" }
    ])
  })

  it("IP-13: the parts of the next request that are not removed are that request", () => {
    const blocks = fc.array(fc.tuple(fc.constantFrom("a", "b"), fc.constantFrom("x", "y", "z")), { maxLength: 8 })
    forAll([blocks, blocks], 40, (one, other) => {
      const [before, after] = [one, other].map((each) => each.map(([title, text]) => block(title, text)))
      const kept = changesOf(before ?? [], after ?? []).filter(({ change }) => change !== "removed")
      assert.deepEqual(kept.map(Struct.get("block")), after)
    })
  })
})

describe("events in a line", () => {
  const events = eventsOf(rich("d"))

  it("IP-16: an event has a short name, a kind and its main text", () => {
    const called = events.find(({ type }) => type === "session.next.tool.called")
    assert.isDefined(called)
    assert.strictEqual(shortType(called?.type ?? ""), "tool.called")
    assert.strictEqual(kindOf("session.next.tool.called"), "tool")
    assert.strictEqual(kindOf("session.next.tool.failed"), "problem")
    assert.strictEqual(kindOf("session.next.later.type"), "session")
    if (called !== undefined) assert.strictEqual(summaryOf(called), 'read · {"path":"src/total.ts"}')
    const success = events.find(({ type }) => type === "session.next.tool.success")
    if (success !== undefined) assert.match(summaryOf(success), /^export const total/)
    for (const event of events) assert.isAtMost(summaryOf(event).length, 240)
  })

  it("IP-16: a filter needs all words, in any case, and one of the kinds", () => {
    const found = (text: string, kinds: Parameters<typeof passes>[0]["kinds"] = []) =>
      events.filter(passes({ text, kinds })).map(({ type }) => shortType(type))
    assert.deepEqual(found("INVOICE problem"), ["prompt.admitted", "prompt.promoted"])
    assert.deepEqual(found("closed", ["problem"]), ["step.failed"])
    assert.lengthOf(found(""), events.length)
    assert.deepEqual(found("nothing has this"), [])
  })
})

describe("texts", () => {
  it("IP-10: durations, ages, costs and tokens are short", () => {
    assert.deepEqual([0, 999, 3_412, 125_000, 11_520_000, 352_800_000].map(durationText), [
      "0 ms",
      "999 ms",
      "3.4 s",
      "2 min 5 s",
      "3 h 12 min",
      "4 d 2 h"
    ])
    assert.deepEqual(
      [0, 12_000, 200_000].map((ago) => agoText(1_000_000 - ago, 1_000_000)),
      ["just now", "12 s ago", "3 min ago"]
    )
    assert.deepEqual([0, 0.0042, 1.234, 1_234.5].map(costText), ["$0", "$0.0042", "$1.23", "$1,234.50"])
    assert.deepEqual([950, 12_340, 4_100_000].map(tokensText), ["950", "12.3k", "4.1M"])
  })

  it("IP-30: characters that hide or reorder text are shown", () => {
    assert.strictEqual(visible("a\u001b[31mb\u0007"), "a␛[31mb␇")
    assert.strictEqual(visible("abc\u202etxt.exe"), "abc⟨U+202E⟩txt.exe")
    assert.strictEqual(visible("a\u200bb\ufeff"), "a⟨U+200B⟩b⟨U+FEFF⟩")
    assert.strictEqual(visible("line\r\nnext\tübung 👩‍💻"), "line\nnext\tübung 👩‍💻")
  })

  it("IP-18: a text that nests more deeply than a browser can draw is no prose", () => {
    assert.isDefined(proseOf("> - > 1. **deep** [link](https://example.org)"))
    for (const mark of [">", "> ", "- ", "1. "]) {
      assert.isDefined(proseOf(`${mark.repeat(20)}text`), mark)
      for (const times of [500, 60_000]) assert.isUndefined(proseOf(`${mark.repeat(times)}text`), `${times} ${mark}`)
    }
    assert.isDefined(proseOf(`${"-".repeat(500)}\n\n${"> text\n\n".repeat(500)}`))
    assert.isUndefined(proseOf(Array.from({ length: 300 }, (_, level) => `${"\t".repeat(level)}- item`).join("\n")))
  })

  it("IP-6: an address names session, view and event; another one is the start page", () => {
    assert.deepEqual(parseRoute(hrefOf("ses_a.b-c", "events", 7)), {
      sessionID: "ses_a.b-c",
      tab: "events",
      at: 7,
      nodes: false
    })
    assert.deepEqual(parseRoute("#/sessions/ses_a"), {
      sessionID: "ses_a",
      tab: "transcript",
      at: undefined,
      nodes: false
    })
    assert.deepEqual(parseRoute("#/sessions/../evil?at=-1"), {
      sessionID: undefined,
      tab: "transcript",
      at: undefined,
      nodes: false
    })
    assert.isTrue(parseRoute("#/nodes").nodes)
  })

  it("IP-11: a session of 100,000 events folds to small records", () => {
    const story = storyOf(long("e", 100_000))
    assert.isAtLeast(story.count, 100_000)
    assert.strictEqual(story.turns.length, story.spending.points.length)
    assert.isTrue(story.timeline.spans.every(({ end }) => end !== undefined))
  })
})
