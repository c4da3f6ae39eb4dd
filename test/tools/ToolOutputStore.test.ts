import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { FileSystem } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, FastCheck, Layer, Option, Queue, TestClock } from "effect"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import { cutHead, utf8Prefix } from "../../packages/core/src/support/TextBounds.ts"
import * as ToolOutputStore from "../../packages/core/src/workspace/ToolOutputStore.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { makeWorkbench, sessionID, temporaryFolder, textOf } from "./Workbench.ts"
import { lacks } from "../support/Parts.ts"

const makeStore = Effect.fnUntraced(function* (platform: Layer.Layer<NodeContext.NodeContext> = NodeContext.layer) {
  const root = join(yield* temporaryFolder, "made", "when", "needed")
  const context = yield* Layer.build(Layer.provide(ToolOutputStore.layer({ root }), platform))
  return { root, store: Context.get(context, ToolOutputStore.ToolOutputStore) }
})

const owner = { sessionID, callID: "call_1" }
const textOutput = (...texts: ReadonlyArray<string>): ToolOutput => ({
  structured: { kind: "test" },
  content: texts.map((text) => ({ type: "text", text }))
})
const tooLong = textOutput("x\n".repeat(3_000))
const { bytes: byteLimit, lines: lineLimit, mediaBytes } = ToolOutputStore.outputLimits

const media = (bytes: number): ToolOutput => ({
  structured: {},
  content: [{ type: "file", uri: `data:image/png;base64,${Buffer.alloc(bytes).toString("base64")}`, mime: "image/png" }]
})

