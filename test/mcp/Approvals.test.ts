/**
 * What "always" for a server's tool is bound to. Method: real servers as real processes, whose tools change while they run,
 * after a new connection, or because another server has their name.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FastCheck as fc, Layer, TestClock } from "effect"
import type { Rule } from "../../packages/core/src/domain/Rule.ts"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import * as Mcp from "../../packages/mcp/src/Mcp.ts"
import { canonicalJson, fingerprint, type McpServer, serverFingerprint } from "../../packages/mcp/src/McpServer.ts"
import { readListing } from "../../packages/mcp/src/ToolListing.ts"
import { makeWorkbench, textOf } from "../tools/Workbench.ts"
import { makeMcp, obedient } from "./support/Servers.ts"

const answer = () => Effect.succeed(Answer.Always())
const allow = (permission: string): Rule => ({ permission, resource: "*", verdict: "allow" })

const schema = { type: "object", properties: { a: { type: "string" }, b: { type: "number" } }, required: ["a"] }
const grown = { name: "grown", title: "Grown", description: "x".repeat(4_001), inputSchema: schema }
const annotations = { readOnlyHint: true, title: "Harmless" }

/** Each differs from the one before it in one thing. */
const definitions: ReadonlyArray<readonly [what: string, definition: object]> = [
  ["nothing", grown],
  ["description, beyond what the model is shown", { ...grown, description: "x".repeat(4_002) }],
  ["description", { ...grown, description: "Says its input" }],
  ["title", { ...grown, description: "Says its input", title: "Other" }],
  ["annotations", { ...grown, annotations }],
  ["one annotation", { ...grown, annotations: { ...annotations, readOnlyHint: false } }],
  ["a property", { ...grown, inputSchema: { ...schema, properties: { ...schema.properties, c: {} } } }],
  [
    "a property's type",
    { ...grown, inputSchema: { ...schema, properties: { ...schema.properties, c: { type: "null" } } } }
  ],
  ["the required properties", { ...grown, inputSchema: { ...schema, required: ["a", "b"] } }],
  ["a part of the schema that is not shown", { ...grown, inputSchema: { ...schema, not: { required: ["b"] } } }]
]

describe("a tool that changes", () => {
  it.scoped(
    'PM-40: after "always", every change of the definition is asked about once more, and the question says so',
    () =>
      Effect.gen(function* () {
        const { asked, mcp, said, until } = yield* makeMcp({ own: obedient }, { rules: [allow("own_change")], answer })
        yield* mcp.ready
        const before = (yield* mcp.status)[0]?.tools ?? 0
        for (const [at, [what, definition]] of definitions.entries()) {
          // With a further tool, the number of tools says when they are listed anew.
          const marker = at === 0 ? [] : [{ name: `marker_${at}` }]
          yield* said("own_change", { add: [definition, ...marker] })
          yield* until("own", ({ tools }) => tools === before + 1 + at)
          yield* said("own_grown", { a: "1" })
          yield* said("own_grown", { a: "2" })
          assert.lengthOf(asked, at + 1, what)
          assert.strictEqual(asked[at]?.notes.join().includes("changed after a person answered"), at > 0, what)
        }
      })
  )

  it.scoped(
    "PM-40: an answer for the session is bound as well; what was approved needs no question when it returns",
    () =>
      Effect.gen(function* () {
        const { asked, mcp, said, until } = yield* makeMcp(
          { own: obedient },
          { rules: [allow("own_change"), allow("own_fr*")], answer: () => Effect.succeed(Answer.Session()) }
        )
        yield* mcp.ready
        const before = (yield* mcp.status)[0]?.tools ?? 0
        for (const [at, description] of ["one", "two", "one"].entries()) {
          const add = ["grown", "free"].map((name) => ({ name, description }))
          yield* said("own_change", { add: [...add, ...(at === 0 ? [] : [{ name: `marker_${at}` }])] })
          yield* until("own", ({ tools }) => tools === before + 2 + at)
          yield* said("own_grown")
          yield* said("own_free")
        }
        assert.deepStrictEqual(
          asked.map(({ notes, permission }) => [permission, notes.length]),
          [
            ["own_grown", 0],
            ["own_grown", 1]
          ]
        )
      })
  )

  it.scoped("PM-40: a server that offers another definition after it was lost is asked about again", () =>
    Effect.gen(function* () {
      const rules = [allow("own_change"), allow("own_pid")]
      const { asked, mcp, said, until } = yield* makeMcp({ own: obedient }, { rules, answer })
      yield* mcp.ready
      const before = (yield* mcp.status)[0]?.tools ?? 0
      yield* said("own_change", { add: [{ name: "echo", description: "Harmless" }, { name: "marker" }] })
      yield* until("own", ({ tools }) => tools === before + 1)
      yield* said("own_echo")
      process.kill(Number(yield* said("own_pid")), "SIGKILL")
      yield* until("own", ({ state }) => state === "failed")
      yield* TestClock.adjust("1 second")
      yield* until("own", ({ state }) => state === "connected")
      yield* said("own_echo")
      yield* said("own_echo")
      assert.lengthOf(asked, 2)
      assert.include(asked[1]?.title, "changed after a person answered")
    })
  )

  it.scoped("PM-41: another server under the same name is asked about again, the same one after a restart is not", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({ rules: [], answer })
      const host = Layer.succeed(HostTools, Context.get(bench.context, HostTools))
      const callAt = (own: McpServer) =>
        Effect.scoped(
          Effect.gen(function* () {
            const mcp = Context.get(yield* Layer.build(Layer.provide(Mcp.layer({ own }), host)), Mcp.Mcp)
            yield* mcp.ready
            return textOf(yield* bench.succeed("own_echo", {}))
          })
        )
      const { args, command } = obedient
      const servers: ReadonlyArray<McpServer> = [
        { command, args, env: { SECRET: "one" } },
        { command, args, env: { SECRET: "two" }, timeout: "2 minutes" },
        { command, args: [...args, "other"], env: { SECRET: "two" } },
        { command: "/usr/bin/env", args: [command, ...args] }
      ]
      const questions: Array<number> = []
      for (const server of servers) {
        assert.strictEqual(yield* callAt(server), "echo: {}")
        questions.push(bench.asked.length)
      }
      assert.deepStrictEqual(questions, [1, 1, 2, 3])
      assert.include(bench.asked[2]?.title, "The tool, its server or its shell changed")
    })
  )
})

