/**
 * The fold under random logs: `plausibleLog` gives what no runner would write and readers still have to bear, `runnerLog`
 * what a runner writes. Nothing here depends on how events came: the fold takes one at a time.
 */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc, Schema, Struct } from "effect"
import { ActivityID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Draft } from "../../packages/log/src/events/SessionEvents.ts"
import * as Fold from "../../packages/transcript/src/Fold.ts"
import { EventRow, MessageRow, runOf } from "../../packages/transcript/src/row/Rows.ts"
import { folded, stored } from "../files/support/Logs.ts"
import { runnerLog } from "../files/support/RunnerLogs.ts"
import { cases } from "../support/Cases.ts"
import { plausibleLog } from "../support/PlausibleLogs.ts"

const check = <A>(arbitrary: fc.Arbitrary<A>, law: (value: A) => void): void =>
  fc.assert(fc.property(arbitrary, law), { numRuns: cases(32) })

/** So that some of the activities settle, and prompts follow on their starts. */
const withEnds = (drafts: ReadonlyArray<Draft>): ReadonlyArray<Draft> => {
  let count = 0
  return drafts.map((draft): Draft => {
    if (draft.type === "session.next.activity.started")
      return { ...draft, data: { ...draft.data, activityID: ActivityID.make(`act_${(count += 1)}`) } }
    if (draft.type === "session.next.activity.settled")
      return { ...draft, data: { ...draft.data, activityID: ActivityID.make(`act_${count}`) } }
    return draft
  })
}
const strange = plausibleLog("s", 120).map((drafts) => stored(withEnds(drafts)))
const ordinary = runnerLog("s").map((drafts) => stored(drafts))
const any = fc.oneof(strange, ordinary)

const decodeMessage = Schema.decodeUnknownSync(MessageRow, { onExcessProperty: "error" })
const decodeEvent = Schema.decodeUnknownSync(EventRow, { onExcessProperty: "error" })
const jsonOf = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe("any log", () => {
  it("FL-4: each row is one line that its schema reads back, its keys in the schema's order", () =>
    check(any, (events) => {
      const { events: rows, messages } = folded(events)
      for (const [row, decode] of [
        ...messages.map((row) => [row, decodeMessage] as const),
        ...rows.map((row) => [row, decodeEvent] as const)
      ]) {
        const line = JSON.stringify(row)
        assert.notInclude(line, "\n")
        assert.strictEqual(JSON.stringify(decode(JSON.parse(line))), line)
      }
    }))

  it("FL-5: event rows have strictly increasing seq, an id of their own, and are told from their event alone", () =>
    check(any, (events) => {
      let state = Fold.initial
      const ids = new Set<string>()
      let last = -1
      for (const event of events) {
        const next = Fold.evolve(state, event)
        state = next.state
        assert.isAtMost(next.events.length, Fold.rowsPerEvent)
        next.events.forEach((row, n) => {
          assert.strictEqual(row.seq, Fold.rowsPerEvent * event.seq + n)
          assert.strictEqual(row.id, n === 0 ? event.id : `${event.id}.${n}`)
          assert.isAbove(row.seq, last)
          last = row.seq
          ids.add(row.id)
        })
      }
      assert.strictEqual(ids.size, state.lines.events)
    }))

  it("FI-105, FI-36: going on from any checkpoint is going on from all events", () =>
    check(any, (events) => {
      const whole = folded(events)
      let state = Fold.initial
      events.forEach((event, index) => {
        state = Fold.evolve(state, event).state
        if (!Fold.isQuiet(state)) return
        const text = JSON.stringify(Schema.encodeSync(Fold.Checkpoint)(Fold.toCheckpoint(state)))
        const resumed = Fold.fromCheckpoint(Schema.decodeUnknownSync(Fold.Checkpoint)(JSON.parse(text)))
        const rest = folded(events.slice(index + 1), resumed)
        assert.deepStrictEqual(jsonOf(rest.state), jsonOf(whole.state))
        assert.strictEqual(JSON.stringify(rest.messages), JSON.stringify(whole.messages.slice(resumed.lines.messages)))
        assert.strictEqual(JSON.stringify(rest.events), JSON.stringify(whole.events.slice(resumed.lines.events)))
      })
    }))

  it("FI-30: a run has one start, and one end behind it", () =>
    check(any, (events) => {
      const open = new Set<string>()
      const over = new Set<string>()
      for (const row of folded(events).events) {
        if (row.type === "start") {
          assert.isFalse(open.has(row.run) || over.has(row.run))
          open.add(row.run)
        }
        if (row.type === "message" || row.type === "tool_call")
          assert.isTrue(row.run === undefined || open.has(row.run))
        if (row.type !== "done") continue
        assert.isFalse(over.has(row.run))
        // Only one that was taken back ends without having begun.
        assert.isTrue(open.delete(row.run) || row.status === "cancelled")
        over.add(row.run)
      }
      assert.isAtMost(open.size, 1)
    }))

  it("DC-4: updated_at never goes back, whatever clocks do", () =>
    check(fc.tuple(runnerLog("s"), fc.array(fc.nat(1_000))), ([drafts, times]) => {
      let before = -1
      let state = Fold.initial
      for (const event of stored(drafts, "s", times)) {
        state = Fold.evolve(state, event).state
        assert.isAtLeast(state.updatedAtMs, Math.max(before, event.created))
        before = state.updatedAtMs
      }
    }))

  it("PK-5: what a row names by its content was given with it or before", () =>
    check(any, (events) => {
      const given = new Set<string>()
      let state = Fold.initial
      for (const event of events) {
        const next = Fold.evolve(state, event)
        state = next.state
        next.blobs.forEach(({ hash }) => given.add(hash))
        for (const [, hash] of JSON.stringify(next.messages).matchAll(/"blob":"(sha256-[0-9a-f]{64})"/g))
          assert.isTrue(hash !== undefined && given.has(hash))
      }
    }))
})

