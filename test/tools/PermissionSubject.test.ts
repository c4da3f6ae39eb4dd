/** What a person is told of a call before it is allowed. Method: real tools in a folder; nobody allows anything. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { diffOf } from "../../packages/core/src/permission/PermissionSubject.ts"
import { makeWorkbench } from "./Workbench.ts"

describe("PermissionSubject", () => {
  it.each([
    ["", "a\nb\n", "+a\n+b"],
    ["a\n", "", "-a"],
    ["a\nb\nc\nd\ne\nf\n", "a\nb\nc\nX\ne\nf\n", "@@ line 2\n b\n c\n-d\n+X\n e\n f"],
    ["a\n", "a", " a\n@@ the last line loses its line break"],
    ["a\nb\n", "a\nb\nc\n", " a\n b\n+c"],
    ["a\na\na\n", "a\na\n", " a\n a\n-a"],
    ["same", "same", ""]
  ])("PM-20: from %j to %j the change is %j", (before, after, diff) => {
    assert.strictEqual(diffOf(before, after), diff)
  })

  it.scoped("PM-20: each tool says all of what it would do, and which tool it is", () =>
    Effect.gen(function* () {
      const { asked, fail, folder, outside } = yield* makeWorkbench({ rules: [] })
      writeFileSync(join(folder, "a.txt"), "one\ntwo\nthree\n")
      const long = `echo ${"x".repeat(5_000)}`
      yield* fail("bash", { command: long })
      yield* fail("bash", { command: "ls", workdir: outside })
      yield* fail("write", { path: "a.txt", content: "one\n2\nthree\n" })
      yield* fail("write", { path: "b.txt", content: "new\n" })
      yield* fail("edit", { path: "a.txt", oldText: "two", newText: "2" })
      yield* fail("edit", { path: "a.txt", oldText: "nowhere", newText: "2" })
      yield* fail("apply_patch", {
        patch:
          "*** Begin Patch\n*** Update File: a.txt\n*** Move to: c.txt\n@@ one\n-two\n+2\n three\n*** Add File: d.txt\n+new\n*** End Patch"
      })
      yield* fail("read", { path: "a.txt" })
      yield* fail("grep", { pattern: "t.o" })
      assert.deepStrictEqual(
        asked.map(({ subject, tool }) => [tool, subject]),
        [
          ["bash", { type: "command", command: long, folder: ".", warnings: [] }],
          ["bash", { type: "external_directory", folder: outside, command: "ls" }],
          ["write", { type: "change", files: [{ path: "a.txt", change: "replace", diff: " one\n-two\n+2\n three" }] }],
          ["write", { type: "change", files: [{ path: "b.txt", change: "create", diff: "+new" }] }],
          ["edit", { type: "change", files: [{ path: "a.txt", change: "edit", diff: " one\n-two\n+2\n three" }] }],
          ["edit", { type: "change", files: [{ path: "a.txt", change: "edit", diff: "-nowhere\n+2" }] }],
          [
            "apply_patch",
            {
              type: "change",
              files: [
                { path: "a.txt", change: "move", movedTo: "c.txt", diff: "@@ one\n-two\n+2\n three" },
                { path: "d.txt", change: "create", diff: "+new" }
              ]
            }
          ],
          ["read", { type: "read", path: "a.txt" }],
          ["grep", { type: "read", path: ".", pattern: "t.o" }]
        ]
      )
    })
  )
})
