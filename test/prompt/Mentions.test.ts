/** Where a text mentions something, and where it only seems to. */
import { assert, describe, it } from "@effect/vitest"
import { FastCheck } from "effect"
import { codeRanges, findMentions } from "../../packages/core/src/prompt/Mentions.ts"

const targets = (text: string) => findMentions(text).map(({ target }) => target)

describe("PX-1: how a mention is written", () => {
  it.each([
    ["@src/a.ts", "src/a.ts", undefined],
    ["@src/a.ts#L10-20", "src/a.ts", [10, 20]],
    ["@src/a.ts#L10-L20", "src/a.ts", [10, 20]],
    ["@src/a.ts#L7", "src/a.ts", [7, 7]],
    ["@src/a.ts:10-20", "src/a.ts", [10, 20]],
    ["@src/a.ts:10", "src/a.ts", [10, 10]],
    ["@src/a.ts:10:5", "src/a.ts", [10, 10]],
    ["@src/", "src/", undefined],
    ['@"a file with spaces.md"', "a file with spaces.md", undefined],
    ['@"a b.md"#L3-4', "a b.md", [3, 4]],
    ['@"a b.md":3-4', "a b.md", [3, 4]],
    ['@"a.ts:10"', "a.ts:10", undefined],
    ["@reviewer", "reviewer", undefined],
    ["@docs/guide/intro.md", "docs/guide/intro.md", undefined],
    ["@../up.ts", "../up.ts", undefined],
    ["@node_modules/@types/node/index.d.ts", "node_modules/@types/node/index.d.ts", undefined],
    ["@\u00fcber/stra\u00dfe.md", "\u00fcber/stra\u00dfe.md", undefined],
    ["@a(b).ts", "a(b).ts", undefined]
  ] as const)("%s", (text, target, lines) => {
    const [mention, ...more] = findMentions(`see ${text} please`)
    assert.deepStrictEqual(more, [])
    assert.strictEqual(mention?.target, target)
    assert.deepStrictEqual(mention?.lines, lines === undefined ? undefined : { from: lines[0], to: lines[1] })
    assert.deepStrictEqual([mention?.start, mention?.end, mention?.text], [4, 4 + text.length, text])
  })

  it.each([
    ["(see @a.ts)", "a.ts"],
    ["@a.ts, and more", "a.ts"],
    ["Look at @a.ts.", "a.ts"],
    ["Is it @a.ts?", "a.ts"],
    ["**@a.ts**", "a.ts"],
    ["'@a.ts'", "a.ts"],
    ["[@a.ts]!", "a.ts"],
    ["@a.ts:", "a.ts"],
    ["@a.ts's first line", "a.ts"],
    ["@a.ts’s first line", "a.ts"],
    ["请看@README.md", "README.md"],
    ["请看@README.md。然后", "README.md"],
    ["「@README.md」", "README.md"],
    ["（见@docs/a.md）和", "docs/a.md"],
    ["“@a.ts”", "a.ts"],
    ["«@a.ts»", "a.ts"],
    ["、@a.ts、b", "a.ts"],
    ["ファイル@a.ts：", "a.ts"],
    ["ดู@a.ts", "a.ts"],
    ["看@报告（1）.pdf！", "报告（1）.pdf"],
    ["𠮷@a.ts", "a.ts"]
  ])("the sentence's punctuation is not part of it: %s", (text, target) => {
    assert.deepStrictEqual(targets(text), [target])
  })

  it("a server and a URI are a resource, lines are none", () => {
    const [found] = findMentions("@files:file:///tmp/a.txt")
    assert.deepStrictEqual(found?.resource, { server: "files", uri: "file:///tmp/a.txt" })
    assert.isUndefined(findMentions("@a.ts:10-20")[0]?.resource)
  })

  it("offsets count UTF-16 units, wherever the mention stands", () => {
    const text = "\u{1F600}\u{1F468}\u200D\u{1F469} @a.ts"
    const [mention] = findMentions(text)
    assert.strictEqual(text.slice(mention?.start, mention?.end), "@a.ts")
  })
})

describe("PX-2: what is no mention", () => {
  it.each([
    "mail me@example.org",
    "m\u00fcller@example.org",
    "\u0438\u0432\u0430\u043d@example.org",
    "git@github.com:a/b.git",
    "https://example.org/@user/x.ts",
    "a\\@b.ts and \\@c.ts",
    "`@a.ts`",
    "``a ` @a.ts``",
    "```\n@a.ts\n```",
    "~~~ts\n@Component()\n~~~",
    "```\n@a.ts never closed",
    "> ```\n> @a.ts\n> ```",
    "@ a.ts",
    "@",
    "@@@",
    "@...",
    '@""',
    '@"not\nclosed"'
  ])("%j", (text) => {
    assert.deepStrictEqual(targets(text), [])
  })

  it("code ends: what follows it is text again", () => {
    assert.deepStrictEqual(targets("`x` @a.ts\n```\n@b.ts\n```\n@c.ts"), ["a.ts", "c.ts"])
  })

  it("a backtick without a partner opens no code, nor does one in another paragraph", () => {
    assert.deepStrictEqual(targets("it`s @a.ts"), ["a.ts"])
    assert.deepStrictEqual(targets("one ` here\n\n@a.ts\n\nanother ` there"), ["a.ts"])
    assert.deepStrictEqual(targets("```` @a.ts ``` @b.ts"), ["a.ts", "b.ts"])
  })
})

/** Texts made of the pieces that matter, and of anything else. */
const texts = FastCheck.array(
  FastCheck.oneof(
    FastCheck.constantFrom(
      "@",
      '"',
      "`",
      "```",
      "~~~",
      "\n",
      "\\",
      ":",
      "#L1-2",
      "/",
      ".",
      " ",
      "(",
      ")",
      "a",
      "\uD800"
    ),
    FastCheck.string({ unit: "grapheme", maxLength: 6 })
  ),
  { maxLength: 60 }
).map((pieces) => pieces.join(""))

it.prop(
  "PX-1: for any text, mentions slice to its words, in order, apart, and outside of its code",
  [texts],
  ([text]) => {
    const code = codeRanges(text)
    let last = 0
    for (const { end, start, target, text: words } of findMentions(text)) {
      assert.strictEqual(text.slice(start, end), words)
      assert.isAtLeast(start, last)
      assert.isTrue(words.startsWith("@") && target !== "" && words.includes(target))
      assert.isFalse(code.some(([from, to]) => start >= from && start < to))
      last = end
    }
  }
)

it.prop(
  "PX-1: a path set off by spaces is found wherever it stands",
  [texts, FastCheck.constantFrom("a/b.ts", "x y/z.md")],
  ([before, path]) => {
    // A fence or a quote that is still open would make it part of something else.
    const text = `${before.replaceAll(/[`~"]/g, "")} @"${path}" `
    assert.strictEqual(findMentions(text).at(-1)?.target, path)
  }
)

it("PX-4: hostile texts cost time in proportion to their length", () => {
  const size = 200_000
  for (const piece of [
    "@",
    "`",
    "``` ` ",
    "@(",
    "@)",
    "@a)",
    '@"',
    "\\@",
    "@a:1",
    "@a,",
    "~~~\n",
    "> ",
    "@「",
    "@」",
    "看@a。"
  ]) {
    assert.isArray(findMentions(piece.repeat(Math.ceil(size / piece.length))))
  }
  assert.deepStrictEqual(findMentions(`@${"a/".repeat(size)}`), [])
})
