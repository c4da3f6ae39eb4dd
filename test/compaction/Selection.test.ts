/** Where a compaction parts the past (CM-4, CM-5, CM-12). */
import { assert, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import { notCompactable, select, type Sized, sized } from "../../packages/core/src/compaction/Plan.ts"
import { serialize } from "../../packages/core/src/compaction/Serialize.ts"
import { tokensOf } from "../../packages/core/src/request/TokenEstimate.ts"
import type { Message } from "../../packages/log/src/domain/Message.ts"
import { history, results, says, user } from "./support/Histories.ts"

const keep = fc.nat(20_000)
const of = (tokens: number, message: Message): Sized => ({ message, tokens })
const seqs = (messages: ReadonlyArray<Message>) => messages.map(({ seq }) => seq)
const total = (messages: ReadonlyArray<Sized>, from: number) =>
  messages.slice(from).reduce((sum, { tokens }) => sum + tokens, 0)

it.prop(
  "CM-4: whatever the history and the budget, nothing is lost and nothing changes its place",
  [history(), keep],
  ([messages, tokens]) => {
    const { head, recent } = select(sized(messages), tokens)
    assert.deepStrictEqual([...head, ...recent], [...messages])
  }
)

it.prop(
  "CM-4: whatever the history and the budget, no call is parted from its result",
  [history(), keep],
  ([messages, tokens]) => {
    const { head, recent } = select(sized(messages), tokens)
    for (const half of [head, recent]) {
      const shown = serialize(half)
      const calls = shown.match(/^\[Assistant tool call\]/gm)?.length ?? 0
      const ends = shown.match(/^\[Tool (?:result|error)\]/gm)?.length ?? 0
      const stored = half.flatMap((message) =>
        message.type === "assistant" ? message.content.filter(({ type }) => type === "tool") : []
      )
      assert.strictEqual(calls, ends)
      assert.strictEqual(calls, stored.length)
    }
  }
)

it.prop("CM-4: what stays recent fits the budget, as it is kept", [history(), keep], ([messages, tokens]) => {
  const { recent } = select(sized(messages), tokens)
  // Joining adds an empty line between messages, and rounding up to half a token for each.
  assert.isAtMost(tokensOf(serialize(recent)), tokens + recent.length)
})

it.prop("CM-4: a greater budget never keeps less", [history(), keep, keep], ([messages, a, b]) => {
  const kept = (tokens: number) => select(sized(messages), tokens).recent.length
  assert.isAtMost(kept(Math.min(a, b)), kept(Math.max(a, b)))
})

it.prop(
  "CM-4: a longer history never moves the cut back",
  [history(), fc.nat(12), keep],
  ([messages, shorter, tokens]) => {
    const cut = (length: number) => select(sized(messages.slice(0, length)), tokens).head.length
    assert.isAtMost(cut(shorter), cut(messages.length))
  }
)

it.prop(
  "CM-4: no more could have been kept, unless that is left for a user message",
  [history(), keep],
  ([messages, tokens]) => {
    const all = sized(messages)
    const { head, recent } = select(all, tokens)
    const before = all[head.length - 1]
    if (before === undefined) return
    if (recent[0]?.type !== "user") assert.isAbove(total(all, head.length - 1), tokens)
  }
)

it("CM-4: the cut moves on to a user message when that keeps at least half of what fits", () => {
  const messages = [of(10, user(0, "a")), of(40, says(1, "b")), of(10, user(2, "c")), of(40, says(3, "d"))]
  assert.deepStrictEqual(seqs(select(messages, 100).recent), [0, 1, 2, 3])
  assert.deepStrictEqual(seqs(select(messages, 99).recent), [2, 3])
  assert.deepStrictEqual(seqs(select(messages, 90).recent), [2, 3])
  assert.deepStrictEqual(seqs(select(messages, 49).recent), [3])
  // A prompt alone at the end is no reason to drop the long answer before it.
  const turn = [of(10, user(0, "a")), of(40, says(1, "b")), of(40, says(2, "c")), of(5, user(3, "d"))]
  assert.deepStrictEqual(seqs(select(turn, 90).recent), [1, 2, 3])
})

it("CM-4: a newest message that does not fit leaves nothing recent", () => {
  const messages = [of(1, user(0, "a")), of(1, says(1, "b")), of(100, user(2, "c"))]
  assert.deepStrictEqual(select(messages, 99).recent, [])
  assert.deepStrictEqual(seqs(select(messages, 99).head), [0, 1, 2])
  assert.deepStrictEqual(select([], 99), { head: [], recent: [] })
})

const first = { exists: false }
const later = { exists: true }

it("CM-5: nothing older and no earlier checkpoint is not compactable", () => {
  const recent = [user(0, "a"), says(1, "b")]
  assert.strictEqual(notCompactable({ head: [], recent }, first), "nothing-older")
  assert.isUndefined(notCompactable({ head: [], recent }, later))
  assert.isUndefined(notCompactable({ head: recent, recent: [] }, first))
  // What the model is not shown is nothing.
  const switched: Message = { ...user(0, ""), type: "agent-switched", agent: "plan" }
  assert.strictEqual(notCompactable({ head: [switched], recent }, first), "nothing-older")
})

it("CM-12: after a checkpoint there is nothing to compact until a model has answered", () => {
  const refused: Message = {
    id: user(1, "").id,
    seq: 1,
    createdAt: 1,
    type: "assistant",
    agent: "build",
    model: { providerID: "acme", id: "m1" },
    content: [],
    error: { type: "provider.overflow", message: "too long" }
  }
  for (const head of [[], [user(0, "a")], [user(0, "a"), refused]]) {
    assert.strictEqual(notCompactable({ head, recent: [] }, later), "nothing-new")
    assert.strictEqual(notCompactable({ head: [], recent: head }, later), "nothing-new")
  }
  assert.isUndefined(notCompactable({ head: [user(0, "a"), results(1, {})], recent: [] }, later))
})

it("CM-4: while a call runs nothing is compacted: its result would lie where nobody is shown it", () => {
  const running = results(1, {}, { state: "running" })
  const selection = { head: [user(0, "a"), says(0, "b")], recent: [running] }
  assert.strictEqual(notCompactable(selection, later), "unsettled")
  assert.isUndefined(notCompactable({ ...selection, recent: [running, says(2, "after a crash")] }, later))
})
