/** The fold of what the last step was shown, over hand-made events with the lines that they write. */
import { assert, describe, it } from "@effect/vitest"
import { Chunk } from "effect"
import * as PackState from "../../../packages/files/src/context/PackState.ts"
import * as Rendering from "../../../packages/files/src/render/Rendering.ts"
import { MessageID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { Draft, SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { stored } from "../support/Logs.ts"

const model = { providerID: "p", id: "m" }
const id = (name: string) => MessageID.make(`msg_${name}`)
const tokens = { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } }

const created: Draft = { type: "session.created", data: { location: { directory: "/work" } } }
const framed = (system: ReadonlyArray<string>, baselineSeq = 0): Draft => ({
  type: "session.next.request.framed",
  data: { hash: system.join(), system, baselineSeq, tools: { offered: [], defined: [] }, settings: {} }
})
const prompt = (name: string, text = name): ReadonlyArray<Draft> => [
  { type: "session.next.prompt.admitted", data: { messageID: id(name), prompt: { text }, delivery: "steer" } },
  { type: "session.next.prompt.promoted", data: { messageID: id(name), prompt: { text }, timeCreated: 0 } }
]
const began = (name: string): Draft => ({
  type: "session.next.step.started",
  data: { assistantMessageID: id(name), agent: "build", model }
})
const said = (name: string, text: string): ReadonlyArray<Draft> => [
  { type: "session.next.text.started", data: { assistantMessageID: id(name), textID: "t" } },
  { type: "session.next.text.ended", data: { assistantMessageID: id(name), textID: "t", text } },
  { type: "session.next.step.ended", data: { assistantMessageID: id(name), finish: "stop", cost: 0, tokens } }
]
const compacted = (name: string, text: string, firstKeptSeq?: number): Draft => ({
  type: "session.next.compaction.ended",
  data: {
    messageID: id(name),
    reason: "auto",
    text,
    recent: "",
    ...(firstKeptSeq === undefined ? {} : { firstKeptSeq })
  }
})
const told = (name: string): Draft => ({
  type: "session.next.context.updated",
  data: { messageID: id(name), text: name }
})

const packOf = (events: ReadonlyArray<SessionEvent>) => Rendering.evolveAll(Rendering.initial, events).rendering.pack
const shownLines = ({ shown }: PackState.PackState) => Chunk.toReadonlyArray(shown).map(({ line }) => line)
const ranges = ({ swaps }: PackState.PackState) => swaps.map(({ from, to }) => [from, to])

describe("the state of a pack", () => {
  it("PK-2: what comes after a step changes nothing of it until the next one", () => {
    const first = [created, ...prompt("a"), framed(["S"]), began("b"), ...said("b", "hi")]
    const later = [...first, framed(["other"]), compacted("c", "Summary")]
    const [now, then] = [packOf(stored(first)), packOf(stored(later))]
    assert.deepEqual(then.framed, now.framed)
    assert.deepEqual([then.step, shownLines(then), ranges(then)], [now.step, shownLines(now), []])
  })

  it("FI-160: after a move of the leaf, the next step shows the lines of the path alone, with their results", () => {
    const first = [created, ...prompt("a"), framed(["S"]), began("b"), ...said("b", "hi")]
    const cut = stored(first).length - 1
    const left: ReadonlyArray<Draft> = [
      ...prompt("c"),
      { type: "session.next.context.pruned", data: { through: 3 } },
      began("d"),
      ...said("d", "left"),
      compacted("e", "of the branch that was left")
    ]
    const move: Draft = { type: "session.next.leaf.moved", data: { messageID: id("b"), path: [[0, cut]] } }
    const moved = [...first, ...left, move]
    const lines = (events: ReadonlyArray<Draft>) =>
      Chunk.toReadonlyArray(packOf(stored(events)).shown).map(({ message }) => message)
    // Until then the pack is that of the last step.
    assert.deepEqual(lines(moved), lines([...first, ...left]))
    const then = [...moved, ...prompt("f"), began("g"), ...said("g", "on")]
    assert.deepEqual(lines(then), [id("a"), id("b"), id("f"), id("g")])
    const state = packOf(stored(then))
    assert.deepEqual([ranges(state), state.prunedSeq], [[], -1])
  })

  it("PK-4: a checkpoint swaps out the lines before it when the next step begins, in runs without a gap", () => {
    const log = stored([
      created,
      ...prompt("a"),
      framed(["S"]),
      began("b"),
      ...said("b", "hi"),
      ...prompt("c"),
      compacted("d", "## Goal\n\n- To greet"),
      began("e")
    ])
    const pack = packOf(log)
    assert.deepEqual(ranges(pack), [[1, 3]])
    assert.deepEqual(shownLines(pack), [])
    assert.strictEqual(pack.swaps[0]?.summary, "- To greet")
  })

  it("PK-4: prompts that the checkpoint keeps stay shown, and are swapped out by the next one", () => {
    const before = [created, ...prompt("a"), framed(["S"]), began("b"), ...said("b", "hi"), ...prompt("c")]
    const log = [...before, compacted("d", "one", before.length - 1), began("e"), ...said("e", "yes")]
    const kept = packOf(stored(log))
    assert.deepEqual([ranges(kept), shownLines(kept)], [[[1, 2]], [3, 4]])
    const next = packOf(stored([...log, compacted("f", "two"), began("g")]))
    assert.deepEqual(ranges(next), [
      [1, 2],
      [3, 4]
    ])
  })

  it("PK-4: what the model was told since the baseline stays shown across a checkpoint", () => {
    const start = [created, ...prompt("a"), framed(["S"]), began("b"), ...said("b", "hi"), told("news"), ...prompt("c")]
    const same = packOf(stored([...start, compacted("d", "one"), began("e")]))
    assert.deepEqual(
      [ranges(same), shownLines(same)],
      [
        [
          [1, 2],
          [4, 4]
        ],
        [3]
      ]
    )
    const fresh = packOf(stored([...start, compacted("d", "one"), framed(["T"], start.length), began("e")]))
    assert.deepEqual([ranges(fresh), shownLines(fresh)], [[[1, 4]], []])
  })

  it("FL-8: a state that was stored at any event goes on to the same state", () => {
    const log = stored([
      created,
      ...prompt("a", "é".repeat(20)),
      framed(["S"]),
      began("b"),
      ...said("b", "hi"),
      told("news"),
      ...prompt("c"),
      compacted("d", "one"),
      began("e"),
      ...said("e", "bye")
    ])
    const whole = PackState.toCheckpoint(packOf(log))
    for (let at = 0; at <= log.length; at++) {
      const { fold, pack } = Rendering.evolveAll(Rendering.initial, log.slice(0, at)).rendering
      const text = JSON.stringify(PackState.toCheckpoint(pack))
      const again = PackState.fromCheckpoint(JSON.parse(text))
      const { rendering } = Rendering.evolveAll({ fold, pack: again }, log.slice(at))
      assert.deepEqual(PackState.toCheckpoint(rendering.pack), whole, `stored at ${at}`)
    }
  })
})
