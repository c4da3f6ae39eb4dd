/** Pictures that a prompt points at or brings, as they are stored with it and shown for ever. */
import { truncateSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { makePictures, Pictures } from "../../packages/core/src/picture/Pictures.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { ExpandedPart } from "../../packages/log/src/domain/Values.ts"
import { claimed, look, picture } from "../support/Pictures.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import { makeDesk, textOf } from "./support/Expanding.ts"

const uriOf = (part: ExpandedPart | undefined) => (part?.content.type === "file" ? part.content.uri : "")
const bytesOf = (part: ExpandedPart | undefined) => Buffer.from(uriOf(part).split(",")[1] ?? "", "base64")
const given = (mime: string, bytes: Buffer, name = "pasted") => ({
  uri: `data:${mime};base64,${bytes.toString("base64")}`,
  mime,
  name
})

it.scopedLive(
  "PX-12: a mentioned picture within the limits is stored as it is, another in the form that providers take",
  () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk()
      const small = yield* picture({ format: "webp" })
      desk.write("small.png", small)
      desk.write("wide.jpg", yield* picture({ width: 3_000, height: 300, format: "jpeg", orientation: 6 }))
      desk.write("scan.tiff", yield* picture({ format: "tiff" }))
      const [first, wide, scan] = yield* desk.parts("@small.png @wide.jpg @scan.tiff")
      assert.isTrue(bytesOf(first).equals(small))
      assert.deepStrictEqual(
        [first?.content.type === "file" && first.content.mime, first?.note],
        ["image/webp", undefined]
      )
      const seen = yield* look(bytesOf(wide))
      assert.deepStrictEqual([seen.size, seen.down], ["200x2000", ["red", "blue"]])
      assert.strictEqual(wide?.note, "scaled from 300x3000 to 200x2000 pixels")
      assert.strictEqual(scan?.note, "converted from TIFF to PNG")
    })
)

it.scopedLive("PX-13: data within the limits is stored once; other data has the picture that it became beside it", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    const files = [
      given("image/jpeg", yield* picture()),
      given("image/png", yield* picture({ width: 2_500, height: 25 })),
      given("image/avif", yield* picture({ format: "avif", width: 64, height: 64 })),
      given("text/plain", yield* picture({ format: "gif", frames: 2 }))
    ]
    const parts = yield* desk.parts({ text: "look", files })
    assert.strictEqual(uriOf(parts[0]), "attachment:0")
    assert.deepStrictEqual(
      parts.map(({ content, note }) => [content.type === "file" && content.mime, note]),
      [
        ["image/png", undefined],
        ["image/png", "scaled from 2500x25 to 2000x20 pixels"],
        ["image/jpeg", "converted from AVIF to JPEG"],
        ["image/png", "converted from GIF to PNG, the first of 2 frames"]
      ]
    )
    assert.strictEqual((yield* look(bytesOf(parts[1]))).size, "2000x20")
  })
)

it.scopedLive("PX-7: a picture that cannot be shown is a failure that says why, and the prompt is admitted", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    const whole = yield* picture({ width: 64, height: 64, noise: true })
    desk.write("bomb.png", claimed(50_000, 50_000))
    desk.write("cut.png", whole.subarray(0, 4_000))
    desk.write("huge.png", claimed(8, 8))
    truncateSync(join(desk.project, "huge.png"), 32 * 1024 * 1024 + 1)
    const parts = yield* desk.parts({
      text: "@bomb.png @cut.png @huge.png",
      files: [
        given("image/png", whole.subarray(0, 4_000)),
        given("image/heic", Buffer.from("\0\0\0\x18ftypheic\0\0\0\0mif1heic"))
      ]
    })
    const reasons = [/"bomb\.png" cannot be shown: it has 50000x50000 pixels/, /"cut\.png" .*cut off/]
    reasons.push(
      /"huge\.png" has 33,554,433 bytes; a picture may have 33,554,432/,
      /"pasted" .*cut off/,
      /format cannot be decoded/
    )
    for (const [index, reason] of reasons.entries()) {
      assert.strictEqual(parts[index]?.kind, "failure")
      assert.match(textOf(parts[index]), reason)
    }
  })
)

it.scopedLive("PX-12: without a decoder a picture above the limits is a failure that names the limit", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    desk.write("wide.png", yield* picture({ width: 9_000 }))
    desk.write("fits.png", yield* picture({ width: 7_000 }))
    const [wide, fits] = yield* desk.parts("@wide.png @fits.png")
    assert.match(textOf(wide), /9000x8 pixels, and providers take 8000 along an edge; install the package "sharp"/)
    assert.deepStrictEqual([fits?.kind, fits?.note], ["media", undefined])
  }).pipe(
    Effect.provideService(
      Pictures,
      makePictures(() => Promise.resolve(undefined))
    )
  )
)

it.scopedLive("PX-19: the model is shown the picture that was stored, and what was done to it, turn after turn", () =>
  Effect.gen(function* () {
    const desk = yield* makeDesk()
    const { id: sessionID } = yield* desk.session()
    const [sessions, model] = [Context.get(desk.runtime, Sessions), Context.get(desk.runtime, ScriptedModel)]
    const files = [given("image/png", yield* picture({ width: 2_500, height: 25 }), 'a "b".png')]
    const { prompt } = yield* sessions.prompt({ sessionID, prompt: { text: "see", files }, resume: false })
    const stored = bytesOf(prompt.expansion?.parts[0]).toString("base64")
    const shown: Array<string> = []
    for (const word of ["one", "two"]) {
      yield* model.answer(says(word))
      yield* sessions.resume(sessionID)
      const [first] = (yield* model.request).prompt.content.filter(({ role }) => role === "user")
      shown.push(JSON.stringify(first))
      if (word === "one") yield* sessions.prompt({ sessionID, prompt: { text: "and now?" }, resume: false })
    }
    assert.include(shown[0], stored)
    assert.include(shown[0], JSON.stringify('note="scaled from 2500x25 to 2000x20 pixels"/>').slice(1, -1))
    assert.strictEqual(shown[0], shown[1])
  })
)
