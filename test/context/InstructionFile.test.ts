/**
 * Files of instructions that are anything but (CX-33..CX-37): real ones on a real disk. What is refused is absent, what
 * is there and cannot be read is unavailable, and nothing waits, whatever the file is.
 */
import { execFileSync } from "node:child_process"
import { mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc } from "effect"
import {
  decodeInstructions,
  makeReader,
  maximumBytes,
  type ReadResult
} from "../../packages/core/src/context/InstructionFile.ts"
import { folder } from "./support/Look.ts"

/** What is put at `path`; `outside` is a folder beside the project. */
type Put = (path: string, outside: string) => void

const textOf = (read: ReadResult) => (read._tag === "Found" ? read.file.text : read._tag)

const cases: ReadonlyArray<readonly [string, Put, (text: string) => void]> = [
  ["nothing at all", () => undefined, (text) => assert.strictEqual(text, "Absent")],
  ["an empty file", (path) => writeFileSync(path, " \n\n"), (text) => assert.strictEqual(text, "Absent")],
  ["a folder", (path) => mkdirSync(path), (text) => assert.strictEqual(text, "Refused")],
  [
    "a pipe that nobody writes to",
    (path) => void execFileSync("mkfifo", [path]),
    (text) => assert.strictEqual(text, "Refused")
  ],
  [
    "a link to a device without an end",
    (path) => symlinkSync("/dev/zero", path),
    (text) => assert.strictEqual(text, "Refused")
  ],
  ["a link to itself", (path) => symlinkSync(path, path), (text) => assert.strictEqual(text, "Refused")],
  [
    "a loop of links",
    (path) => {
      symlinkSync(`${path}.b`, path)
      symlinkSync(path, `${path}.b`)
    },
    (text) => assert.strictEqual(text, "Refused")
  ],
  ["a broken link", (path) => symlinkSync(`${path}.none`, path), (text) => assert.strictEqual(text, "Absent")],
  [
    "a link out of the project",
    (path, outside) => {
      writeFileSync(join(outside, "secret"), "the secret")
      symlinkSync(join(outside, "secret"), path)
    },
    (text) => assert.strictEqual(text, "Refused")
  ],
  [
    "a link inside the project",
    (path) => {
      writeFileSync(`${path}.real`, "Be kind.")
      symlinkSync(`${path}.real`, path)
    },
    (text) => assert.strictEqual(text, "Be kind.")
  ],
  [
    "50 MB of text",
    (path) => writeFileSync(path, Buffer.alloc(50 * 1024 * 1024, "x")),
    (text) => {
      assert.isBelow(text.length, maximumBytes + 200)
      assert.match(text, /\[Cut after 131072 bytes; there is more that is not shown\.\]$/)
    }
  ],
  [
    "bytes that are not UTF-8",
    (path) => writeFileSync(path, Buffer.from([0x48, 0x69, 0xff, 0xc3, 0x28])),
    (text) => assert.strictEqual(text, "Hi\uFFFD\uFFFD(\n[Bytes that are not UTF-8 are shown as U+FFFD.]")
  ],
  [
    "NUL characters",
    (path) => writeFileSync(path, "a\0b"),
    (text) => assert.strictEqual(text, "a\uFFFDb\n[NUL characters are shown as U+FFFD.]")
  ],
  [
    "a byte order mark",
    (path) => writeFileSync(path, "\uFEFFBe kind.\r\n"),
    (text) => assert.strictEqual(text, "Be kind.")
  ]
]

describe("EP-11: an instruction file", () => {
  for (const [what, put, expect] of cases) {
    it.scoped(`EP-11: ${what}`, () =>
      Effect.gen(function* () {
        const [project, outside] = [yield* folder, yield* folder]
        const path = join(project, "AGENTS.md")
        put(path, outside)
        expect(textOf(yield* makeReader().read(path, project)))
      })
    )
  }

  it.scoped("EP-11: one that the system refuses to read is unreadable, which is not absent", () =>
    Effect.gen(function* () {
      // The memory of a process may be listed, and not be read from its start: whoever asks.
      assert.strictEqual(textOf(yield* makeReader().read("/proc/self/mem")), "Unreadable")
    })
  )

  it.scoped("EP-11: a name that no file can have is absent", () =>
    Effect.gen(function* () {
      const project = yield* folder
      const { read } = makeReader()
      assert.strictEqual(textOf(yield* read(join(project, "x".repeat(5_000)))), "Absent")
      assert.strictEqual(textOf(yield* read(join(project, "a\0b"))), "Absent")
    })
  )

  it.scoped("CX-36: a file that was replaced is read anew, even with the size and the time of the one before", () =>
    Effect.gen(function* () {
      const project = yield* folder
      const path = join(project, "AGENTS.md")
      const { read } = makeReader()
      const put = (name: string, text: string) => {
        writeFileSync(name, text)
        utimesSync(name, 1_000, 1_000)
      }
      put(path, "one")
      assert.strictEqual(textOf(yield* read(path)), "one")
      assert.strictEqual(textOf(yield* read(path)), "one")
      put(join(project, "new"), "two")
      renameSync(join(project, "new"), path)
      assert.strictEqual(textOf(yield* read(path)), "two")
    })
  )
})

it.prop(
  "EP-11: any bytes are shown as well-formed text without NUL; what is cut is cut between characters",
  [fc.string({ unit: "binary", maxLength: 60 }), fc.uint8Array({ maxLength: 60 }), fc.integer({ min: 1, max: 60 })],
  ([written, noise, limit]) => {
    for (const bytes of [Buffer.from(written), noise, Buffer.concat([Buffer.from(written), noise])]) {
      const shown = decodeInstructions(bytes, limit)
      assert.notMatch(shown, /\p{Surrogate}/u)
      assert.notInclude(shown, "\0")
    }
    const valid = Buffer.from(written.replaceAll("\0", ""))
    assert.notInclude(decodeInstructions(valid, limit), "not UTF-8")
    // Nothing of it is lost where it fits; where it does not, its beginning is there.
    const all = valid.toString()
    assert.strictEqual(decodeInstructions(valid, valid.length), all.trim())
    const fitting = [...all].reduce(
      (kept, next) =>
        Buffer.byteLength(kept.text + next) > limit || kept.full
          ? { ...kept, full: true }
          : { text: kept.text + next, full: false },
      { text: "", full: false }
    )
    assert.strictEqual(decodeInstructions(valid, limit).split("\n[Cut after")[0], fitting.text.trim())
  }
)
