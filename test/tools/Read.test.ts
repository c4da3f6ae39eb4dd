import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import { makeWorkbench, textOf } from "./Workbench.ts"

/** Root may read everything, so until the scope closes the process is somebody else. */
const asNobody = Effect.acquireRelease(
  Effect.sync(() => {
    const root = process.getuid?.() === 0
    if (root) process.seteuid?.(65_534)
    return root
  }),
  (root) => Effect.sync(() => root && process.seteuid?.(0))
)

const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("")

describe("read: files", () => {
  it.scoped("TO-13: a small text file comes as it is", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const content = "\uFEFFfirst\r\nsecond \u00e9\u{1F600}\nno newline at the end"
      writeFileSync(join(bench.folder, "a.txt"), content)
      const output = yield* bench.succeed("read", { path: "a.txt" })
      assert.strictEqual(textOf(output), content)
      assert.deepStrictEqual(output.structured, { type: "text", path: "a.txt", offset: 1, lines: 3 })
    })
  )

  it.scoped("TO-13: a text of many pages is read whole by following its cursor, and no page is cut again", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const whole = lines(1, 5_000)
      writeFileSync(join(bench.folder, "long.txt"), whole)
      let [seen, offset, pages]: [string, unknown, number] = ["", 1, 0]
      while (offset !== undefined) {
        const output = yield* bench.succeed("read", { path: "long.txt", offset })
        assert.isUndefined(output.outputPaths)
        const [first] = output.content
        seen += first?.type === "text" ? first.text : ""
        offset = output.structured["next"]
        pages++
      }
      assert.strictEqual(seen, whole)
      assert.strictEqual(pages, 3)
    })
  )

  it.scoped("TO-13: offset and limit choose the lines, counted from one, and the result names the next", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "long.txt"), lines(1, 50))
      const output = yield* bench.succeed("read", { path: "long.txt", offset: 11, limit: 3 })
      assert.strictEqual(output.structured["next"], 14)
      assert.include(textOf(output), "line 11\nline 12\nline 13\n")
      assert.include(textOf(output), "offset 14")
      const last = yield* bench.succeed("read", { path: "long.txt", offset: 50 })
      assert.strictEqual(textOf(last), "line 50\n")
      const past = yield* bench.fail("read", { path: "long.txt", offset: 51 })
      assert.include(past.message, "50 lines")
    })
  )

  it.scoped("TO-13: a 5 MB file is paged, and a line of 5 MB is clipped with its length told", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "big.txt"), lines(1, 450_000))
      const page = yield* bench.succeed("read", { path: "big.txt", offset: 400_000, limit: 2 })
      assert.include(textOf(page), "line 400000\nline 400001\n")
      const one = "\u20ac".repeat(2_000_000)
      writeFileSync(join(bench.folder, "wide.txt"), `${one}\nafter\n`)
      const wide = textOf(yield* bench.succeed("read", { path: "wide.txt" }))
      assert.isBelow(wide.length, 10_000)
      assert.notInclude(wide, "\uFFFD")
      assert.include(wide, `${6_000_000 - 4_095} more bytes of this line`)
      assert.include(wide, "\nafter\n")
    })
  )

  it.scoped("TO-13: a file that is not text comes whole as base64, and one beyond 5 MiB is refused in words", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const bytes = Buffer.concat([Buffer.from("PK\x03\x04\0"), randomBytes(5 * 1024 * 1024 - 5)])
      writeFileSync(join(bench.folder, "image.zip"), bytes)
      const output = yield* bench.succeed("read", { path: "image.zip" })
      assert.deepStrictEqual(output.content, [
        {
          type: "file",
          uri: `data:application/zip;base64,${bytes.toString("base64")}`,
          mime: "application/zip",
          name: "image.zip"
        }
      ])
      assert.isBelow(JSON.stringify(output.structured).length, 200)
      writeFileSync(join(bench.folder, "larger.bin"), Buffer.concat([bytes, Buffer.from([0])]))
      const error = yield* bench.fail("read", { path: "larger.bin" })
      assert.strictEqual(error.type, "file.tooLarge")
      assert.include(error.message, "5242881")
    })
  )

  const umlauts = "gr\u00fc\u00dfe \u20ac\nzweite\n"
  const swapped = (text: string) => Buffer.from(text, "utf16le").swap16()
  const encodings: ReadonlyArray<readonly [name: string, bytes: Uint8Array, text: string]> = [
    ["Windows-1252 (Latin-1)", Buffer.from("gr\xfc\xdfe \x80\nzweite\n", "latin1"), umlauts],
    ["UTF-16 (little-endian)", Buffer.from(`\uFEFF${umlauts}`, "utf16le"), umlauts],
    ["UTF-16 (big-endian)", swapped(`\uFEFF${umlauts}`), umlauts],
    // The first byte that is not UTF-8 comes after the sample.
    ["Windows-1252 (Latin-1)", Buffer.from(`${lines(1, 1_500)}\xe9\n`, "latin1"), `${lines(1, 1_500)}\u00e9\n`]
  ]
  it.scoped.each(encodings)("TO-540: text in %s is read as text, and its encoding is named", ([name, bytes, text]) =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a.txt"), bytes)
      const output = yield* bench.succeed("read", { path: "a.txt" })
      assert.strictEqual(output.structured["type"], "text")
      assert.strictEqual(textOf(output), `${text}\n[The file is ${name}; changes keep that encoding.]`)
      const page = yield* bench.succeed("read", { path: "a.txt", offset: 2, limit: 1 })
      assert.include(textOf(page), `${text.split("\n")[1]}\n`)
    })
  )

  it.scoped("TO-35: a stray byte in UTF-8 is shown as U+FFFD, with a note", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const stray = [Buffer.from(lines(1, 1_500)), Buffer.from("caf\u00e9 \u4f60"), Buffer.from([0xff, 0x0a])]
      writeFileSync(join(bench.folder, "stray.log"), Buffer.concat(stray))
      const shown = textOf(yield* bench.succeed("read", { path: "stray.log" }))
      assert.include(shown, "caf\u00e9 \u4f60\uFFFD\n")
      assert.include(shown, "not UTF-8")
    })
  )

  it.scoped("PC-640: a document is one also if its bytes look like text, and a broken one is a failure", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "a.pdf"), "%PDF-1.4\ntrailer\n<<>>\n%%EOF\n")
      writeFileSync(join(bench.folder, "b.pdf"), "%PDF-1.4\nnot really a document\n")
      const { content } = yield* bench.succeed("read", { path: "a.pdf" })
      assert.deepInclude(content[0], { type: "file", mime: "application/pdf" })
      const { message } = yield* bench.fail("read", { path: "b.pdf" })
      assert.match(message, /^\[b\.pdf cannot be shown: it is not a valid PDF document/)
    })
  )

  it.scoped("TO-13: an empty file is said to be empty", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "empty"), "")
      assert.include(textOf(yield* bench.succeed("read", { path: "empty" })), "empty")
    })
  )

  it.scoped.each(["with space.txt", "new\nline.txt", "quote'\".txt", "-dash", "\u00fcml\u00e4ut.txt", "*?[x].txt"])(
    "TO-13: a file named %j is read",
    (name) =>
      Effect.gen(function* () {
        const bench = yield* makeWorkbench()
        writeFileSync(join(bench.folder, name), "here")
        assert.strictEqual(textOf(yield* bench.succeed("read", { path: name })), "here")
        const listing = yield* bench.succeed("read", { path: "." })
        assert.strictEqual(textOf(listing).split("\n").length, 2)
      })
  )
})

