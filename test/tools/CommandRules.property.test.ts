import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as grammar from "unbash"
import type { Rule, Verdict } from "../../packages/core/src/domain/Rule.ts"
import { readCommandLine } from "../../packages/core/src/permission/CommandLine.ts"
import { lineVerdict } from "../../packages/core/src/permission/CommandRules.ts"
import { cases } from "../support/Cases.ts"

const rule = (resource: string, verdict: Verdict): Rule => ({ permission: "bash", resource, verdict })
const rules = [rule("*", "ask"), rule("good", "allow"), rule("good *", "allow"), rule("bad *", "deny")]
const open = [rule("*", "allow"), rule("bad *", "deny")]

const judge = (text: string, list: ReadonlyArray<Rule> = rules): Verdict =>
  lineVerdict({ grammar, permission: "bash", rules: list, approvals: [] }, readCommandLine(grammar, text))

const single = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Ways to put a command into a line that runs it, or may. */
const nestings: ReadonlyArray<(inner: string) => string> = [
  (inner) => `good x; ${inner}`,
  (inner) => `${inner}\ngood x`,
  (inner) => `good x && { ${inner}\n} || good y`,
  (inner) => `good x | { ${inner}\n}`,
  (inner) => `{ ${inner}\n} &`,
  (inner) => `( ${inner}\n)`,
  (inner) => `{ ${inner}\n}`,
  (inner) => `! { ${inner}\n}`,
  (inner) => `if good x; then ${inner}\nfi`,
  (inner) => `if ${inner}\nthen good x; fi`,
  (inner) => `for f in a b; do ${inner}\ndone`,
  (inner) => `while good x; do ${inner}\ndone`,
  (inner) => `case a in (a) ${inner}\n;; esac`,
  (inner) => `f() { ${inner}\n}; f`,
  (inner) => `good "$( ${inner}\n)"`,
  (inner) => `good x <( ${inner}\n)`,
  (inner) => `x=$( ${inner}\n)`,
  (inner) => `good <<E${inner.length}\n$( ${inner}\n)\nE${inner.length}`,
  (inner) => `{ ${inner}\n} 2>&1 > /dev/null`
]
/** Ways to have another command run it; the inner one is a text of its own there. */
const wrappings: ReadonlyArray<(inner: string) => string> = [
  (inner) => `sh -c ${single(inner)}`,
  (inner) => `eval ${single(inner)}`,
  (inner) => `sudo bash -c ${single(inner)}`
]
/** Spellings of one denied command, and commands that run it. */
const spellings = [
  "bad x",
  "\\bad x",
  "'bad' x",
  '"b"a\\d x',
  "$'\\x62ad' x",
  "/usr/bin/bad x",
  "env bad x",
  "sudo -u y bad x",
  "command bad x",
  "nohup timeout 5 nice bad x",
  "xargs bad",
  "find . -exec bad {} \\;"
]

const nested = (innermost: ReadonlyArray<string>) =>
  fc
    .tuple(
      fc.constantFrom(...innermost),
      fc.array(fc.constantFrom(...nestings), { maxLength: 5 }),
      fc.array(fc.constantFrom(...wrappings), { maxLength: 2 }),
      fc.array(fc.constantFrom(...nestings), { maxLength: 2 })
    )
    .map(([inner, first, wrapped, last]) => [...first, ...wrapped, ...last].reduce((text, nest) => nest(text), inner))

