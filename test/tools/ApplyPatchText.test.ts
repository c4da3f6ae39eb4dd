import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"
import { applyHunks } from "../../packages/tools/src/patch/ApplyHunks.ts"
import { maximumPatchBytes, parsePatch } from "../../packages/tools/src/patch/Patch.ts"
import { forAll } from "../support/Cases.ts"
import { isCrlf } from "../../packages/tools/src/FileText.ts"

const patchOf = (...lines: ReadonlyArray<string>) => ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n")

/** The text after an update with these lines, or why there is none. */
const update = (content: string, ...lines: ReadonlyArray<string>): string => {
  const parsed = Either.getOrThrow(parsePatch(patchOf("*** Update File: f", ...lines)))
  const [change] = parsed
  assert.strictEqual(parsed.length, 1)
  assert(change?._tag === "Update")
  return Either.match(applyHunks(content, change.hunks), {
    onLeft: ({ message }) => `refused: ${message}`,
    onRight: (applied) => applied.content
  })
}

const problem = (text: string) =>
  Either.merge(Either.mapBoth(parsePatch(text), { onLeft: ({ message }) => message, onRight: () => "taken" }))

describe("parsing", () => {
  it("TO-71: of a line that is wrong 120 characters are quoted", () => {
    const wrong = (length: number) =>
      problem(`*** Begin Patch\n*** Add File: a\n${"x".repeat(length)}\n*** End Patch\n`)
    assert.include(wrong(120), `this one is "${"x".repeat(120)}"`)
    assert.include(wrong(121), `this one is "${"x".repeat(120)}..."`)
  })

  const bad: ReadonlyArray<readonly [what: string, text: string, message: RegExp]> = [
    ["an empty text", "", /line 1 .*begins with "\*\*\* Begin Patch"/],
    ["a text without a beginning", "+++ b/file\n", /line 1 .*begins with/],
    ["a patch that was cut off", "*** Begin Patch\n*** Delete File: a\n", /line 3 .*cut off/],
    ["a patch cut off in a hunk", "*** Begin Patch\n*** Update File: a\n@@\n-a", /ends without "\*\*\* End Patch"/],
    ["a patch of nothing", patchOf(), /changes no file/],
    ["text after the end", `${patchOf("*** Delete File: a")}more`, /line 4 .*text after/],
    ["an unknown header", patchOf("*** Rename File: a"), /line 2 .*expected here, not "\*\*\* Rename File: a"/],
    ["a header without a path", patchOf("*** Add File:  ", "+a"), /line 2 .*path is missing/],
    ["a move without a path", patchOf("*** Update File: a", "*** Move to: "), /line 3 .*path is missing/],
    ["a move of a new file", patchOf("*** Add File: a", "*** Move to: b"), /line 3 .*expected here/],
    ["an update without hunks", patchOf("*** Update File: a"), /line 2 .*no hunk/],
    ["a hunk without changes", patchOf("*** Update File: a", "@@", " a"), /line 3 .*changes nothing/],
    [
      "a hunk line without its sign",
      patchOf("*** Update File: a", "@@", "-a", "b"),
      /line 5 .*begins with " ", "-" or/
    ],
    ["line numbers", patchOf("*** Update File: a", "@@ -1,2 +1,2 @@", "-a"), /line 3 .*line numbers are not used/],
    ["a new file's line without +", patchOf("*** Add File: a", "+a", "b"), /line 4 .*begins with "\+"/],
    [
      "a line after the last one",
      patchOf("*** Update File: a", "@@", "+a", "\\ No newline at end of file", "+b"),
      /line 6 .*marked as the end of the file/
    ],
    ["half a character", patchOf("*** Add File: a", "+a", "+\ud800"), /line 4 .*half of a character/],
    ["more bytes than are taken", patchOf("*** Add File: a", `+${"a".repeat(maximumPatchBytes)}`), /at most 1048576/],
    [
      "more files than are taken",
      patchOf(...Array.from({ length: 101 }, (_, index) => `*** Delete File: f${index}`)),
      /line 102 .*more than 100 files/
    ]
  ]
  it.each(bad)("TO-71: %s is refused with its line and what to do", (_, text, message) => {
    assert.match(problem(text), message)
  })

  const wrapped: ReadonlyArray<readonly [before: string, after: string, taken: boolean]> = [
    ["```\n", "```\n", true],
    ["```diff\n\n", "\n```", true],
    ["apply_patch <<'EOF'\n", "EOF\n", true],
    ["<<PATCH\n", "PATCH", true],
    [`\n<<-"END"\n`, "END\n\n", true],
    ["```\n", "", true],
    ["```\n", "EOF\n", false],
    ["<<'EOF'\n", "END\n", false],
    ["", "```\n", false],
    ["Here it is:\n", "", false]
  ]
  it.each(wrapped)("TO-113, TO-71: a patch between %j and %j is read: %s", (before, after, taken) => {
    const said = problem(`${before}${patchOf("*** Delete File: a")}${after}`)
    if (taken) assert.strictEqual(said, "taken")
    else assert.match(said, /begins with|there is text after/)
  })

  it("TO-113, TO-71: all kinds of changes are read, with blank lines and CR LF between them", () => {
    const text = [
      "",
      "*** Begin Patch",
      "*** Add File: a b.txt ",
      "+one",
      "+",
      "",
      "*** Update File: u",
      "*** Move to: v",
      "",
      "@@ class A",
      "@@   def b",
      " x",
      "",
      "-y",
      "",
      "*** Delete File: d",
      "*** End Patch",
      ""
    ]
    const expected: ReturnType<typeof parsePatch> = Either.right([
      { _tag: "Add", path: "a b.txt", line: 3, content: "one\n\n" },
      {
        _tag: "Update",
        path: "u",
        line: 7,
        movedTo: "v",
        hunks: [
          {
            line: 10,
            anchors: ["class A", "  def b"],
            lines: [
              { kind: "keep", text: "x" },
              { kind: "keep", text: "" },
              { kind: "remove", text: "y" }
            ],
            endOfFile: false,
            finalNewline: undefined
          }
        ]
      },
      { _tag: "Delete", path: "d", line: 16 }
    ])
    assert.deepStrictEqual(parsePatch(text.join("\n")), expected)
    assert.deepStrictEqual(parsePatch(text.join("\r\n")), expected)
  })
})