describe("a runner's log", () => {
  it("IX-6: rows from the start of an activity on are those from the beginning on", () =>
    check(ordinary, (events) => {
      const whole = folded(events).events
      events.forEach((event, index) => {
        if (event.type !== "session.next.activity.started") return
        const before = Fold.framing.flatMap((type) => {
          const last = events.slice(0, index).findLast((earlier) => earlier.type === type)
          return last === undefined ? [] : [last]
        })
        const rows = folded(events.slice(index), Fold.startAt(before.toSorted((a, b) => a.seq - b.seq))).events
        assert.deepStrictEqual(
          rows,
          whole.filter(({ seq }) => seq >= Fold.rowsPerEvent * event.seq)
        )
      })
    }))

  it("FR-7: the text of a run is that of its messages, an empty line between them; latest.md is that of the last", () =>
    check(ordinary, (events) => {
      const { events: rows, latest: written, messages } = folded(events)
      let latest: string | undefined
      for (const row of rows) {
        if (row.type !== "message") continue
        const texts = messages.flatMap((message) =>
          message.role === "assistant" && message.run === row.run
            ? [message.content.map((block) => (block.type === "text" ? block.text : "")).join("")]
            : []
        )
        latest = texts.filter((text) => text !== "").join("\n\n")
        assert.strictEqual(row.content[0]?.text, latest)
        assert.isUndefined(row.truncated)
      }
      assert.strictEqual(written, latest)
    }))

  it("FR-7: a run that completed tells start, message, done; no other run has a message", () =>
    check(ordinary, (events) => {
      const told = new Map<string, Array<string>>()
      for (const row of folded(events).events) {
        if (row.type !== "start" && row.type !== "message" && row.type !== "done") continue
        const word = row.type === "done" ? row.status : row.type
        told.set(row.run, [...(told.get(row.run) ?? []), word])
      }
      const known = ["start message ok", "start error", "start cancelled", "cancelled"]
      for (const words of told.values()) assert.include(known, words.join(" "))
    }))

  it("FR-9: a run is named after the prompt that began it, else after its activity", () =>
    check(ordinary, (events) => {
      const starts = folded(events).events.filter(({ type }) => type === "start")
      const named = events.flatMap((event, index) => {
        if (event.type !== "session.next.activity.started") return []
        const next = events[index + 1]
        const of = next?.type === "session.next.prompt.promoted" ? next.data.messageID : event.data.activityID
        return [runOf(event.sessionID, of)]
      })
      assert.deepStrictEqual(starts.map(Struct.get("run")), named)
    }))

  it("FI-27: an assistant's row comes before its tools' rows, and these come in the order of the calls, each once", () =>
    check(ordinary, (events) => {
      const calls: Array<string> = []
      const results: Array<string> = []
      for (const row of folded(events).messages) {
        if (row.role === "assistant")
          calls.push(...row.content.flatMap((b) => (b.type === "tool_call" ? [`${row.id}:${b.tool_call_id}`] : [])))
        if (row.role !== "tool") continue
        results.push(row.id)
        assert.strictEqual(calls[results.length - 1], row.id)
      }
      assert.deepStrictEqual(results, calls)
    }))

  it("FI-105, FI-36: between activities the fold is quiet", () =>
    check(ordinary, (events) => assert.isTrue(Fold.isQuiet(folded(events).state))))
})
