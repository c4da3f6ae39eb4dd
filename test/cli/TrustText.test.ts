import { assert, describe, it } from "@effect/vitest"
import { changesText, questionText, statusText } from "../../packages/cli/src/host/Trusting.ts"
import type * as TrustStore from "../../packages/core/src/trust/TrustStore.ts"

type Thing = TrustStore.Report["brings"][number]

const thing = (path: string, text?: string, kind: Thing["kind"] = "instructions"): Thing => ({
  path,
  kind,
  hash: String(text),
  ...(text === undefined ? {} : { text })
})

const report = (changes?: Partial<NonNullable<TrustStore.Report["changes"]>>, brings = [thing("AGENTS.md")]) => ({
  root: "/work/\u001b[2Jproject",
  standing: { state: "unknown" as const, why: "nobody decided", decided: false },
  brings,
  ...(changes === undefined ? {} : { changes: { added: [], removed: [], changed: [], ...changes } })
})

/** What is said of changes, without the two lines that end it. */
const changed = (changes: Parameters<typeof report>[0]) => changesText(report(changes)).split("\n").slice(0, -3)

const many = (count: number, make: (n: number) => Thing) => Array.from({ length: count }, (_, n) => make(n))

describe("what a person is told of a project", () => {
  it("CL-161: the question says which project it is and what it brings, without controls", () => {
    const brings = [
      thing("a/AGENTS.md"),
      thing("\u0007.git", "https://host/x\u202ey", "clone"),
      thing("l", undefined, "link")
    ]
    assert.strictEqual(
      questionText(report(undefined, brings)),
      "\nThis project is not known yet: /work/\u241b[2Jproject\nIt brings:\n" +
        "  a/AGENTS.md  instructions to the model\n" +
        "  \u2407.git        it is a clone of https://host/x\\u{202e}y\n" +
        "  l            a link to somewhere\n"
    )
    assert.strictEqual(
      questionText(report({})),
      "\nThis project has changed since your decision: /work/\u241b[2Jproject\n"
    )
    assert.strictEqual(questionText(report({}, [])), "\nOthers may write to this folder: /work/\u241b[2Jproject\n")
  })

  it("CL-161: forty things are listed, and the rest counted", () => {
    const shown = (count: number) =>
      statusText(
        report(
          undefined,
          many(count, (n) => thing(`f${n}`))
        )
      ).split("\n")
    assert.strictEqual(shown(40).at(-2)?.trimEnd(), "  f39  instructions to the model")
    assert.deepStrictEqual(shown(42).slice(-3), ["  f39  instructions to the model", "  and 2 more", ""])
    assert.deepStrictEqual(statusText(report(undefined, [])).split("\n").slice(0, 2), [
      "unknown: /work/\u241b[2Jproject: nobody decided",
      "it brings nothing"
    ])
  })

  it("CL-163: of a project that is trusted because it brings nothing, this is said once", () => {
    const standing = {
      state: "trusted" as const,
      why: "it brings nothing",
      decided: false,
      approved: new Set<string>()
    }
    assert.strictEqual(statusText({ root: "/work", standing, brings: [] }), "trusted: /work: it brings nothing\n")
  })

  it("TR-11: of a changed text the lines between what stayed are shown", () => {
    const before = thing("A", "one\ntwo\nthree\nfour")
    assert.deepStrictEqual(changed({ changed: [{ before, now: thing("A", "one\n2\n3\nthree\nfour") }] }), [
      "~ A",
      "    from line 2",
      "    - two",
      "    + 2",
      "    + 3"
    ])
    assert.deepStrictEqual(changed({ changed: [{ before, now: thing("A", "one\ntwo\nthree\nfour\nfour") }] }), [
      "~ A",
      "    from line 5",
      "    + four"
    ])
    assert.deepStrictEqual(changed({ changed: [{ before, now: thing("A", "four") }] }), [
      "~ A",
      "    from line 1",
      "    - one",
      "    - two",
      "    - three"
    ])
    assert.deepStrictEqual(changed({ changed: [{ before, now: thing("A") }] }), ["~ A"])
  })

  it("TR-11: what was added and removed is listed, with the texts of what was added", () => {
    assert.deepStrictEqual(changed({ added: [thing("A", "x\ny"), thing("B")], removed: [thing("C", "z")] }), [
      "- C  instructions to the model",
      "+ A  instructions to the model",
      "    + x",
      "    + y",
      "+ B  instructions to the model"
    ])
  })

  it("TR-11: twenty lines of a text and ten texts are shown, and forty changes", () => {
    const long = Array.from({ length: 22 }, (_, n) => `line ${n}`).join("\n")
    const lines = changed({ added: [thing("A", long)] })
    assert.deepStrictEqual(lines.slice(-2), ["    + line 19", "    + and 2 lines more"])
    const texts = changed({ added: many(12, (n) => thing(`f${n}`, "x")) })
    assert.strictEqual(texts.filter((line) => line === "    + x").length, 10)
    const both = changed({
      added: many(30, (n) => thing(`a${n}`)),
      changed: many(12, (n) => thing(`c${n}`)).map((now) => ({ before: now, now }))
    })
    assert.deepStrictEqual([both.length, ...both.slice(-2)], [41, "~ c9", "and 2 more"])
    assert.notInclude(changed({ added: many(40, (n) => thing(`a${n}`)) }).join("\n"), "more")
  })
})
