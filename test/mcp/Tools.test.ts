import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Queue, type Scope } from "effect"
import type { ToolOutput } from "../../packages/core/src/domain/ToolOutput.ts"
import type { McpServer } from "../../packages/mcp/src/Mcp.ts"
import { temporaryFolder } from "../tools/Workbench.ts"
import { everything, everythingHttp, filesystem, freePort, makeMcp, obedient } from "./support/Servers.ts"

const ways: Record<string, Effect.Effect<McpServer, never, Scope.Scope>> = {
  "standard streams": Effect.succeed(everything),
  "streamable HTTP": Effect.map(Effect.flatMap(freePort, everythingHttp), ({ url }) => ({ url }))
}

for (const [way, server] of Object.entries(ways)) {
  describe(`the reference server over ${way}`, () => {
    it.scoped("MC-3: is connected, and its tools are offered under its name with its own schema", () =>
      Effect.gen(function* () {
        const { bench, mcp } = yield* Effect.flatMap(server, (it) => makeMcp({ every: it }))
        yield* mcp.ready
        const [status] = yield* mcp.status
        assert.strictEqual(status?.state, "connected")
        const { definitions } = yield* bench.registry.materialize(bench.agent)
        assert.strictEqual(definitions.filter(({ name }) => name.startsWith("every_")).length, status?.tools)
        const sum = definitions.find(({ name }) => name === "every_get-sum")
        if (sum === undefined) return assert.fail("get-sum is not offered")
        const schema = JSON.parse(JSON.stringify(Tool.getJsonSchema(sum as unknown as Tool.Tool<string, never>)))
        assert.strictEqual(schema.type, "object")
        assert.deepStrictEqual(Object.keys(schema.properties), ["a", "b"])
        assert.deepStrictEqual(schema.required, ["a", "b"])
      })
    )

    it.scoped("MC-20: calls are served, and bad input is the server's to refuse", () =>
      Effect.gen(function* () {
        const { fail, mcp, said } = yield* Effect.flatMap(server, (it) => makeMcp({ every: it }))
        yield* mcp.ready
        assert.strictEqual(yield* said("every_echo", { message: "ünï" }), "Echo: ünï")
        assert.include(yield* said("every_get-sum", { a: 2, b: 40 }), "42")
        const refused = yield* fail("every_get-sum", { a: "two" })
        assert.strictEqual(refused.type, "tool.execution")
        assert.include(refused.message, "expected number")
        assert.strictEqual((yield* fail("every_echo", [1])).type, "tool.input")
      })
    )

    it.scoped("MC-40, MC-21: an image comes as a file, a structured result once", () =>
      Effect.gen(function* () {
        const { mcp, succeed } = yield* Effect.flatMap(server, (it) => makeMcp({ every: it }))
        yield* mcp.ready
        const image = (yield* succeed("every_get-tiny-image", {})).content.find(({ type }) => type === "file")
        if (image?.type !== "file") return assert.fail("there is no image")
        assert.strictEqual(image.mime, "image/png")
        assert.strictEqual(
          Buffer.from(image.uri.split(",")[1] ?? "", "base64")
            .subarray(1, 4)
            .toString(),
          "PNG"
        )
        const weather = yield* succeed("every_get-structured-content", { location: "Chicago" })
        assert.deepStrictEqual(weather, {
          structured: { temperature: 36, conditions: "Light rain / drizzle", humidity: 82 },
          content: []
        })
        const links = yield* succeed("every_get-resource-links", { count: 2 })
        assert.strictEqual(links.content.filter(({ type }) => type === "text").length, 3)
        assert.include(JSON.stringify(links.content), "[resource demo://resource/dynamic/")
      })
    )

    it.scoped("MC-22: progress is reported while the call runs", () =>
      Effect.gen(function* () {
        const { mcp, succeed } = yield* Effect.flatMap(server, (it) => makeMcp({ every: it }))
        yield* mcp.ready
        const reports = yield* Queue.unbounded<ToolOutput>()
        yield* succeed(
          "every_trigger-long-running-operation",
          { duration: 0.2, steps: 2 },
          { progress: (report) => Queue.offer(reports, report) }
        )
        assert.deepStrictEqual((yield* Queue.take(reports)).structured, { progress: 1, total: 2 })
      })
    )

    it.scoped("MC-30: its resources are listed and read", () =>
      Effect.gen(function* () {
        const { mcp } = yield* Effect.flatMap(server, (it) => makeMcp({ every: it }))
        const listed = yield* mcp.listResources("every")
        const first = listed[0]
        if (first === undefined) return assert.fail("there are no resources")
        const [content] = yield* mcp.readResource("every", first.uri)
        assert.strictEqual(content?.type, "text")
      })
    )
  })
}

describe("servers", () => {
  it.scoped("MC-3: a server that works on files does so, where its own configuration allows it", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { fail, mcp, said } = yield* makeMcp({ files: filesystem(folder) })
      yield* mcp.ready
      const path = join(folder, "note.txt")
      yield* said("files_write_file", { path, content: "kept\n" })
      assert.strictEqual(readFileSync(path, "utf8"), "kept\n")
      assert.include(yield* said("files_read_text_file", { path }), "kept")
      assert.include((yield* fail("files_read_text_file", { path: "/etc/hostname" })).message, "denied")
    })
  )

  it.scoped("MC-5: a process gets the variables it was given and harmless ones, none of our keys", () =>
    Effect.gen(function* () {
      process.env["TEST_MCP_API_KEY"] = "ours-alone"
      yield* Effect.addFinalizer(() => Effect.sync(() => delete process.env["TEST_MCP_API_KEY"]))
      const { mcp, said } = yield* makeMcp({ every: { ...everything, env: { GIVEN: "to it" } } })
      yield* mcp.ready
      const env = JSON.parse(yield* said("every_get-env"))
      assert.strictEqual(env.GIVEN, "to it")
      assert.strictEqual(env.PATH, process.env["PATH"])
      assert.notProperty(env, "TEST_MCP_API_KEY")
    })
  )

  it.scoped("MC-6: what a server asks of us is refused", () =>
    Effect.gen(function* () {
      const { mcp, said } = yield* makeMcp({ own: obedient })
      yield* mcp.ready
      for (const method of ["sampling/createMessage", "elicitation/create", "roots/list"]) {
        assert.strictEqual(yield* said("own_ask", { method }), "refused with -32601")
      }
    })
  )

  it.scoped("MC-2: a server that is not enabled is left alone", () =>
    Effect.gen(function* () {
      const { mcp } = yield* makeMcp({ off: { command: "/nowhere", enabled: false } })
      yield* mcp.ready
      assert.deepStrictEqual(yield* mcp.status, [])
    })
  )
})