describe("hunks", () => {
  const fits: ReadonlyArray<readonly [law: string, content: string, lines: ReadonlyArray<string>, after: string]> = [
    ["TO-73: lines are replaced", "a\nb\nc\n", ["@@", " a", "-b", "+B", " c"], "a\nB\nc\n"],
    ["TO-73: the first @@ may be left out", "a\nb\n", ["-b", "+B"], "a\nB\n"],
    [
      "TO-73: blanks at the end are tolerated, and kept where a line stays",
      "a  \nb\t\nc\n",
      [" a", "-b", " c "],
      "a  \nc\n"
    ],
    ["TO-73: an exact place goes before a tolerant one", "x \nx\n", ["-x", "+y"], "x \ny\n"],
    ["TO-73: @@ chooses between places", "f\n x\ng\n x\n", ["@@ g", "- x", "+ y"], "f\n x\ng\n y\n"],
    ["TO-73: @@ may lack indentation", "f\n x\n g\n x\n", ["@@ g", "- x", "+ y"], "f\n x\n g\n y\n"],
    ["TO-73: several @@ lead inwards", "A\nf\nx\nB\nf\nx\n", ["@@ B", "@@ f", "-x", "+y"], "A\nf\nx\nB\nf\ny\n"],
    ["TO-73: a hunk may begin with the line of its @@", "f\nx\ng\nx\n", ["@@ g", " g", "-x"], "f\nx\ng\n"],
    ["TO-73: lines are put after @@", "a\nb\n", ["@@ a", "+x"], "a\nx\nb\n"],
    ["TO-73: the order of hunks chooses", "x\na\nx\n", ["-a", "+b", "@@", "-x", "+y"], "x\nb\ny\n"],
    ["TO-73: the end of the file chooses", "x\nx\n", ["-x", "+y", "*** End of File"], "x\ny\n"],
    ["TO-73: lines are put at the end", "x\nx\n", ["+y", "*** End of File"], "x\nx\ny\n"],
    ["TO-73: an empty file takes lines", "", ["+y"], "y\n"],
    ["TO-73: a hunk may leave nothing", "a\n", ["-a"], ""],
    ["TO-74: CR LF stays", "a\r\nb\r\n", [" a", "-b", "+c", "+d"], "a\r\nc\r\nd\r\n"],
    ["TO-74: given CR LF is not doubled", "a\r\nb", ["-b\r", "+c\r", "+d"], "a\r\nc\r\nd"],
    ["TO-74: mixed endings stay where lines stay", "a\r\nb\nc\r\n", [" a", "-b", "+B", " c"], "a\r\nB\nc\r\n"],
    ["TO-74: a missing last line break stays missing", "a\nb", [" a", "-b", "+c"], "a\nc"],
    ["TO-74: a missing last line break stays missing after lines are added", "a", [" a", "+b"], "a\nb"],
    ["TO-74: a last line break is added", "a", ["-a", "\\ No newline at end of file", "+a"], "a\n"],
    ["TO-74: a last line break is taken away", "a\n", ["-a", "+a", "\\ No newline at end of file"], "a"],
    ["TO-74: a byte order mark stays", "\uFEFFa\n", ["-a", "+b"], "\uFEFFb\n"],
    ["TO-74: a byte order mark that is given is not doubled", "\uFEFFa\n", ["-\uFEFFa", "+\uFEFFb"], "\uFEFFb\n"]
  ]
  it.each(fits)("%s", (_, content, lines, after) => {
    assert.strictEqual(update(content, ...lines), after)
  })

  const refused: ReadonlyArray<
    readonly [what: string, content: string, lines: ReadonlyArray<string>, message: RegExp]
  > = [
    [
      "that is not there",
      "a\nb\n",
      [" a", "-c"],
      /^refused: hunk 1 \(line 3 of the patch\) .*not in the file\..*\n {2}a\n {2}c$/s
    ],
    ["that fits twice", "x\na\nx\n", ["-x", "+y"], /does not have one place: it fits at lines 1, 3 /],
    ["whose @@ is there twice", "f\nx\nf\nx\n", ["@@ f", "-x"], /does not have one place/],
    ["put after an @@ that is there twice", "f\nf\n", ["@@ f", "+x"], /the line after "@@" occurs 2 times/],
    ["whose @@ is not there", "a\n", ["@@ b", "-a"], /line after "@@" is not in the file:\n {2}b$/],
    ["that does not say where", "a\n", ["+b"], /does not say where its lines go/],
    ["out of order", "a\nb\n", ["-b", "@@", "-a"], /hunk 2 .*at line 1, before the hunk above/],
    ["of other indentation", "  a\n", ["-a"], /At line 1 they differ in blanks/],
    ["that is not at the end", "a\nb\n", ["-a", "*** End of File"], /not in the file at its end/],
    ["that overlaps the one above", "a\nb\n", ["-a", " b", "@@", "-b"], /hunk 2 .*does not fit/],
    ["in an empty file", "", ["-a"], /does not fit/]
  ]
  it.each(refused)("TO-73: a hunk %s is refused and shown", (_, content, lines, message) => {
    assert.match(update(content, ...lines), message)
  })

  it("TO-73: a file and hunks made to be slow are refused, not searched for ever", () => {
    const content = "a\n".repeat(500_000)
    const many = (lines: string) => Array.from({ length: 20_000 }, () => lines).join("\n")
    assert.match(update(content, many("-a"), "-b"), /does not fit/)
    assert.match(update(content, many("-a"), "+b"), /too many places/)
    const numbers = Array.from({ length: 20 }, (_, index) => index)
    const hunks = numbers.map((index) => `@@ a\n-${index}`)
    assert.match(update(`${content}${numbers.join("\n")}\n`, ...hunks), /too many places/)
  })
})

