import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Option } from "effect"
import * as OutputStore from "../../../packages/shell/src/output/OutputStore.ts"
import { smallDisk } from "../../support/SmallDisk.ts"
import { forAll } from "../../support/Cases.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-outputs-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** Keeps an output that arrives in these chunks. */
const keep = (store: OutputStore.OutputStore, handle: string, chunks: ReadonlyArray<string>): boolean => {
  const file = store.open(handle, "stdout")
  for (const chunk of chunks) file.add(chunk)
  return file.end(true)
}

const sizes = (path: string) => readdirSync(path).map((name) => statSync(join(path, name)).size)
const total = (path: string) => sizes(path).reduce((sum, size) => sum + size, 0)

/** All pages of an output. */
const whole = Effect.fnUntraced(function* (store: OutputStore.OutputStore, handle: string, limit: number) {
  let text = ""
  let offset: number | undefined = 0
  while (offset !== undefined) {
    const page: OutputStore.OutputPage = yield* store.page(handle, "stdout", offset, limit)
    text += page.text
    offset = page.next
  }
  return text
})

const chunk = fc.string({ unit: fc.constantFrom("a", "é", "漢", "😀", "\n"), maxLength: 40 })

it.effect("SL-60: a longer stream is kept up to a whole character, and its last line says how much is left out", () =>
  Effect.scoped(
    Effect.flatMap(folder, (path) =>
      Effect.sync(() => {
        let number = 0
        forAll([fc.array(chunk, { maxLength: 8 }), fc.integer({ min: 1, max: 200 })], 40, (chunks, largest) => {
          const handle = `${++number}`
          const kept = keep(OutputStore.make({ folder: path, largest }), handle, chunks)
          const written = readFileSync(join(path, `${handle}.stdout`), "utf8")
          const text = chunks.join("")
          const [, start = written, missing = "0"] = /^([^]*)\n\[(\d+) more bytes [^\n]+\]\n$/.exec(written) ?? []
          expect(kept).toBe(true)
          expect(text.startsWith(start)).toBe(true)
          expect(Buffer.byteLength(start) + Number(missing)).toBe(Buffer.byteLength(text))
          expect(Buffer.byteLength(start)).toBeGreaterThan(Math.min(largest, Buffer.byteLength(text)) - 4)
          expect(Buffer.byteLength(start)).toBeLessThanOrEqual(largest)
        })
      })
    )
  )
)

it.effect("SL-61: pages of any size give the whole output", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const store = OutputStore.make({ folder: yield* folder })
      const text = "aé漢😀\n".repeat(50)
      keep(store, "1", [text])
      for (const limit of [1, 2, 3, 4, 5, 7, 64, 10_000]) expect(yield* whole(store, "1", limit)).toBe(text)
    })
  )
)

it.effect("SL-62: all files together stay within the quota; the oldest are removed first", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const path = yield* folder
      const quota = 640_000
      // Another process left more than the quota.
      for (const day of [1, 2, 3]) {
        writeFileSync(join(path, `old${day}.stdout`), "x".repeat(300_000))
        utimesSync(join(path, `old${day}.stdout`), day, day)
      }
      const store = OutputStore.make({ folder: path, quota })
      keep(store, "first", ["y".repeat(20_000)])
      expect(readdirSync(path).toSorted()).toEqual(["first.stdout", "old2.stdout", "old3.stdout"])
      for (let number = 1; number <= 40; number++) {
        keep(store, `${number}`, ["z".repeat(30_000)])
        expect(total(path)).toBeLessThanOrEqual(quota + quota / 64 + 30_000)
      }
      expect((yield* store.page("40", "stdout", 0, 10)).text).toBe("zzzzzzzzzz")
      expect(yield* Effect.flip(store.page("first", "stdout", 0, 10))).toMatchObject({ _tag: "OutputNotFound" })
    })
  )
)

it.effect("SL-62: the number of files is bounded", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const path = yield* folder
      for (let number = 0; number < 4_200; number++) {
        writeFileSync(join(path, `${number}.stdout`), "")
        utimesSync(join(path, `${number}.stdout`), 1, 1)
      }
      const store = OutputStore.make({ folder: path })
      keep(store, "new", ["text"])
      expect(readdirSync(path).length).toBe(4_096)
      expect((yield* store.page("new", "stdout", 0, 10)).text).toBe("text")
    })
  )
)

it.scoped("SL-63: what a full disk cut has no handle, and leaves no file", () =>
  Effect.gen(function* () {
    const disk = yield* smallDisk(1)
    // Where no disk can be mounted, the folder's name is taken by a file.
    const path = Option.isSome(disk) ? disk.value.folder : join(yield* folder, "taken")
    if (Option.isNone(disk)) writeFileSync(path, "")
    const store = OutputStore.make({ folder: path })
    const chunks = Array.from({ length: 20 }, () => "x".repeat(200_000))
    expect(keep(store, "large", chunks)).toBe(false)
    expect(yield* Effect.flip(store.page("large", "stdout", 0, 10))).toMatchObject({ _tag: "OutputNotFound" })
    if (Option.isSome(disk)) {
      expect(readdirSync(path).filter((name) => name.startsWith("large"))).toEqual([])
      expect(keep(store, "small", ["y"])).toBe(true)
    }
  })
)