describe("a command line", () => {
  it.prop(
    "BR-9: a denied command is found in whatever nesting",
    [nested(spellings)],
    ([text]) => {
      assert.strictEqual(judge(text), "deny", text)
      assert.strictEqual(judge(text, open), "deny", text)
    },
    { fastCheck: { numRuns: cases(160) } }
  )

  it.prop(
    "BR-1: nothing that contains a command without a rule is allowed",
    [
      nested(["other x", "good-x y", "good\\ x", "goodx", "$good x", "/good x", "./good x", "env good x", "good x > y"])
    ],
    ([text]) => assert.notStrictEqual(judge(text), "allow", text),
    { fastCheck: { numRuns: cases(160) } }
  )

  it.prop(
    "BR-1: lists and compound commands of allowed commands are allowed",
    [fc.array(fc.constantFrom(...nestings.slice(0, 13), nestings[18] ?? String), { maxLength: 5 })],
    ([nests]) => {
      const text = nests.reduce((inner, nest) => nest(inner), "good x")
      assert.strictEqual(judge(text), "allow", text)
    },
    { fastCheck: { numRuns: cases(80) } }
  )

  const token = fc.constantFrom(
    ..."good|good |bad |other | |\n|;|&|&&|||(|)|{ |; }|'|\"|\\|$|`|$(|#|<<E\n|\nE\n|<<<|<|>|>&|2>&1|/dev/null|if |then |fi".split(
      "|"
    ),
    ..."$v|v|[|]|]=1|[v]|RANDOM=|${v|${a[|:0|@P}|a=(|$[|$((|-eq 0|-v |+=|x=$v|".split("|"),
    ..."do |done|for x in |while |case x in |esac|;;|f(){ |f|[[ |]]|((|))|!|time |coproc |$'|{a,b}|*|~|=|x=1|eval |$x|${x:-|}".split(
      "|"
    )
  )

  it.prop(
    "BR-2: any text gets a verdict",
    [fc.array(token, { maxLength: 40 })],
    ([tokens]) => assert.include(["allow", "ask", "deny"], judge(tokens.join(""))),
    { fastCheck: { numRuns: cases(200) } }
  )

  /** Lines that rules allow, with a few tokens put in anywhere. */
  const templates = [
    "good x; good y",
    "good 'x' \"y\" && good z",
    "if good x; then good y; fi",
    "for x in 1 2; do good x; done",
    "{ good x; good y; }",
    "(good x | good y)",
    "f() { good x; }; f",
    "case x in x) good;; y|z) good;; esac",
    "good <<E\nbody\nE\ngood x",
    "good <<'E' | good y\nbody $(other)\nE\ngood z",
    "! good x || good y &",
    "good $'x\\ny' z # other",
    "[[ x = y ]] && good x",
    "good x 2>&1 >/dev/null | good",
    "good \\\nx \"a'b\" 'c\"d'",
    // What evaluates a variable's text runs what is hidden in this one.
    "v='b[$(other)0]'; good $v; [[ a == b ]] || good \"$v\"",
    "v='b[$(other)0]'; a=(x y); x=1; good ${a} ${v:-z}"
  ]
  const mutated = fc
    .tuple(fc.constantFrom(...templates), fc.array(fc.tuple(fc.nat(60), fc.nat(2), token), { maxLength: 3 }))
    .map(([template, changes]) =>
      changes.reduce((text, [at, gone, added]) => `${text.slice(0, at)}${added}${text.slice(at + gone)}`, template)
    )

  it("BR-2: of the lines that are allowed, bash runs no command and makes no file that no rule allows", () => {
    const folder = mkdtempSync(join(tmpdir(), "lines-"))
    try {
      const seed = Number(process.env["DAYBOOK_SEED"] ?? Date.now())
      const lines = [...new Set(fc.sample(mutated, { numRuns: cases(1_200), seed }))]
      const allowed = lines.filter((line) => judge(line) === "allow")
      assert.isAbove(allowed.length, 100)
      writeFileSync(join(folder, "lines"), allowed.map((line) => `${line}\0`).join(""))
      // Each line in a shell of its own, where every command is unknown and says its name on descriptor 9.
      const driver = `command_not_found_handle() { printf '%s\\n' "$1" >&9; }
        PATH=/nonexistent
        while IFS= read -r -d '' line <&8; do ( eval "$line" ) < /dev/null > /dev/null 2>&1 8<&-; done 8< lines 9>&1`
      const ran = spawnSync("/bin/bash", ["-c", driver], { cwd: folder, encoding: "utf8", timeout: 60_000 })
      const names = new Set(ran.stdout.split("\n").filter((name) => name !== ""))
      assert.deepStrictEqual([...names], ["good"], `seed ${seed}`)
      assert.deepStrictEqual(readdirSync(folder), ["lines"], `seed ${seed}`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
