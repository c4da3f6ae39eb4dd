import { assert, describe, it } from "@effect/vitest"
import { Either } from "effect"
import { divide } from "../../packages/cli/src/arguments/Verb.ts"

const specs = [
  { name: "session", value: "ID" },
  { name: "json" },
  { name: "after", value: "N" },
  { name: "attach", value: "FILE", repeated: true as const }
]
const divided = (...words: ReadonlyArray<string>) => {
  const { options, words: rest } = Either.getOrThrow(divide("daybook prompt", words, specs))
  return [Object.fromEntries(options), rest]
}
const refused = (...words: ReadonlyArray<string>) =>
  Either.getOrThrow(Either.flip(divide("daybook prompt", words, specs))).message

describe("Arguments", () => {
  it("CL-1: options may stand anywhere among the words", () => {
    const expected = [{ session: ["fix"], json: [""] }, ["now", "the tests"]]
    assert.deepStrictEqual(divided("now", "--session", "fix", "the tests", "--json"), expected)
    assert.deepStrictEqual(divided("--session=fix", "--json", "now", "the tests"), expected)
  })

  it("CL-1: words that a flag could swallow stay words", () => {
    assert.deepStrictEqual(divided("--json", "yes", "please"), [{ json: [""] }, ["yes", "please"]])
  })

  it("CL-2: after -- and in a quoted sentence nothing is an option", () => {
    assert.deepStrictEqual(divided("--", "--json", "--nope"), [{}, ["--json", "--nope"]])
    assert.deepStrictEqual(divided("--nope is broken", "-", "-1"), [{}, ["--nope is broken", "-", "-1"]])
  })

  it("CL-2: an unknown option is refused, with the nearest one", () => {
    assert.match(refused("hi", "--sesion", "x"), /has no option --sesion; did you mean --session\?/)
    assert.match(refused("hi", "-z"), /has no option -z \(/)
    assert.match(refused("hi", "-s", "x"), /has no option -s; did you mean --session\?/)
  })

  it("CL-2: a missing and a superfluous value are refused", () => {
    assert.strictEqual(refused("hi", "--session"), "--session needs a value")
    assert.strictEqual(refused("--session", "--", "hi"), "--session needs a value")
    assert.strictEqual(refused("--json=true"), "--json takes no value")
  })

  it("CL-2: an option that is given twice is refused, unless it may be repeated", () => {
    assert.strictEqual(refused("--session", "a", "hi", "--session=b"), "--session is given twice")
    assert.strictEqual(refused("--json", "hi", "--json"), "--json is given twice")
    const expected = [{ attach: ["a", "b"] }, ["hi", "--json"]]
    assert.deepStrictEqual(divided("--attach", "a", "hi", "--attach=b", "--", "--json"), expected)
  })

  it("CL-1: a value may begin with a dash", () => {
    assert.deepStrictEqual(divided("--after", "-1"), [{ after: ["-1"] }, []])
    assert.deepStrictEqual(divided("--session=--odd"), [{ session: ["--odd"] }, []])
  })
})
