import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue, type Scope, TestClock } from "effect"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import type { McpServer } from "../../packages/mcp/src/Mcp.ts"
import { makeMcp, obedient, obedientHttp } from "./support/Servers.ts"

const secret = "s3cret of the server"

const ways: Record<string, Effect.Effect<McpServer, never, Scope.Scope>> = {
  "standard streams": Effect.succeed({ ...obedient, env: { SECRET: secret } }),
  "streamable HTTP": Effect.map(obedientHttp(), ({ url }) => ({ url, headers: { "x-secret": secret } }))
}

const connected = Effect.fnUntraced(function* (way: Effect.Effect<McpServer, never, Scope.Scope>) {
  const its = yield* makeMcp({ own: yield* way })
  yield* its.mcp.ready
  return its
})

/** A call that is under way: the server has reported that it began. */
const underWay = Effect.fnUntraced(function* ({ settle }: Effect.Effect.Success<ReturnType<typeof connected>>) {
  const reports = yield* Queue.unbounded<ToolOutput>()
  const fiber = yield* Effect.fork(settle("own_wait", {}, { progress: (report) => Queue.offer(reports, report) }))
  return { fiber, report: yield* Queue.take(reports) }
})

for (const [name, way] of Object.entries(ways)) {
  describe(`a call over ${name}`, () => {
    it.scoped("MC-20: interrupting it cancels it on the server", () =>
      Effect.gen(function* () {
        const its = yield* connected(way)
        const { fiber, report } = yield* underWay(its)
        assert.deepStrictEqual(report, {
          structured: { progress: 1, total: 3 },
          content: [{ type: "text", text: "1 of 3: begun" }]
        })
        assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(fiber)))
        assert.strictEqual(yield* its.said("own_cancelled"), "a call was cancelled")
      })
    )

    it.scoped("MC-23: it ends after a minute, is cancelled on the server, and the server stays connected", () =>
      Effect.gen(function* () {
        const its = yield* connected(way)
        const { fiber } = yield* underWay(its)
        yield* TestClock.adjust("1 minute")
        const settled = yield* Fiber.join(fiber)
        if (settled._tag !== "Failure") return assert.fail("the call succeeded")
        assert.strictEqual(settled.error.type, "tool.timeout")
        assert.include(settled.error.message, '"own" gave no result within 1m')
        assert.strictEqual(yield* its.said("own_cancelled"), "a call was cancelled")
      })
    )

    it.scoped("MC-24: an error of the tool has its words, one of the protocol the reason without our secrets", () =>
      Effect.gen(function* () {
        const { fail } = yield* connected(way)
        assert.deepStrictEqual(yield* fail("own_fail", {}), {
          type: "tool.execution",
          message: "the tool's own words"
        })
        const refused = yield* fail("own_refuse", {})
        assert.strictEqual(refused.type, "tool.execution")
        assert.include(refused.message, "refused with <redacted>")
      })
    )
  })
}

describe("a result", () => {
  it.scoped("MC-21: every kind of content is text or a file that a provider takes", () =>
    Effect.gen(function* () {
      const { succeed } = yield* connected(Effect.succeed(obedient))
      const file = (mime: string) => ({ type: "file", uri: `data:${mime};base64,aGVsbG8=`, mime })
      const text = (words: string) => ({ type: "text", text: words })
      assert.deepStrictEqual((yield* succeed("own_contents", {})).content, [
        text("words"),
        text("[a picture (image/png) cannot be shown: it is not a picture in a known format]"),
        file("audio/wav"),
        text("[application/octet-stream: no data]"),
        text('<resource uri="test://a">\ninside\n</resource>'),
        { ...file("application/zip"), name: "test://b" },
        text("[resource test://c: link, text/plain]")
      ] as ToolOutput["content"])
    })
  )

  it.scoped("MC-21: a long text is cut and kept whole in a file, and too large a file is refused with its size", () =>
    Effect.gen(function* () {
      const { fail, succeed } = yield* connected(Effect.succeed(obedient))
      const long = yield* succeed("own_long", {})
      assert.lengthOf(long.outputPaths ?? [], 1)
      assert.isBelow(JSON.stringify(long.content).length, 60_000)
      const large = yield* fail("own_large", {})
      assert.strictEqual(large.type, "tool.output")
      assert.include(large.message, "5242880")
    })
  )
})
