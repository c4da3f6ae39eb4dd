import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck, Redacted, Schema, Struct } from "effect"
import { describeIssues } from "../../packages/log/src/support/Issues.ts"
import { McpServers, redactor } from "../../packages/mcp/src/McpServer.ts"
import { describeListing, readListing } from "../../packages/mcp/src/ToolListing.ts"
import { offeredNames } from "../../packages/mcp/src/OfferedTools.ts"
import { forAll } from "../support/Cases.ts"

const decode = Schema.decodeUnknownEither(McpServers, { errors: "all", onExcessProperty: "error" })

const refused = (value: unknown): string =>
  Either.match(decode(value), {
    onLeft: (error) => describeIssues(error, "mcp"),
    onRight: () => assert.fail(`${JSON.stringify(value)} was taken`)
  })

describe("the configuration of servers", () => {
  it("MC-1: a command or a URL, with what belongs to it", () => {
    const servers: McpServers = {
      files: { command: "node", args: ["server.js"], env: { KEY: "k" }, cwd: "/tmp", timeout: "90 seconds" },
      "far-off": { url: "https://example.com/mcp", headers: { authorization: "Bearer x" }, enabled: false }
    }
    assert.deepStrictEqual(Either.getOrThrow(decode(servers)), servers)
    assert.isTrue(Either.isRight(decode({ a: { command: "c", env: { KEY: Redacted.make("k") } } })))
  })

  it.each([
    ["a name that is none of ours", { "No Good": { command: "c" } }, "No Good"],
    ["neither a command nor a URL", { a: {} }, "a"],
    ["both", { a: { command: "c", url: "http://x" } }, "a"],
    ["an unknown key", { a: { command: "c", argv: [] } }, "argv"],
    ["a URL of another kind", { a: { url: "file:///etc" } }, "http://"],
    ["a timeout without a unit", { a: { command: "c", timeout: 90 } }, "90 seconds"],
    ["a timeout without end", { a: { command: "c", timeout: "Infinity" } }, "90 seconds"],
    ["a name of a variable with =", { a: { command: "c", env: { "A=B": "c" } } }, "env"]
  ])("MC-1: %s is refused, and the message says where", (_, value, where) => {
    assert.include(refused(value), where)
  })

  it("MC-9: what is refused is not shown where it may be a secret", () => {
    const all = [
      refused({ a: { command: "c", env: { KEY: 12345678 } } }),
      refused({ a: { url: "http://x", headers: { key: 12345678 } } }),
      refused({ a: { url: "http://x", headers: { key: "secret\nvalue" } } }),
      refused({ a: { url: "ftp://user:12345678@x" } })
    ]
    assert.notMatch(all.join(), /12345678|secret/)
    assert.include(all[0], "quotes")
  })

  it("MC-9: a text's end has no part of a secret, wherever it is cut", () => {
    const secret = "0123456789abcdef"
    const { last } = redactor({ command: "c", env: { KEY: secret } })
    forAll([FastCheck.nat(60), FastCheck.nat(60), FastCheck.integer({ min: 1, max: 60 })], 40, (a, b, limit) => {
      const text = `${"-".repeat(a)}${secret}${"-".repeat(b)}`
      // As much is kept as a tail of this limit asks for.
      assert.notMatch(last(text.slice(-(limit + secret.length)), limit).replace("<redacted>", ""), /[0-9a-f]/)
    })
  })
})

describe("the names of tools", () => {
  const provider = /^[A-Za-z0-9_-]{1,64}$/
  const named = (server: string, servers: ReadonlyArray<string>, ...tools: ReadonlyArray<string>) => [
    ...offeredNames(server, servers, tools).keys()
  ]

  it("MC-10: server and tool, in the characters and the length that providers take", () => {
    assert.deepStrictEqual(named("git", ["git"], "log", "show.file"), ["git_log", "git_show_file"])
    const [long] = named("git", ["git"], "x".repeat(100))
    assert.match(long ?? "", provider)
    assert.deepStrictEqual(named("apply", ["apply"], "patch")[0]?.startsWith("apply_patch_"), true)
  })

  it("MC-39, MC-10: tools that would have one name keep apart, also those of two servers", () => {
    const [dotted, plain] = named("git", ["git"], "a.b", "a_b")
    assert.strictEqual(plain, "git_a_b")
    assert.match(dotted ?? "", /^git_a_b_[0-9a-f]{8}$/)
    const servers = ["git", "git_hub"]
    assert.deepStrictEqual(named("git_hub", servers, "log"), ["git_hub_log"])
    assert.match(named("git", servers, "hub_log")[0] ?? "", /^git_hub_log_[0-9a-f]{8}$/)
  })

  it("MC-10: every tool has a name of its own, and the same in whatever order they are listed", () => {
    const tool = FastCheck.stringOf(FastCheck.constantFrom("a", "_", ".", "é", "-"), { minLength: 1, maxLength: 70 })
    forAll([FastCheck.uniqueArray(tool, { maxLength: 20 })], 40, (tools) => {
      const names = offeredNames("s", ["s", "s_a"], tools)
      assert.strictEqual(names.size, tools.length)
      for (const name of names.keys()) assert.match(name, provider)
      const turned = offeredNames("s", ["s_a", "s"], tools.toReversed())
      assert.deepStrictEqual([...turned].sort(), [...names].sort())
    })
  })
})

describe("the list of tools", () => {
  it("MC-12: what cannot be offered is left out by name, and takes nothing with it", () => {
    const { leftOut, tools } = readListing([
      { name: "good", title: "Good" },
      { inputSchema: {} },
      { name: "large", inputSchema: { description: "x".repeat(40_000) } },
      { name: "task", execution: { taskSupport: "required" } },
      "words",
      { name: "good", description: "once more" }
    ])
    const shown = tools.map(({ fingerprint: _print, ...tool }) => tool)
    assert.deepStrictEqual(shown, [{ name: "good", description: "Good", inputSchema: {} }])
    assert.lengthOf(leftOut, 4)
    assert.include(leftOut.join(), "large (its schema has more than 32768 bytes)")
  })

  it("MC-12: a tool that is nested too deeply is left out, wherever that is, and takes nothing with it", () => {
    const deep: unknown = JSON.parse("[".repeat(100_000) + "]".repeat(100_000))
    for (const part of ["inputSchema", "annotations", "title"]) {
      const { leftOut, tools } = readListing([{ name: "one" }, { name: "deep", [part]: { deep } }, { name: "two" }])
      assert.deepStrictEqual(tools.map(Struct.get("name")), ["one", "two"])
      // A Node that writes deeply nested JSON measures the schema instead.
      assert.match(
        leftOut.join(),
        /^(?:a tool that is nested too deeply|deep \(its schema has more than 32768 bytes\))$/
      )
    }
  })

  it("MC-687: tools with a repaired schema are named, and so are those left out", () => {
    const faulty = { type: "object", properties: { n: { type: "any" } } }
    const listing = readListing([
      { name: "good" },
      { name: "odd", inputSchema: faulty },
      { name: "none", inputSchema: [] }
    ])
    assert.strictEqual(describeListing(listing), "tools offered with a repaired input schema: odd, none")
    assert.strictEqual(
      describeListing({ ...listing, leftOut: ["large"] }),
      "tools not offered: large; tools offered with a repaired input schema: odd, none"
    )
    assert.isUndefined(describeListing(readListing([{ name: "good" }])))
  })

  it("MC-12: a description is bounded", () => {
    const [tool] = readListing([{ name: "wordy", description: "x".repeat(10_000) }]).tools
    assert.strictEqual(tool?.description, `${"x".repeat(4_000)}...`)
  })
})