interface Op {
  readonly kind: "keep" | "remove" | "add"
  readonly text: string
  /** Whether no line break follows, in the text of which it is the last line. */
  readonly unended: boolean
}

const linesOf = (text: string, ending: string): ReadonlyArray<Omit<Op, "kind">> => {
  const lines = text.split(ending)
  const ended = lines.at(-1) === ""
  if (ended) lines.pop()
  return lines.map((line, index) => ({ text: line, unended: !ended && index === lines.length - 1 }))
}

/** The shortest way from one list of lines to the other. */
const diff = (before: ReturnType<typeof linesOf>, after: ReturnType<typeof linesOf>): ReadonlyArray<Op> => {
  const lengths = Array.from({ length: before.length + 1 }, () => Array.from({ length: after.length + 1 }, () => 0))
  const same = (i: number, j: number) => before[i]?.text === after[j]?.text && before[i]?.unended === after[j]?.unended
  const at = (i: number, j: number) => lengths[i]?.[j] ?? 0
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const row = lengths[i] ?? []
      row[j] = same(i, j) ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const ops: Array<Op> = []
  for (let i = 0, j = 0; i < before.length || j < after.length;) {
    const [old, now] = [before[i], after[j]]
    if (old !== undefined && now !== undefined && same(i, j)) {
      ops.push({ kind: "keep", ...old })
      i++
      j++
    } else if (old !== undefined && (now === undefined || at(i + 1, j) >= at(i, j + 1))) {
      ops.push({ kind: "remove", ...old })
      i++
    } else if (now !== undefined) {
      ops.push({ kind: "add", ...now })
      j++
    }
  }
  return ops
}

