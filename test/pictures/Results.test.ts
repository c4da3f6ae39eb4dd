/** Pictures in the results of tools: files that are read, and what servers and hosts give. */
import { truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { makePictures, Pictures } from "../../packages/core/src/picture/Pictures.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import type { ToolContent } from "../../packages/log/src/domain/Values.ts"
import { makeMcp, obedient } from "../mcp/support/Servers.ts"
import { claimed, look, picture } from "../support/Pictures.ts"
import { makeWorkbench, textOf } from "../tools/Workbench.ts"

const dataUri = (mime: string, bytes: Uint8Array) => `data:${mime};base64,${Buffer.from(bytes).toString("base64")}`

const bytesOf = (content: ToolContent | undefined) =>
  Buffer.from(content?.type === "file" ? (content.uri.split(",")[1] ?? "") : "", "base64")

/** A Location with these files. */
const makeDesk = Effect.fnUntraced(function* (files: Readonly<Record<string, Uint8Array>>) {
  const bench = yield* makeWorkbench()
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(bench.folder, name), bytes)
  return bench
})

describe("read", () => {
  it.scopedLive("PC-7: a picture comes as what its bytes are, whatever its name", () =>
    Effect.gen(function* () {
      const jpeg = yield* picture({ format: "jpeg" })
      const bench = yield* makeDesk({ "a.png": jpeg, "b.bin": jpeg, "c.zip": jpeg })
      for (const name of ["a.png", "b.bin", "c.zip"]) {
        const { content, structured } = yield* bench.succeed("read", { path: name })
        assert.deepStrictEqual(content, [{ type: "file", uri: dataUri("image/jpeg", jpeg), mime: "image/jpeg", name }])
        assert.strictEqual(structured["mime"], "image/jpeg")
      }
    })
  )

  it.scopedLive("PC-7: one above the limits is scaled, and the model reads that it was", () =>
    Effect.gen(function* () {
      const large = yield* picture({ width: 1_500, height: 1_500, noise: true })
      assert.isAbove(large.length, 5 * 1024 * 1024)
      const bench = yield* makeDesk({ "wide.png": yield* picture({ width: 4_000, height: 400 }), "large.png": large })
      const wide = yield* bench.succeed("read", { path: "wide.png" })
      assert.deepStrictEqual(wide.content[0], {
        type: "text",
        text: "[wide.png: scaled from 4000x400 to 2000x200 pixels]"
      })
      assert.strictEqual((yield* look(bytesOf(wide.content[1]))).size, "2000x200")
      const { content } = yield* bench.succeed("read", { path: "large.png" })
      assert.strictEqual(textOf({ structured: {}, content }), "[large.png: converted from PNG to JPEG]\n<image/jpeg>")
    })
  )

  it.scopedLive("PC-8: one that cannot be shown is a failure that says why", () =>
    Effect.gen(function* () {
      const whole = yield* picture({ width: 64, height: 64, noise: true })
      const bench = yield* makeDesk({
        "cut.png": whole.subarray(0, 5_000),
        "bomb.png": claimed(50_000, 50_000),
        "huge.png": claimed(8, 8)
      })
      truncateSync(join(bench.folder, "huge.png"), 33 * 1024 * 1024)
      const cut = yield* bench.fail("read", { path: "cut.png" })
      assert.strictEqual(cut.type, "picture.refused")
      assert.match(cut.message, /^\[cut\.png cannot be shown: it is damaged or cut off/)
      assert.include((yield* bench.fail("read", { path: "bomb.png" })).message, "50000x50000 pixels")
      const huge = yield* bench.fail("read", { path: "huge.png" })
      assert.deepStrictEqual([huge.type, huge.message.includes("33554432")], ["file.tooLarge", true])
    })
  )

  it.scopedLive("PC-2: without a decoder one above the limits is refused with the limit", () =>
    Effect.gen(function* () {
      const bench = yield* makeDesk({ "wide.png": yield* picture({ width: 8_001 }), "ok.png": yield* picture() })
      assert.strictEqual((yield* bench.succeed("read", { path: "ok.png" })).content.length, 1)
      assert.include((yield* bench.fail("read", { path: "wide.png" })).message, "providers take 8000 along an edge")
    }).pipe(
      Effect.provideService(
        Pictures,
        makePictures(() => Promise.resolve(undefined))
      )
    )
  )

  it.scoped("PC-7: a drawing in text is read as text, and what it refers to is not looked at", () =>
    Effect.gen(function* () {
      const svg = '<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'
      const bench = yield* makeDesk({ "a.svg": Buffer.from(svg) })
      assert.strictEqual(textOf(yield* bench.succeed("read", { path: "a.svg" })), svg)
    })
  )
})

describe("another tool", () => {
  const giving = (content: ReadonlyArray<ToolContent>) =>
    define(Tool.make("give", { success: Schema.Void }), {
      handler: () => Effect.void,
      render: () => ({ structured: {}, content })
    })

  it.scopedLive("PC-8: a picture that cannot be shown becomes words, and takes nothing else with it", () =>
    Effect.gen(function* () {
      const bench = yield* makeWorkbench()
      const good = { type: "file", uri: dataUri("image/png", yield* picture()), mime: "image/png" } as const
      const pdf = {
        type: "file",
        uri: dataUri("application/pdf", Buffer.from("%PDF-1.7\n%%EOF")),
        mime: "application/pdf"
      } as const
      const bad = { type: "file", uri: dataUri("image/png", Buffer.from("?")), mime: "image/png", name: "x" } as const
      const away = { type: "file", uri: "https://example.org/a.png", mime: "image/png" } as const
      const text = { type: "text", text: "words" } as const
      yield* bench.registry.register([giving([text, good, bad, pdf, away])])
      assert.deepStrictEqual((yield* bench.succeed("give", {})).content, [
        text,
        good,
        { type: "text", text: "[x cannot be shown: it is not a picture in a known format]" },
        pdf,
        away
      ])
      yield* bench.registry.register([giving([bad, { ...bad, uri: "data:image/png;base64,!", name: "y" }])])
      const error = yield* bench.fail("give", {})
      assert.strictEqual(error.type, "picture.refused")
      assert.match(error.message, /^\[x cannot be shown: .*\]\n\[y cannot be shown: it is not valid base64\]$/)
    })
  )

  it.scopedLive("PC-7, MC-21: pictures of a server are what their bytes are, and are brought into form", () =>
    Effect.gen(function* () {
      const { fail, mcp, succeed } = yield* makeMcp({ own: obedient })
      yield* mcp.ready
      const [small, wide, tiff, bomb] = [
        yield* picture({ format: "webp" }),
        yield* picture({ format: "jpeg", width: 3_000, height: 300 }),
        yield* picture({ format: "tiff" }),
        claimed(60_000, 60_000)
      ]
      const data = (bytes: Buffer) => bytes.toString("base64")
      const { content } = yield* succeed("own_pictures", {
        pictures: [
          { data: data(small), mimeType: "image/png" },
          { data: data(wide), mimeType: "application/octet-stream" },
          { data: data(tiff), mimeType: "image/tiff" },
          { data: data(bomb), mimeType: "image/png" },
          { data: data(Buffer.from("<svg/>")), mimeType: "image/svg+xml" }
        ]
      })
      assert.deepStrictEqual(
        content.map((item) => (item.type === "text" ? item.text : item.mime)),
        [
          "image/webp",
          "[a picture (application/octet-stream): scaled from 3000x300 to 2000x200 pixels]",
          "image/jpeg",
          "[a picture (image/tiff): converted from TIFF to PNG]",
          "image/png",
          "[a picture (image/png) cannot be shown: it has 60000x60000 pixels, and at most 100,000,000 are decoded]",
          "[a picture (image/svg+xml), as text:]\n<svg/>"
        ]
      )
      assert.isTrue(bytesOf(content[0]).equals(small))
      const only = yield* fail("own_pictures", { pictures: [{ data: data(bomb), mimeType: "image/png" }] })
      assert.strictEqual(only.type, "picture.refused")
    })
  )
})
