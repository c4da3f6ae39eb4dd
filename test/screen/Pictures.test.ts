import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { readers } from "../../packages/cli/src/screen/Clipboard.ts"
import * as Pictures from "../../packages/cli/src/screen/Pictures.ts"

const bytes = Buffer.from("89504e470d0a1a0a", "hex")

/** A folder with a picture whose name has a space, until the scope closes. */
const withPicture = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-pictures-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => {
    const path = join(folder, "My shot.PNG")
    writeFileSync(path, bytes)
    writeFileSync(join(folder, "notes.txt"), "text")
    mkdirSync(join(folder, "folder.png"))
    return { folder, path }
  }
)

it.scoped("SC-550: the path of a picture, in each form that terminals write, is a chip; other texts are none", () =>
  Effect.gen(function* () {
    const { folder, path } = yield* withPicture
    for (const text of [path, `'${path}' `, `"${path}"`, path.replace(" ", "\\ "), pathToFileURL(path).href])
      assert.strictEqual(Pictures.chipOf(text), `[picture ${path}]`, text)
    for (const name of ["notes.txt", "folder.png", "none.png"]) assert.isUndefined(Pictures.chipOf(join(folder, name)))
    for (const text of ["My shot.PNG", `see ${path}`, `${path}\n${path}`, "file://host/x.png", ""])
      assert.isUndefined(Pictures.chipOf(text), text)
  })
)

it.scoped("SC-551: a chip of the screen attaches its picture at its place, and any other is text", () =>
  Effect.gen(function* () {
    const { path } = yield* withPicture
    const chip = `[picture ${path}]`
    const text = `What is ${chip} here?`
    const source = { start: 8, end: 8 + chip.length, text: chip }
    assert.deepStrictEqual(yield* Pictures.attached(text, new Set([chip])), [
      { uri: `data:image/png;base64,${bytes.toString("base64")}`, mime: "image/png", name: "My shot.PNG", source }
    ])
    assert.deepStrictEqual(yield* Pictures.attached(text, new Set()), [])
    rmSync(path)
    const { message } = yield* Effect.flip(Pictures.attached(text, new Set([chip])))
    assert.strictEqual(message, `the picture ${path} cannot be read`)
  })
)

it("SC-569: AppleScript's picture is read from its hexadecimal digits", () => {
  const reader = readers.find(({ program }) => program === "osascript")
  assert.strictEqual(reader?.read(Buffer.from("«data PNGf89504E47»\n", "latin1")).toString("hex"), "89504e47")
})
