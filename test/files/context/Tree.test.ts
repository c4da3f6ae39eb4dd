/**
 * Method: the log of a generated conversation is handed over portion by portion to a second store, whose exporter brings
 * its files up to date after each. Then the tree is looked at with ordinary means, and held against a fresh export.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Context as Services } from "effect"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { converse } from "../../request/support/Conversation.ts"
import { temporaryFolder } from "../../support/Harness.ts"
import { foreign } from "../../support/Logs.ts"
import { exportAll, exporterAt, storeAt, tree } from "../support/Exports.ts"
import { sha256 } from "./support/Contexts.ts"

const sessionID = SessionID.make("ses_tree")
const folderOf = (root: string) => join(root, "home/1000/agent/build/session/ses_tree")

class Tree extends Services.Tag("test/Tree")<
  Tree,
  {
    readonly root: string
    readonly filename: string
    /** Blobs that were there after some portion and are no longer. */
    readonly gone: ReadonlySet<string>
  }
>() {}

const blobsIn = (root: string): ReadonlyArray<string> => {
  const folder = join(folderOf(root), "context/dedup/blob")
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith("sha256-")) : []
}

const exported = Layer.scoped(
  Tree,
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const { filename } = yield* converse(folder, sessionID, 30, 5)
    const events = yield* Effect.provide(foreign(sessionID), storeAt(filename))
    const root = join(folder, "ctx")
    const copy = join(folder, "copy.sqlite")
    const seen = new Set<string>()
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      const exporter = yield* exporterAt({ root, uid: 1000 })
      for (let at = 0; at < events.length; at += 23) {
        yield* log.replay(events.slice(at, at + 23))
        yield* exporter.catchUp
        for (const name of blobsIn(root)) seen.add(name)
      }
    }).pipe(Effect.scoped, Effect.provide(storeAt(copy)))
    const now = new Set(blobsIn(root))
    return { root, filename: copy, gone: new Set([...seen].filter((name) => !now.has(name))) }
  })
)

const read = (root: string, path: string): string => readFileSync(join(folderOf(root), path), "utf8")
const rows = (root: string, path: string): ReadonlyArray<Record<string, unknown>> =>
  existsSync(join(folderOf(root), path))
    ? read(root, path)
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line))
    : []

it.layer(exported, { timeout: "180 seconds" })("the context on disk", (it) => {
  it.effect(
    "PK-2: every source of the pack resolves to a file beside it, and every range to lines that are there",
    () =>
      Effect.map(Tree, ({ root }) => {
        const { items } = JSON.parse(read(root, "context/pack.json"))
        const lines = read(root, "messages.jsonl").split("\n").length - 1
        assert.isAtLeast(items.length, 4)
        for (const { range, source } of items) {
          assert.isTrue(existsSync(join(folderOf(root), "context", source)), source)
          if (range === undefined) continue
          const [from = 0, to = 0] = String(range).split("-").map(Number)
          assert.isTrue(from >= 1 && from <= to && to <= lines, range)
        }
      })
  )

  it.effect("PK-4: what was swapped out is read back from where the index says it lies", () =>
    Effect.map(Tree, ({ root }) => {
      const lines = read(root, "messages.jsonl").split("\n")
      const ranges = rows(root, "context/swap/index.jsonl").filter(({ kind }) => kind === "message_range")
      assert.isAtLeast(ranges.length, 2)
      for (const { id, range } of ranges) {
        const [from = 0, to = 0] = String(range).split("-").map(Number)
        const bytes = lines.slice(from - 1, to).map((line) => `${line}\n`)
        assert.strictEqual(id, `sha256-${sha256(bytes.join(""))}`)
      }
    })
  )

  it.effect("PK-5: each blob is under the name of its bytes, and the media that messages name are there", () =>
    Effect.map(Tree, ({ root }) => {
      for (const name of blobsIn(root)) {
        assert.strictEqual(name, `sha256-${sha256(readFileSync(join(folderOf(root), "context/dedup/blob", name)))}`)
      }
      const named = [...read(root, "messages.jsonl").matchAll(/"blob":"(sha256-[0-9a-f]{64})"/g)].map(
        ([, name]) => name
      )
      assert.isAtLeast(named.length, 1)
      const there = new Set(blobsIn(root))
      for (const name of named) assert.isTrue(name !== undefined && there.has(name), name)
    })
  )

  it.effect("PK-6: blobs of earlier packs are gone, and every one that is left is in the pack or in a message", () =>
    Effect.map(Tree, ({ gone, root }) => {
      assert.isAtLeast(gone.size, 1)
      const text = read(root, "messages.jsonl")
      const indexed = new Set(rows(root, "context/dedup/index.jsonl").map(({ hash }) => hash))
      for (const name of blobsIn(root)) assert.isTrue(indexed.has(name) || text.includes(name), name)
    })
  )

  it.effect("FL-8: written portion by portion, the tree is that of a fresh export, byte for byte", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { filename, root } = yield* Tree
        const fresh = join(yield* temporaryFolder, "ctx")
        yield* Effect.provide(exportAll({ root: fresh, uid: 1000 }), storeAt(filename))
        assert.deepEqual(tree(root), tree(fresh))
      })
    )
  )

  it.effect("IX-4: a context that was deleted comes back with identical bytes", () =>
    Effect.gen(function* () {
      const { filename, root } = yield* Tree
      const before = tree(root)
      rmSync(join(folderOf(root), "context"), { recursive: true })
      yield* Effect.provide(exportAll({ root, uid: 1000 }), storeAt(filename))
      assert.deepEqual(tree(root), before)
    })
  )
})
