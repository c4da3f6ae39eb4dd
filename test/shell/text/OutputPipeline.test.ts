/** Tests the stages of a stream together. Spec: SL-30, SL-45 in specs/shell.md. */
import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"
import * as LineBudget from "../../../packages/shell/src/output/LineBudget.ts"
import * as OutputPipeline from "../../../packages/shell/src/output/OutputPipeline.ts"
import * as RedactionStream from "../../../packages/shell/src/output/RedactionStream.ts"
import * as Escapes from "../../../packages/shell/src/output/Escapes.ts"
import { secrets } from "../../formats/support/Secrets.ts"
import { cases } from "../../support/Cases.ts"
import { cut, sizes, through } from "../support/Chunks.ts"

const budget = Either.getOrThrow(LineBudget.compile({}))
const known = "correct-horse-battery"

const run = (chunks: ReadonlyArray<Uint8Array>) => {
  let sink = ""
  const pipeline = OutputPipeline.make({
    budget,
    secrets: RedactionStream.prepare([known]),
    onText: (text) => (sink += text)
  })
  for (const chunk of chunks) pipeline.add(chunk)
  return { ...pipeline.end(), sink }
}

describe("OutputPipeline", () => {
  it("SL-39: a silent stream is what an empty output becomes", () => {
    assert.deepStrictEqual(run([]), { ...OutputPipeline.silent, sink: "" })
  })

  it("SL-30: bytes are decoded like a whole, in any chunks; bytes that are not UTF-8 become U+FFFD", () => {
    const bytes = fc
      .array(
        fc.oneof(
          fc.uint8Array({ maxLength: 6 }),
          fc.string({ unit: "binary", maxLength: 4 }).map((text) => Buffer.from(text))
        )
      )
      .map((parts) => Uint8Array.from(Buffer.concat(parts)))
    fc.assert(
      fc.property(bytes, sizes, (whole, lengths) => {
        const text = through(Escapes.makeUtf8Text(), [whole])
        assert.strictEqual(through(Escapes.makeUtf8Text(), cut(whole, lengths)), text)
        // A lone introducer of a sequence is a character; all else is as in the standard decoder.
        assert.strictEqual(
          text.replaceAll(/[\x90\x9b-\x9d]/g, "\ufffd"),
          new TextDecoder("utf-8", { ignoreBOM: true }).decode(whole).replaceAll(/[\x90\x9b-\x9d]/g, "\ufffd")
        )
      }),
      { numRuns: cases(300) }
    )
    assert.strictEqual(run([Buffer.from([0x61, 0xff, 0x62, 0xe2, 0x82])]).text, "a\ufffdb\ufffd")
    assert.strictEqual(run([Buffer.from([0x61, 0x9b]), Buffer.from("31mb")]).text, "ab")
  })

  it("SL-45: the sink receives the whole redacted stream, also newlines at the end", () => {
    const { sink, text } = run([Buffer.from(`a\x1b[1m ${known}\n\n`)])
    assert.strictEqual(sink, "a <redacted>\n\n")
    assert.strictEqual(text, "a <redacted>")
  })

  it("SL-34: no planted secret passes with colour codes inside it, in any chunks of bytes", () => {
    const colour = fc.constantFrom("\x1b[31m", "\x1b[0m", "\x1b]8;;x\x1b\\", "\x9b1m", "\x07")
    const planted = fc.constantFrom(...Object.values(secrets).flat(), known)
    fc.assert(
      fc.property(
        planted,
        fc.array(fc.tuple(fc.nat(200), colour), { maxLength: 5 }),
        sizes,
        (secret, codes, lengths) => {
          let coloured = secret
          for (const [at, code] of codes.toSorted(([a], [b]) => b - a)) {
            if (at < secret.length) coloured = coloured.slice(0, at) + code + coloured.slice(at)
          }
          const { sink, text } = run(cut(Buffer.from(`before ${coloured} after\n`), lengths))
          assert.strictEqual(text, "before <redacted> after")
          assert.strictEqual(sink, "before <redacted> after\n")
        }
      ),
      { numRuns: cases(200) }
    )
  })
})
