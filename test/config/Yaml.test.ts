import { assert, describe, it } from "@effect/vitest"
import { Either, Schema } from "effect"
import {
  decodeParsed,
  nearest,
  parseFrontmatter,
  parseYaml,
  showIssue,
  showIssues
} from "../../packages/core/src/definition/Yaml.ts"

const faults = (text: string, firstLine?: number) => {
  const parsed = parseYaml(text, firstLine)
  return Either.isLeft(parsed) ? parsed.left.map(showIssue) : []
}

const nested = (depth: number) => `a: ${"[".repeat(depth)}${"]".repeat(depth)}\n`

describe("YAML", () => {
  it.each([
    ["a key twice", "a: 1\nb: 2\na: 3\n", /^line 3, column 1: .*unique/],
    ["a list that is not closed", "a: 1\nb: [1\n", /^line \d+, column \d+: /],
    ["a tab for indentation", "a:\n\tb: 1\n", /^line 2, column 1: .*[Tt]ab/],
    ["an anchor", "a: &x 1\n", /^line 1, column \d+: anchors and aliases/],
    ["an alias", "a: &x [1]\nb: *x\n", /^line 1, column \d+: anchors and aliases/],
    ["an alias of itself", "a: &x [*x]\n", /anchors and aliases/],
    ["an alias of nothing", "a: *x\n", /^line 1/],
    ["a tag", "a: !!binary aGk=\n", /^line 1, column 4: /],
    ["a tag of its own", "a: !run rm\n", /^line 1, column 4: /],
    ["two documents", "a: 1\n---\nb: 2\n", /^line \d+, column \d+: .*documents/],
    ["a map as a key", "{a: 1}: 2\n", /^line 1, column \d+: /]
  ])("CF-2: %s is a fault with its place", (_, text, expected) => {
    assert.match(faults(text)[0] ?? "no fault", expected)
  })

  it("CF-2: places count from the file's first line, not from the head's", () => {
    assert.match(faults("a: 1\na: 2\n", 2)[0] ?? "", /^line 3, column 1: /)
  })

  it("CF-2: a text nested too deeply is a fault, and a merge key is a key like others", () => {
    for (const deep of [nested(200_000), "- ".repeat(200_000), "? ".repeat(200_000), "{a: ".repeat(100_000)]) {
      assert.deepStrictEqual(faults(deep), ["it is nested too deeply"])
    }
    assert.deepStrictEqual(faults(nested(50)), [])
    const merged = Either.getOrThrow(parseYaml("a:\n  <<: {b: 1}\n"))
    assert.deepStrictEqual(merged.value, { a: { "<<": { b: 1 } } })
  })

  it("CF-2: a text of very many keys is refused before its keys are compared", () => {
    const keys = Array.from({ length: 100_000 }, (_, index) => `k${index}:`).join("\n")
    assert.deepStrictEqual(faults(keys), ["it has too many keys and values"])
  })

  it("CF-2: a key named as a prototype is a key, and touches nothing else", () => {
    const { value } = Either.getOrThrow(parseYaml("__proto__: {polluted: true}\nconstructor: 1\n"))
    assert.deepStrictEqual(Object.keys(value ?? {}), ["__proto__", "constructor"])
    assert.notProperty({}, "polluted")
  })
})

describe("faults of values", () => {
  const Shape = Schema.Struct({
    first: Schema.Struct({ turn_limit: Schema.Int, list: Schema.Array(Schema.String) }),
    second: Schema.optionalWith(Schema.Boolean, { exact: true })
  })
  const check = (text: string, secret?: () => boolean) => {
    const decoded = decodeParsed(Shape, Either.getOrThrow(parseYaml(text)), secret)
    return Either.isLeft(decoded) ? decoded.left.map(showIssue) : []
  }

  it("CF-3: every fault is named at once, with its place and key path", () => {
    const found = check("first:\n  turn_limits: 3\n  list: [a, 5]\nsecond: yes\nthird: 1\n")
    assert.strictEqual(found.length, 5)
    assert.isTrue(
      found.some((line) => /^line 2, column \d+: first\.turn_limits: .*did you mean "turn_limit"\?/.test(line))
    )
    assert.isTrue(
      found.some((line) => /^line 1, column \d+|^line 2, column \d+/.test(line) && /turn_limit: is missing/.test(line))
    )
    assert.isTrue(found.some((line) => /^line 3, column \d+: first\.list\[1\]: .*found 5/.test(line)))
    assert.isTrue(found.some((line) => /^line 4, column 9: second: .*found "yes"/.test(line)))
    assert.isTrue(
      found.some((line) => /^line 5, column \d+: third: there is no such key; known: first, second/.test(line))
    )
  })

  it("CF-3: what is secret is not shown", () => {
    const shown = check("first: hunter2\n", () => true).join()
    assert.match(shown, /first/)
    assert.notInclude(decodeSecret(), "hunter2")
  })

  const decodeSecret = () => {
    const Leaf = Schema.Struct({ a: Schema.Number.annotations({ message: () => "expected a number" }) })
    const decoded = decodeParsed(Leaf, Either.getOrThrow(parseYaml("a: hunter2\n")), () => true)
    return Either.isLeft(decoded) ? showIssues(decoded.left) : "accepted"
  }

  it("CF-3: of a long message 300 characters are shown", () => {
    const saying = (length: number) =>
      decodeParsed(
        Schema.Struct({ a: Schema.Number.annotations({ message: () => "x".repeat(length) }) }),
        Either.getOrThrow(parseYaml("a: b\n")),
        () => true
      ).pipe(Either.flip, Either.getOrThrow)[0]?.details
    assert.strictEqual(saying(300), "x".repeat(300))
    assert.strictEqual(saying(301), `${"x".repeat(300)}...`)
  })

  it("CF-3: at most twenty faults are shown, and the rest counted", () => {
    const issues = Array.from({ length: 25 }, (_, index) => ({ path: `k${index}`, details: "wrong" }))
    const lines = showIssues(issues).split("\n")
    assert.strictEqual(lines.length, 21)
    assert.strictEqual(lines[20], "and 5 more")
  })

  it.each([
    ["reserveTokens", "reserve_tokens"],
    ["compactoin", "compaction"],
    ["instruction", "instructions"],
    ["x", undefined]
  ])("CF-3: the known name near %s is found", (name, expected) => {
    assert.strictEqual(nearest(name, ["reserve_tokens", "compaction", "instructions"]), expected)
  })
})

it("CF-3: no name is near a very long one", () => {
  assert.isUndefined(nearest("compaction".repeat(100_000), ["compaction"]))
})

describe("front matter", () => {
  it("CF-4: a head and a body are split, whatever the line ends, and the body's own rules stay in it", () => {
    const { body, data } = Either.getOrThrow(parseFrontmatter("---\r\nmode: all\r\n---  \r\n\r\nOne\r\n---\r\nTwo\r\n"))
    assert.deepStrictEqual(data.value, { mode: "all" })
    assert.strictEqual(body, "One\n---\nTwo")
  })

  it("CF-4: without a head all is body; an empty head is none", () => {
    assert.strictEqual(Either.getOrThrow(parseFrontmatter("\n---\na: 1\n---\n")).body, "---\na: 1\n---")
    const { body, data } = Either.getOrThrow(parseFrontmatter("---\n---\nText"))
    assert.deepStrictEqual([data.value, body], [{}, "Text"])
  })

  it("CF-4: a head that is not closed is a fault", () => {
    const parsed = parseFrontmatter("---\nmode: all\nText")
    assert.isTrue(Either.isLeft(parsed) && showIssues(parsed.left).includes("not closed"))
  })
})
