import { Models } from "@daybook/models"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Redacted } from "effect"
import { countTokensOf, pieces } from "../../packages/models/src/Tokenizer.ts"
import { forAll } from "../support/Cases.ts"

const counter = Effect.promise(async () => {
  const count = await countTokensOf("gpt-6.1-terra")
  if (count === undefined) throw new Error("there is no counter")
  return count
})

/** Text as people and programs write it, with long runs and other scripts among it. */
const text = fc
  .array(
    fc.oneof(
      fc.lorem({ maxCount: 5 }),
      fc.string({ unit: "grapheme", maxLength: 40 }),
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.json({ maxDepth: 2 }),
      fc.constantFrom("\n", "    ", "\r\n\t", "<|endoftext|>", "日本語の文", "don't WE'LL", "HelloWorld42", "\ud800"),
      fc
        .tuple(fc.constantFrom("a", " ", "é", "=", "\n", "日"), fc.integer({ min: 1, max: 600 }))
        .map(([c, n]) => c.repeat(n))
    ),
    { maxLength: 8 }
  )
  .map((parts) => parts.join(" "))

describe("token counts", () => {
  it.effect("MD-53: texts have the counts of the vocabulary", () =>
    Effect.gen(function* () {
      const count = yield* counter
      const known = {
        "": 0,
        a: 1,
        "hello world": 2,
        "Hello, world!": 4,
        "The quick brown fox jumps over the lazy dog.": 10,
        "1234567": 3,
        "    return x": 3,
        // Split where a small letter meets a capital one, as this vocabulary's rules are.
        HelloWorld: 2
      }
      assert.deepStrictEqual(Object.fromEntries(Object.keys(known).map((one) => [one, count(one)])), known)
    })
  )

  it.effect("MD-69, MD-53: what looks like a special token is text, and nothing fails", () =>
    Effect.gen(function* () {
      const count = yield* counter
      for (const one of ["<|endoftext|>", "<|im_start|>system<|im_sep|>", "\ud800\udfff\udc00", "\u0000\u0001"]) {
        assert.isAbove(count(one), 1, one)
      }
    })
  )

  it("MD-69, MD-53: a text is counted in short pieces that lose nothing of it", () => {
    forAll([text], 40, (one) => {
      const found = pieces(one)
      assert.strictEqual(found.join(""), one)
      for (const piece of found) assert.isAtMost(piece.length, 300)
    })
  })

  it.effect("MD-69, MD-53: the work for one run of a letter, of space or of line ends grows with its length only", () =>
    Effect.gen(function* () {
      const count = yield* counter
      for (const letter of ["a", " ", "\n", "=", "A", "ü", "語", "\t", "."]) {
        const found = pieces(letter.repeat(1_000_000))
        const squares = found.reduce((sum, piece) => sum + Buffer.byteLength(piece) ** 2, 0)
        assert.isAtMost(squares, 1_000_000 * 3 * 512, JSON.stringify(letter))
        assert.isAtLeast(count(letter.repeat(1_000_000)), 1)
      }
    })
  )

  it.effect("MD-69, MD-53: parts count at least as much as the whole, but for the word that is cut", () =>
    Effect.gen(function* () {
      const count = yield* counter
      forAll([text, text], 40, (a, b) => {
        const [whole, parts] = [count(a + b), count(a) + count(b)]
        // Where they meet, another split of one run of at most a few pieces.
        assert.isAtMost(whole, parts + 8)
        assert.isAtMost(parts, whole + 8)
      })
    })
  )

  it.effect("MD-53: OpenAI's models since GPT-4o have the counter, others what the host gives", () =>
    Effect.gen(function* () {
      const key = { apiKey: Redacted.make("k") }
      const words = (one: string) => one.split(" ").length
      const resolver = yield* Models.make({
        providers: {
          anthropic: { api: "anthropic", ...key },
          openai: { api: "openai", ...key, models: { "gpt-5.1": { countTokens: words } } },
          local: { api: "openai-compatible", baseUrl: "http://localhost:1", models: { wise: { countTokens: words } } }
        }
      })
      const of = (providerID: string, id: string) =>
        Effect.map(resolver.resolve({ providerID, id }), ({ countTokens }) => countTokens)
      for (const id of ["gpt-6.1-terra", "gpt-4o", "gpt-4.1", "o4-mini", "chatgpt-4o-latest", "ft:gpt-4.1:acme::1"]) {
        assert.strictEqual((yield* of("openai", id))?.("hello world"), 2, id)
      }
      // One function for all of them, so that what was counted for one is not counted again for another.
      assert.strictEqual(yield* of("openai", "gpt-4o"), yield* of("openai", "o4-mini"))
      assert.isUndefined(yield* of("openai", "gpt-4-turbo"))
      assert.isUndefined(yield* of("anthropic", "claude-opus-5-5"))
      assert.isUndefined(yield* of("local", "qwen3:8b"))
      assert.strictEqual(yield* of("local", "wise"), words)
      assert.strictEqual(yield* of("openai", "gpt-5.1"), words)
    })
  )
})