const signs = { keep: " ", remove: "-", add: "+" } as const

/** Hunks with this many lines around each change. */
const hunksOf = (ops: ReadonlyArray<Op>, around: number): ReadonlyArray<string> =>
  ops.flatMap((op, index) => {
    const near = (at: number) =>
      ops.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== "keep")
    if (!near(index)) return []
    return [
      ...(index === 0 || !near(index - 1) ? ["@@"] : []),
      `${signs[op.kind]}${op.text}`,
      ...(op.unended ? ["\\ No newline at end of file"] : [])
    ]
  })

const line = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "a",
    "b",
    "a ",
    "\t}",
    "*** End Patch",
    "*** End of File",
    "@@ a",
    "+a",
    "-a",
    "\\ No newline"
  ),
  fc.string({ unit: "grapheme", maxLength: 6 }).filter((text) => !/[\n\r\uFEFF]/u.test(text))
)

const text = (ending: string) =>
  fc
    .tuple(fc.array(line, { maxLength: 12 }), fc.boolean())
    .map(([lines, ended]) => (lines.length === 0 ? "" : lines.join(ending) + (ended ? ending : "")))

describe("patches made from two texts", () => {
  it.each(["\n", "\r\n"])("TO-73: any text becomes any other one exactly, with line ends of %j", (ending) => {
    forAll([text(ending), text(ending)], 400, (before, after) => {
      fc.pre(before !== after && isCrlf(before) === (ending === "\r\n"))
      const hunk = hunksOf(diff(linesOf(before, ending), linesOf(after, ending)), Number.MAX_SAFE_INTEGER)
      assert.strictEqual(update(before, ...hunk), after)
    })
  })

  it("TO-73: hunks with few lines around them do the same where lines differ from each other", () => {
    const step = fc.record({ text: line, fate: fc.constantFrom("keep", "keep", "keep", "remove", "change", "insert") })
    forAll(
      [fc.array(step, { minLength: 1, maxLength: 30 }), fc.integer({ min: 1, max: 3 }), fc.boolean()],
      200,
      (steps, around, ended) => {
        const before = steps.map((one, index) => `${index}:${one.text}x`)
        const after = before.flatMap((old, index) => {
          const fate = steps[index]?.fate
          return fate === "remove"
            ? []
            : fate === "change"
              ? [`new ${old}`]
              : fate === "insert"
                ? [old, "inserted"]
                : [old]
        })
        const whole = (lines: ReadonlyArray<string>) =>
          lines.map((one, index) => one + (index < lines.length - 1 || ended ? "\n" : "")).join("")
        const [from, to] = [whole(before), whole(after)]
        fc.pre(from !== to)
        assert.strictEqual(update(from, ...hunksOf(diff(linesOf(from, "\n"), linesOf(to, "\n")), around)), to)
      }
    )
  })
})