describe("read: folders", () => {
  it.scoped("TO-13: a folder lists its direct children, folders first, each part in the order of its names", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      for (const name of ["zoo", "alpha"]) mkdirSync(join(bench.folder, name))
      for (const name of ["b", "B", "a", "alpha/inner"]) writeFileSync(join(bench.folder, name), "")
      symlinkSync("zoo", join(bench.folder, "link"))
      const output = yield* bench.succeed("read", { path: "." })
      assert.strictEqual(textOf(output), "alpha/\nzoo/\nB\na\nb\nlink\n")
    })
  )

  it.scoped("TO-13: a folder is paged from a one-based offset to its next cursor", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      for (let index = 0; index < 25; index++)
        writeFileSync(join(bench.folder, `f${String(index).padStart(2, "0")}`), "")
      const first = yield* bench.succeed("read", { path: ".", limit: 10 })
      assert.strictEqual(first.structured["next"], 11)
      const last = yield* bench.succeed("read", { path: ".", offset: 21, limit: 10 })
      assert.strictEqual(textOf(last), "f20\nf21\nf22\nf23\nf24\n")
      assert.isUndefined(last.structured["next"])
      const past = yield* bench.fail("read", { path: ".", offset: 26 })
      assert.include(past.message, "25 entries")
    })
  )
})