describe("ToolOutputStore.bound", () => {
  const fitting: ReadonlyArray<readonly [what: string, text: string]> = [
    ["exactly the lines", "x\n".repeat(lineLimit)],
    ["exactly the bytes", "x".repeat(byteLimit)],
    ["nothing", ""]
  ]
  it.scoped.each(fitting)("TO-21: an output of %s is left as it is, and no file is made", ([, text]) =>
    Effect.gen(function* () {
      const { root, store } = yield* makeStore()
      const output = textOutput(text)
      assert.deepStrictEqual(yield* store.bound(owner, output), output)
      assert.isFalse(existsSync(root))
    })
  )

  const excessive: ReadonlyArray<readonly [what: string, text: string]> = [
    ["one line too many", "x\n".repeat(lineLimit + 1)],
    ["one byte too many", "x".repeat(byteLimit + 1)],
    ["many bytes of few lines", `${"y".repeat(30_000)}\n`.repeat(100)],
    ["characters of four bytes", "\u{1F600}".repeat(20_000)],
    ["lines of very different lengths", `a\n${"b".repeat(60_000)}\nc\n`]
  ]
  it.scoped.each(excessive)(
    "TO-21: an output of %s is cut between characters, says so, and is kept whole",
    ([, text]) =>
      Effect.gen(function* () {
        const { store } = yield* makeStore()
        const bounded = yield* store.bound(owner, textOutput(text))
        const shown = textOf(bounded)
        assert.isAtMost(Buffer.byteLength(shown), byteLimit)
        assert.isAtMost(shown.split("\n").length, lineLimit)
        assert.notInclude(shown, "\uFFFD")
        const [path = ""] = bounded.outputPaths ?? []
        assert.strictEqual(readFileSync(path, "utf8"), text)
        assert.include(shown, path)
        assert.include(shown, `of ${Buffer.byteLength(text)} bytes`)
        assert.deepStrictEqual(bounded.structured, { kind: "test" })
        const beginning = shown.slice(0, shown.indexOf("[Cut:")).replace(/\n$/, "")
        assert.isTrue(text.startsWith(beginning))
      })
  )

  it.scoped("TO-21: the limits hold for all texts of an output together, and its files stay", () =>
    Effect.gen(function* () {
      const { store } = yield* makeStore()
      const { content } = media(10)
      const output = { structured: {}, content: [...textOutput("a\n".repeat(1_500)).content, ...content] }
      const twice = { structured: {}, content: [...output.content, ...output.content] }
      const bounded = yield* store.bound(owner, twice)
      assert.deepStrictEqual(bounded.content.slice(1), [...content, ...content])
      assert.isAtMost(textOf({ ...bounded, content: bounded.content.slice(0, 1) }).split("\n").length, lineLimit)
    })
  )

  it.scoped("TO-21: facts for programs are bounded too, and kept whole", () =>
    Effect.gen(function* () {
      const { store } = yield* makeStore()
      const structured = { rows: Array.from({ length: 10_000 }, (_, index) => ({ index })) }
      const alone = yield* store.bound(owner, { structured, content: [] })
      assert.isBelow(JSON.stringify(alone.structured).length, 200)
      assert.include(textOf(alone), `"index": 0`)
      assert.deepStrictEqual(JSON.parse(readFileSync(alone.outputPaths?.[0] ?? "", "utf8")), structured)
      const beside = yield* store.bound(owner, { ...textOutput("read me"), structured })
      assert.strictEqual(textOf(beside), "read me")
      assert.deepStrictEqual(JSON.parse(readFileSync(beside.outputPaths?.[0] ?? "", "utf8")), structured)
    })
  )

  it.scoped("TO-22: inline files up to 5 MiB are kept inline; beyond that is a typed error with the sizes", () =>
    Effect.gen(function* () {
      const { store } = yield* makeStore()
      assert.deepStrictEqual(yield* store.bound(owner, media(mediaBytes)), media(mediaBytes))
      const error = yield* Effect.flip(store.bound(owner, media(mediaBytes + 1)))
      assert.strictEqual(error._tag, "MediaLimitError")
      assert.include(error.message, String(mediaBytes + 1))
    })
  )

  it.scoped("TO-23: files belong to their owner alone and are never written over, whatever the call is named", () =>
    Effect.gen(function* () {
      const { root, store } = yield* makeStore()
      const names = ["call_1", "call_1", "../../escape", "a/b", "a\u0000b", "", "x".repeat(500)]
      const paths: Array<string> = []
      for (const [index, callID] of names.entries()) {
        const bounded = yield* store.bound({ sessionID, callID }, textOutput(`${index}\n`.repeat(3_000)))
        paths.push(...(bounded.outputPaths ?? []))
      }
      assert.strictEqual(new Set(paths).size, names.length)
      for (const [index, path] of paths.entries()) {
        assert.strictEqual(join(root, readdirSync(root).find((name) => path.endsWith(name)) ?? ""), path)
        assert.strictEqual(readFileSync(path, "utf8").slice(0, 2), `${index}\n`)
        assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      }
      assert.strictEqual(statSync(root).mode & 0o777, 0o700)
    })
  )

  it.scoped.skipIf(lacks("root"))("TO-23: a folder that belongs to another user is not used", () =>
    Effect.gen(function* () {
      const { root, store } = yield* makeStore()
      mkdirSync(root, { recursive: true })
      chownSync(root, 65_534, 65_534)
      const error = yield* Effect.flip(store.bound(owner, tooLong))
      assert.strictEqual(error._tag, "ToolStorageError")
      assert.include(error.message, "another user")
    })
  )

  it.scoped("TO-6: a folder that cannot be made is a ToolStorageError", () =>
    Effect.gen(function* () {
      const { root, store } = yield* makeStore()
      mkdirSync(join(root, ".."), { recursive: true })
      writeFileSync(root, "")
      const error = yield* Effect.flip(store.bound(owner, textOutput("x\n".repeat(3_000))))
      assert.strictEqual(error._tag, "ToolStorageError")
    })
  )
})