describe("fingerprints", () => {
  it("PM-41: a server is its command, arguments, folder and names of variables, or its address", () => {
    const base = { command: "npx", args: ["-y", "tool"], cwd: "/srv", env: { A: "1", B: "2" } }
    const same: ReadonlyArray<McpServer> = [
      { ...base, env: { B: "9", A: "8" }, timeout: "5 minutes", enabled: true },
      { env: base.env, cwd: "/srv", args: base.args, command: "npx" }
    ]
    const other: ReadonlyArray<McpServer> = [
      { ...base, command: "/usr/bin/npx" },
      { ...base, args: ["tool", "-y"] },
      { ...base, args: ["-y tool"] },
      { ...base, args: [] },
      { ...base, cwd: "/srv/other" },
      { ...base, env: { A: "1" } },
      { ...base, env: { ...base.env, NODE_OPTIONS: "" } },
      { url: "https://example.com/npx" },
      { url: "https://example.com:8443/npx" },
      { url: "http://example.com/npx" },
      { url: "https://example.com/npx?tenant=2" }
    ]
    for (const server of same) assert.strictEqual(serverFingerprint(server), serverFingerprint(base))
    assert.strictEqual(new Set([base, ...other].map(serverFingerprint)).size, other.length + 1)
    assert.strictEqual(
      serverFingerprint({ url: "https://example.com", headers: { Authorization: "one" } }),
      serverFingerprint({ url: "https://EXAMPLE.com:443/", headers: { Authorization: "two" } })
    )
  })

  it("PM-48, PM-41: the order of keys in a tool's description does not matter, at any depth; that of lists does", () => {
    const printOf = (json: string) => readListing([JSON.parse(json)]).tools[0]?.fingerprint
    const one = printOf(
      '{"name":"t","description":"d","inputSchema":{"type":"object","required":["a","b"],"properties":{"a":{"x":1,"y":2}}}}'
    )
    const two = printOf(
      '{"inputSchema":{"properties":{"a":{"y":2,"x":1}},"type":"object","required":["a","b"]},"description":"d","name":"t"}'
    )
    const three = printOf(
      '{"name":"t","description":"d","inputSchema":{"type":"object","required":["b","a"],"properties":{"a":{"x":1,"y":2}}}}'
    )
    assert.isDefined(one)
    assert.strictEqual(one, two)
    assert.notStrictEqual(one, three)
  })

  it.prop(
    "PM-41: two JSON values have one fingerprint only when they are equal",
    [fc.jsonValue(), fc.jsonValue()],
    ([a, b]) => {
      const parsed: unknown = JSON.parse(canonicalJson(a))
      assert.deepStrictEqual(parsed, JSON.parse(JSON.stringify(a)))
      assert.strictEqual(fingerprint(a) === fingerprint(b), canonicalJson(a) === canonicalJson(b))
    }
  )

  it("PM-41: keys and values that look alike are not alike", () => {
    const values = [
      {},
      [],
      "{}",
      { a: null },
      { a: [] },
      { "a:b": 1 },
      { a: { b: 1 } },
      '{"a":1}',
      { a: "1" },
      { a: 1 },
      1,
      "1",
      null,
      true,
      JSON.parse('{"__proto__":{"a":1}}')
    ]
    assert.strictEqual(new Set(values.map(fingerprint)).size, values.length)
  })
})
