/**
 * The runtime's reading of a tree against a plain one: any sequence of messages, checkpoints and moves is also kept as
 * parent pointers, and the history is found by walking from the leaf to the root.
 */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer } from "effect"
import { historyAt } from "../../packages/core/src/request/Recorded.ts"
import { MessageID, type SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Rebuild from "../../packages/log/src/maintenance/Rebuild.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../packages/log/src/Store.ts"
import { cases } from "../support/Cases.ts"
import { memoryLog } from "../support/Database.ts"
import { created, session, unique } from "../support/Logs.ts"

type Command =
  { readonly type: "say" | "prompt" | "checkpoint" | "reset" } | { readonly type: "branch"; readonly to: number }

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<Command>({ type: "say" }, { type: "prompt" }) },
  { weight: 1, arbitrary: fc.constant<Command>({ type: "checkpoint" }) },
  { weight: 3, arbitrary: fc.nat(30).map((to): Command => ({ type: "branch", to })) },
  { weight: 1, arbitrary: fc.constant<Command>({ type: "reset" }) }
)

/** A message of the reference. */
interface Node {
  readonly id: MessageID
  readonly parent: Node | undefined
  readonly kind: "say" | "prompt" | "checkpoint"
  /** The prompts that follow a checkpoint unchanged. */
  readonly kept: ReadonlyArray<MessageID>
}

/** From the root to the leaf. */
const walk = (leaf: Node | undefined): ReadonlyArray<Node> => {
  const nodes: Array<Node> = []
  for (let node = leaf; node !== undefined; node = node.parent) nodes.unshift(node)
  return nodes
}

/** What the model is shown: the last checkpoint of the path, the prompts that it keeps, and what follows. */
const shown = (leaf: Node | undefined): ReadonlyArray<MessageID> => {
  const path = walk(leaf)
  const at = path.findLastIndex(({ kind }) => kind === "checkpoint")
  const [checkpoint] = path.slice(at, at + 1)
  if (at < 0 || checkpoint === undefined) return path.map(({ id }) => id)
  return [checkpoint.id, ...checkpoint.kept, ...path.slice(at + 1).map(({ id }) => id)]
}

const events = (id: MessageID, kind: Node["kind"], firstKeptSeq: number | undefined): ReadonlyArray<Draft> => {
  const prompt = { text: id }
  switch (kind) {
    case "say":
      return [draft("session.next.synthetic", { messageID: id, text: id })]
    case "prompt":
      return [
        draft("session.next.prompt.admitted", { messageID: id, prompt, delivery: "steer" }),
        draft("session.next.prompt.promoted", { messageID: id, prompt, timeCreated: 0 })
      ]
    case "checkpoint":
      return [
        draft("session.next.compaction.ended", {
          messageID: id,
          reason: "auto",
          text: id,
          recent: "",
          ...(firstKeptSeq === undefined ? {} : { firstKeptSeq })
        })
      ]
  }
}

/** Carries out the commands, here and in the reference; the reference after each event that it saw. */
const build = Effect.fnUntraced(function* (sessionID: SessionID, commands: ReadonlyArray<Command>) {
  const [log, store] = [yield* EventLog, yield* SessionStore]
  const nodes: Array<Node> = []
  const seqs = new Map<MessageID, number>()
  const seen: Array<{ readonly before: number; readonly leaf: Node | undefined }> = []
  let leaf: Node | undefined
  yield* log.append(sessionID, [created])
  for (const each of commands) {
    if (each.type === "reset") {
      leaf = undefined
      yield* log.append(sessionID, [draft("session.next.leaf.moved", { path: [] })])
    } else if (each.type === "branch") {
      const target = nodes[each.to % Math.max(1, nodes.length)]
      const place = target && (yield* store.place(sessionID, target.id))
      if (target === undefined || place === undefined) continue
      assert.strictEqual(place.parentID, target.parent?.id)
      leaf = target
      yield* log.append(sessionID, [draft("session.next.leaf.moved", { messageID: target.id, path: place.through })])
    } else {
      const id = MessageID.make(`msg_${unique()}`)
      // The last prompt of the path, if it has no checkpoint after it.
      const prompt = each.type === "checkpoint" ? walk(leaf).findLast(({ kind }) => kind !== "say") : undefined
      const kept = prompt?.kind === "prompt" ? [prompt.id] : []
      const first = kept[0] === undefined ? undefined : seqs.get(kept[0])
      const [head, ...rest] = events(id, each.type, first)
      if (head === undefined) continue
      const appended = yield* log.append(sessionID, [head, ...rest])
      seqs.set(id, appended.at(-1)?.seq ?? 0)
      leaf = { id, parent: leaf, kind: each.type, kept }
      nodes.push(leaf)
    }
    seen.push({ before: (yield* log.latest(sessionID)) + 1, leaf })
  }
  return { leaf, nodes, seen }
})

const idsOf = (messages: ReadonlyArray<{ readonly id: MessageID }>) => messages.map(({ id }) => id)

it.effect.prop(
  "HP-4, HP-5, HP-6, HP-7, HP-11, HP-12: for any tree, the context, the transcript and every earlier context are those of a walk from the leaf",
  [fc.array(command, { minLength: 1, maxLength: 40 })],
  ([commands]) =>
    Effect.gen(function* () {
      const store = yield* SessionStore
      const id = session()
      const { leaf, nodes, seen } = yield* build(id, commands)
      const check = Effect.gen(function* () {
        assert.deepStrictEqual(idsOf(yield* store.context(id, -1)), [...shown(leaf)])
        const { items, total } = yield* store.messages({ sessionID: id, limit: 500 })
        assert.deepStrictEqual([idsOf(items), total], [idsOf(walk(leaf)), walk(leaf).length])
        const back = yield* store.messages({ sessionID: id, limit: 2, order: "desc" })
        assert.deepStrictEqual(idsOf(back.items), idsOf(walk(leaf).toReversed().slice(0, 2)))
        const all = yield* store.messages({ sessionID: id, limit: 500, branch: "all" })
        assert.deepStrictEqual([idsOf(all.items), all.total], [idsOf(nodes), nodes.length])
        const tree = yield* store.tree({ sessionID: id, limit: 500 })
        assert.deepStrictEqual(
          tree.items.map(({ id, parentID }) => [id, parentID]),
          nodes.map(({ id, parent }) => [id, parent?.id])
        )
        assert.strictEqual(tree.leafID, leaf?.id)
        assert.strictEqual((yield* store.leaf(id)).messageID, leaf?.id)
      })
      yield* check
      for (const { before, leaf } of seen) {
        const history = yield* historyAt(id, { baselineSeq: -1, before })
        assert.deepStrictEqual(idsOf(history), [...shown(leaf)], `before ${before}`)
      }
      yield* Rebuild.rebuild(id)
      yield* check
    }).pipe(Effect.provide(Layer.provideMerge(layerStore, memoryLog))),
  { fastCheck: { numRuns: cases(6) } }
)