describe("kept outputs", () => {
  it.scoped("TO-24: the model reads a kept output by the name it was told, and no other session does", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const store = Context.get(bench.context, ToolOutputStore.ToolOutputStore)
      const whole = Array.from({ length: 4_000 }, (_, index) => `line ${index + 1}\n`).join("")
      const shown = textOf(yield* store.bound(owner, textOutput(whole)))
      const [, path = "", offset = ""] = /path "([^"]+)" and offset (\d+)/.exec(shown) ?? []
      const next = textOf(yield* bench.succeed("read", { path, offset: Number(offset), limit: 1 }))
      assert.include(next, `line ${offset}\n`)
      assert.include(shown, `line ${Number(offset) - 1}\n`)
      assert.notInclude(shown, `line ${offset}\n`)
      const error = yield* bench.fail("read", { path }, { sessionID: SessionID.make("ses_other") })
      assert.strictEqual(error.type, "file.missing")
    })
  )

  it.scoped("PG-36: on another machine the model is told that a kept output is gone, and what to do", () =>
    Effect.gen(function* () {
      const [bench, elsewhere] = [yield* makeWorkbench(), yield* makeWorkbench()]
      const store = Context.get(bench.context, ToolOutputStore.ToolOutputStore)
      const shown = textOf(yield* store.bound(owner, textOutput("line\n".repeat(4_000))))
      const [, path = ""] = /path "([^"]+)"/.exec(shown) ?? []
      const error = yield* elsewhere.fail("read", { path })
      assert.strictEqual(error.type, "file.missing")
      assert.match(
        error.message,
        /^"tool-output:[^"]+" is gone: .* where the tool ran; run the tool again if you need it$/
      )
    })
  )

  it.scoped("TO-24: the model reads a kept output by the path of its file, and no other session does", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const store = Context.get(bench.context, ToolOutputStore.ToolOutputStore)
      const { outputPaths } = yield* store.bound(owner, tooLong)
      const [path = ""] = outputPaths ?? []
      assert.isTrue(existsSync(path))
      const read = yield* bench.succeed("read", { path, limit: 1 })
      assert.match(String(read.structured["path"]), /^tool-output:/)
      assert.isTrue(textOf(read).startsWith("x\n"))
      for (const [given, sessionID] of [
        [path, SessionID.make("ses_other")],
        [join(path, "..", "..", "outputs", "none.txt"), owner.sessionID],
        [`${path}x`, owner.sessionID]
      ] as const) {
        assert.strictEqual((yield* bench.fail("read", { path: given }, { sessionID })).type, "path.outside", given)
      }
    })
  )

  it.scoped("TO-24: a session whose name begins like another's cannot reach its outputs", () =>
    Effect.gen(function* () {
      const { store } = yield* makeStore()
      for (const reference of ["tool-output:.b+call.txt", "tool-output:../x.txt", "tool-output:x", "call_1.txt"]) {
        assert.isTrue(Option.isNone(store.locate(SessionID.make("ses_a"), reference)))
      }
    })
  )

  it.scoped("TO-25: files older than seven days are swept, younger and foreign ones stay", () =>
    Effect.gen(function* () {
      const { root, store } = yield* makeStore()
      yield* store.sweep
      const keep = Effect.map(store.bound(owner, tooLong), ({ outputPaths }) => outputPaths?.[0] ?? "")
      const [old, young] = [yield* keep, yield* keep]
      const foreign = join(root, "notes.txt")
      writeFileSync(foreign, "")
      for (const file of [old, foreign]) utimesSync(file, 0, 0)
      utimesSync(young, 1, 1)
      yield* TestClock.setTime(Duration.toMillis("7 days"))
      yield* store.sweep
      assert.deepStrictEqual([old, young].map(existsSync), [true, true])
      yield* TestClock.setTime(Duration.toMillis("7 days") + 1)
      yield* store.sweep
      assert.deepStrictEqual([old, young, foreign].map(existsSync), [false, true, true])
    })
  )

  it.scoped("TO-25: sweeping happens by itself, an hour after the last time", () =>
    Effect.gen(function* () {
      const [looked, removed] = [yield* Queue.unbounded<string>(), yield* Queue.unbounded<string>()]
      const watched = Layer.map(NodeContext.layer, (context) => {
        const fs = Context.get(context, FileSystem.FileSystem)
        return Context.add(context, FileSystem.FileSystem, {
          ...fs,
          exists: (path) => Effect.tap(fs.exists(path), Queue.offer(looked, path)),
          remove: (path, options) => Effect.tap(fs.remove(path, options), Queue.offer(removed, path))
        })
      })
      const { store } = yield* makeStore(watched)
      yield* Queue.take(looked)
      const { outputPaths } = yield* store.bound(owner, tooLong)
      for (const path of outputPaths ?? [])
        utimesSync(path, new Date(-7 * 24 * 3_600_000), new Date(-7 * 24 * 3_600_000))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* Queue.take(removed), outputPaths?.[0])
    })
  )
})