describe("read: what it refuses", () => {
  const attacks: ReadonlyArray<readonly [what: string, path: string, type: string]> = [
    ["an absolute path outside", "/etc/passwd", "path.outside"],
    ["a missing absolute path outside", "/etc/daybook-missing", "path.outside"],
    ["an absolute path that leaves the Location", "/proc/self/cwd/../..", "path.outside"],
    ["a Windows path", "C:\\Windows\\win.ini", "path.invalid"],
    ["a UNC path", "\\\\host\\share", "path.invalid"],
    ["the parent folder", "..", "path.outside"],
    ["a path through the parent", "../outside/secret", "path.outside"],
    ["a path that goes down and up", "inner/../../outside/secret", "path.outside"],
    ["a link to a file outside", "link-file", "path.outside"],
    ["a path through a link to a folder outside", "link-folder/secret", "path.outside"],
    ["a link to a link outside", "link-twice", "path.outside"],
    ["a link to the root", "link-root/etc/passwd", "path.outside"],
    ["a NUL in the path", "inner\0/../../outside/secret", "path.invalid"],
    ["a path below a file", "file/below", "file.access"],
    ["a loop of links", "loop", "file.access"],
    ["a name that is too long", "x".repeat(300), "file.access"],
    ["a missing file", "missing", "file.missing"],
    ["a broken link", "broken", "file.missing"],
    ["a pipe", "pipe", "file.special"],
    ["a device behind a link", "link-device", "path.outside"],
    ["a foreign tool output", "tool-output:../../outside/secret", "path.invalid"],
    ["an unknown tool output", "tool-output:none.txt", "file.missing"]
  ]

  it.scoped.each(attacks)("TO-13: %s is refused and nothing is asked", ([, path, type]) =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.outside, "secret"), "SECRET")
      mkdirSync(join(bench.folder, "inner"))
      writeFileSync(join(bench.folder, "file"), "")
      symlinkSync(join(bench.outside, "secret"), join(bench.folder, "link-file"))
      symlinkSync("../outside", join(bench.folder, "link-folder"))
      symlinkSync("link-file", join(bench.folder, "link-twice"))
      symlinkSync("/", join(bench.folder, "link-root"))
      symlinkSync("/dev/zero", join(bench.folder, "link-device"))
      symlinkSync("loop", join(bench.folder, "loop"))
      symlinkSync("nowhere", join(bench.folder, "broken"))
      execFileSync("mkfifo", [join(bench.folder, "pipe")])
      const error = yield* bench.fail("read", { path })
      assert.strictEqual(error.type, type)
      assert.notInclude(error.message, "SECRET")
      assert.isBelow(error.message.length, 600)
      assert.strictEqual(bench.asked.length, 0)
    })
  )

  it.scoped("TO-13: a file without permission to read is a clear failure", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      writeFileSync(join(bench.folder, "closed"), "")
      chmodSync(join(bench.folder, "closed"), 0)
      chmodSync(join(bench.folder, ".."), 0o755)
      yield* asNobody
      assert.include((yield* bench.fail("read", { path: "closed" })).message, "permissions do not allow it (EACCES)")
    })
  )

  it.scoped("TO-13: the permission is asked for the canonical resource, whatever path led to it", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({
        rules: [
          { permission: "read", resource: "*", verdict: "allow" },
          { permission: "read", resource: "secret/*", verdict: "deny" }
        ]
      })
      mkdirSync(join(bench.folder, "secret"))
      writeFileSync(join(bench.folder, "secret/key"), "SECRET")
      symlinkSync("secret/key", join(bench.folder, "harmless"))
      for (const path of ["secret/key", "./secret/../secret/key", "harmless"]) {
        const error = yield* bench.fail("read", { path })
        assert.strictEqual(error.type, "permission.denied")
        assert.include(error.message, `"secret/key"`)
      }
    })
  )

  it.scoped("TO-13: a file replaced by a link while a person is asked is not read", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({
        rules: [],
        answer: () =>
          Effect.sync(() => {
            execFileSync("ln", ["-sf", join(bench.outside, "secret"), join(bench.folder, "a.txt")])
            return Answer.Once()
          })
      })
      writeFileSync(join(bench.outside, "secret"), "SECRET")
      writeFileSync(join(bench.folder, "a.txt"), "harmless")
      const error = yield* bench.fail("read", { path: "a.txt" })
      assert.strictEqual(error.type, "path.outside")
    })
  )

  it.scoped("TO-13: a folder on the way replaced by a link while a person is asked is not followed", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench({
        rules: [],
        answer: () =>
          Effect.sync(() => {
            execFileSync("mv", [join(bench.folder, "inner"), join(bench.folder, "moved")])
            symlinkSync(bench.outside, join(bench.folder, "inner"))
            return Answer.Once()
          })
      })
      mkdirSync(join(bench.folder, "inner"))
      for (const place of [bench.outside, join(bench.folder, "inner")]) writeFileSync(join(place, "a.txt"), "SECRET")
      const error = yield* bench.fail("read", { path: "inner/a.txt" })
      assert.strictEqual(error.type, "path.outside")
    })
  )
})
