/** What `ctx` has of its own because it loads no Effect: names, folders and rows as the other packages have them. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, FastCheck, Schema } from "effect"
import * as Layout from "@daybook/files"
import { history, latest, type Out, parseRow, rowText } from "../../packages/cli/src/ctx/CtxCommands.ts"
import { parse } from "../../packages/cli/src/ctx/Options.ts"
import * as Options from "../../packages/cli/src/ctx/Options.ts"
import { isName as coreIsName, SessionName } from "../../packages/log/src/domain/Address.ts"
import { MessageRow } from "../../packages/transcript/src/row/Rows.ts"
import { cases } from "../support/Cases.ts"
import { type Files, houseOf, row, text, uid, writeSession } from "./support/SessionTree.ts"

describe("ctx", () => {
  it.prop(
    "NA-1: what is a name here is one everywhere, and the other way round",
    [
      FastCheck.oneof(
        FastCheck.string(),
        FastCheck.stringMatching(/^[a-zA-Z0-9._+-]{0,66}$/),
        FastCheck.stringMatching(/^[a-z]{1,3}\.(sock|d|sock2|dd)$/),
        FastCheck.constantFrom("index", "a\n", "\na", "a\u0000", "list", "current", "by-cwd")
      )
    ],
    ([name]) => {
      assert.strictEqual(Options.isName(name), coreIsName(name))
      assert.strictEqual(Options.isSessionName(name), Schema.is(SessionName)(name))
    },
    { fastCheck: { numRuns: cases(800) } }
  )

  it("CL-101: sessions are looked for where the layout has them", () => {
    for (const kind of ["agent", "model"] as const) {
      const name = "some.name+1"
      const folder = (owner: Options.House["owner"]) => Options.houseSegments({ kind, name, owner }).join("/")
      assert.strictEqual(folder({ uid: 1000 }), Layout.houseFolder({ scope: "private", uid: 1000, kind, name }))
      assert.strictEqual(
        folder({ shared: "team" }),
        Layout.houseFolder({ scope: "shared", shared: "team", kind, name })
      )
    }
    assert.strictEqual(Options.cwdHash("/work/ä"), Layout.cwdHash("/work/ä"))
  })

  it("CL-102: a working folder has one way to be written", () => {
    for (const [given, canonical] of [
      ["/", "/"],
      ["//", "/"],
      ["/work/", "/work"],
      ["//a/./b//", "/a/b"],
      ["/a b/ä", "/a b/ä"],
      ["/..a/b..", "/..a/b.."],
      ["work", undefined],
      ["", undefined],
      ["/a/..", undefined],
      ["/../a", undefined],
      ["/a\u0000b", undefined]
    ] as const) {
      assert.strictEqual(Options.canonicalCwd(given), canonical)
    }
  })

  it.prop(
    "CL-107: every row that the schema allows is shown, whatever it holds, and nothing of it moves a terminal",
    [Arbitrary.make(MessageRow)],
    ([row]) => {
      const parsed = parseRow(JSON.stringify(Schema.encodeSync(MessageRow)(row)))
      assert.isDefined(parsed)
      if (parsed === undefined) return
      const shown = rowText(parsed, true)
      assert.notMatch(shown, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
      assert.isTrue(shown.endsWith("\n\n"))
      if (row.role === "tool") assert.strictEqual(shown.trimEnd().split("\n").length, 1)
    }
  )

  it("CL-107: what a later version adds is named, not refused", () => {
    const parsed = parseRow(
      '{"role":"critic","time":"2027-01-01T00:00:00.000Z","content":[{"type":"song","notes":3}],"x":1}'
    )
    assert.isDefined(parsed)
    if (parsed !== undefined) assert.strictEqual(rowText(parsed, false), "## critic  2027-01-01 00:00:00\n\n[song]\n\n")
  })

  /** Runs a command of `ctx` on a terminal over one session with these files. */
  const onTerminal = Effect.fnUntraced(function* (files: Files, run: typeof latest, words: ReadonlyArray<string>) {
    const root = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-ctx-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    writeSession(houseOf(root), "default", files)
    const parts: Array<Uint8Array> = []
    const out: Out = {
      terminal: true,
      write: async (text) => void parts.push(typeof text === "string" ? Buffer.from(text) : text),
      note: () => undefined
    }
    yield* Effect.promise(() => run(out, root, parse(words, uid)))
    return Buffer.concat(parts).toString("utf8")
  })

  it.scoped(
    "CL-108: on a terminal controls are signs, line ends of other systems are line ends, wherever they fall",
    () =>
      Effect.gen(function* () {
        // Every way in which the end of a line can lie across what is read at once.
        for (let before = 65_530; before < 65_540; before++) {
          const words = `${"x".repeat(before)}\r\nred \u001b[31m\rß`
          const shown = yield* onTerminal({ latest: `${words}\n` }, latest, ["latest", "coder"])
          assert.isTrue(shown === `${"x".repeat(before)}\nred \u241b[31m\u240dß\n`, String(before))
          const json = yield* onTerminal({ latest: `${words}\n` }, latest, ["latest", "coder", "--json"])
          assert.isTrue(JSON.parse(json).text === words, String(before))
        }
      })
  )

  it.scoped("CL-107: rows for a terminal hold no control and read back as what they are", () =>
    Effect.gen(function* () {
      const rows = row("user", text("\u009b31m\u202eabc\u007f\n"))
      const shown = yield* onTerminal({ messages: rows }, history, ["history", "coder", "--json"])
      assert.notMatch(shown, /[\u007f-\u009f\u202a-\u202e]/)
      assert.deepStrictEqual(JSON.parse(shown), JSON.parse(rows))
    })
  )
})