describe("cutting", () => {
  const piece = FastCheck.constantFrom("a", "\u00e9", "\u20ac", "\u{1F600}", "\n", "\r\n")
  const limits = FastCheck.record({
    lines: FastCheck.integer({ min: 1, max: 5 }),
    bytes: FastCheck.integer({ min: 4, max: 20 })
  })

  it.prop(
    "TO-21: a cut is a prefix within both limits, whole when it fits",
    [FastCheck.string({ unit: piece }), limits],
    ([text, limit]) => {
      const cut = cutHead(text, limit)
      assert.isTrue(text.startsWith(cut.shown))
      assert.strictEqual(cut.bytes, Buffer.byteLength(cut.shown))
      assert.isAtMost(cut.bytes, limit.bytes)
      assert.isAtMost(cut.lines, limit.lines)
      if (Buffer.byteLength(text) <= limit.bytes && cut.lines < limit.lines) assert.strictEqual(cut.shown, text)
    }
  )

  it.prop(
    "TO-21: bytes are cut between characters",
    [FastCheck.string({ unit: piece }), FastCheck.nat(30)],
    ([text, limit]) => {
      const prefix = utf8Prefix(Buffer.from(text), limit)
      assert.isTrue(text.startsWith(Buffer.from(prefix).toString()))
      assert.isAtLeast(prefix.length, Math.min(Buffer.byteLength(text), limit) - 3)
    }
  )
})

describe("a store that keeps nothing", () => {
  const nothing = Layer.build(ToolOutputStore.layerNothing).pipe(
    Effect.map((context) => Context.get(context, ToolOutputStore.ToolOutputStore))
  )

  it.scoped("TO-26: an output that is too long is cut as ever, and says that the rest was not kept", () =>
    Effect.gen(function* () {
      const store = yield* nothing
      const bounded = yield* store.bound(owner, tooLong)
      const shown = textOf(bounded)
      assert.isAtMost(Buffer.byteLength(shown), byteLimit)
      assert.isAtMost(shown.split("\n").length, lineLimit)
      assert.isTrue(shown.startsWith("x\nx\n"))
      assert.match(
        shown,
        /\[Cut: this is the beginning, \d+ of 3000 lines, \d+ of 6000 bytes\. The rest was not kept\.\]$/
      )
      assert.deepStrictEqual(bounded.structured, { kind: "test" })
      assert.notProperty(bounded, "outputPaths")
    })
  )

  it.scoped("TO-26: facts for programs that are too long are left out, with their size; what fits is as it was", () =>
    Effect.gen(function* () {
      const store = yield* nothing
      const structured = { all: "y".repeat(byteLimit) }
      const bytes = Buffer.byteLength(JSON.stringify(structured))
      const { content } = textOutput("short")
      assert.deepStrictEqual(yield* store.bound(owner, { structured, content }), {
        structured: { truncated: true, bytes },
        content
      })
      assert.deepStrictEqual(yield* store.bound(owner, textOutput("short")), textOutput("short"))
      assert.strictEqual((yield* Effect.flip(store.bound(owner, media(mediaBytes + 1))))._tag, "MediaLimitError")
    })
  )

  it.scoped("TO-26: no reference leads anywhere, and no file is opened", () =>
    Effect.gen(function* () {
      const store = yield* nothing
      assert.isTrue(Option.isNone(store.locate(sessionID, "tool-output:call_1.txt")))
      assert.isUndefined(yield* store.open(owner))
      yield* store.sweep
    })
  )
})
