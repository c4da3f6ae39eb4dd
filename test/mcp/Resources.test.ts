import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readContents } from "../../packages/mcp/src/Content.ts"
import { temporaryFolder } from "../tools/Workbench.ts"
import { filesystem, makeMcp, obedient } from "./support/Servers.ts"

describe("resources", () => {
  it.scoped("MC-30: are listed with what a reader needs, and none where a server has none", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { mcp } = yield* makeMcp({ own: obedient, files: filesystem(folder) })
      assert.deepStrictEqual(yield* mcp.listResources("own"), [
        { uri: "test://text", name: "text", description: "Some text", mime: "text/plain" },
        { uri: "test://long", name: "long" }
      ])
      assert.deepStrictEqual(yield* mcp.listResources("files"), [])
    })
  )

  it.scoped("MC-31: are read as text and files; a long one is cut where a character ends, and says so", () =>
    Effect.gen(function* () {
      const { mcp } = yield* makeMcp({ own: obedient })
      assert.deepStrictEqual(yield* mcp.readResource("own", "test://text"), [
        { type: "text", text: "one" },
        { type: "file", uri: "data:image/png;base64,aGVsbG8=", mime: "image/png", name: "test://text" }
      ])
      const long = yield* mcp.readResource("own", "test://long")
      assert.lengthOf(long, 1)
      const text = long[0]?.type === "text" ? long[0].text : ""
      assert.isTrue(text.startsWith(`${"é".repeat(131_072)}\n[Cut: the first 262144 of 400000 bytes`))
    })
  )

  it("MC-31: too many parts, and too large files, are left out and counted", () => {
    const contents = Array.from({ length: 120 }, (_, at) => ({ uri: `test://${at}`, text: "x" }))
    const shown = readContents({ contents: [{ uri: "test://big", blob: "A".repeat(8_000_000) }, ...contents] })
    assert.lengthOf(shown, 101)
    assert.deepStrictEqual(shown[0], { type: "text", text: "[test://big: too large to be shown]" })
    assert.deepStrictEqual(shown.at(-1), { type: "text", text: "[21 more parts are left out]" })
  })

  it.scoped("MC-31: what cannot be read says why: no such server, one that is not there, no such resource", () =>
    Effect.gen(function* () {
      const { mcp } = yield* makeMcp({ own: obedient, missing: { command: "no-such-command" } })
      const why = (server: string, uri: string) =>
        Effect.map(Effect.flip(mcp.readResource(server, uri)), ({ message, reason }) => [reason, message] as const)
      assert.deepStrictEqual(yield* why("nothing", "test://text"), [
        "unknown",
        'MCP server "nothing": no server has this name; configured: own, missing'
      ])
      assert.deepStrictEqual(yield* why("missing", "test://text"), [
        "unavailable",
        'MCP server "missing": there is no command "no-such-command"'
      ])
      const [reason, message] = yield* why("own", "test://none")
      assert.strictEqual(reason, "refused")
      assert.include(message, "there is no such resource")
    })
  )
})
