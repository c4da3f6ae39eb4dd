import { spawnSync } from "node:child_process"
import { assert, it } from "@effect/vitest"
import * as grammar from "unbash"
import { isUnfinished } from "../../../packages/shell/src/policy/VisibleCommands.ts"

/** What bash says of a text that goes on. */
const bashWantsMore = (text: string): boolean => {
  const { stderr } = spawnSync("bash", ["-n"], {
    input: text,
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" }
  })
  return /unexpected EOF|unexpected end of file|delimited by end-of-file/.test(stderr)
}

const scripts = [
  "echo 'a\nb' \"c\nd\" e",
  "cat <<E && echo done\none\n E\nE\necho next",
  "cat <<-'E F' <<B\n\tone\n\tE F\ntwo\nB",
  "if true\nthen\n  echo a\nelse\n  echo b\nfi",
  "for i in 1 2\ndo\n  echo $i\ndone",
  "while read -r x\ndo echo $x\ndone",
  "case $x in\n  a) echo a;;\n  *) echo b\nesac",
  "f() {\n  echo a\n}\nf",
  "{ echo a\necho b\n}",
  "(\n echo a\n)",
  "echo $(\n  echo a\n) `echo\n` ${x:-a\nb}",
  "true &&\n false ||\n echo a |\n cat",
  'echo "$(cat <<E\na\nE\n)"',
  "echo a # it's a comment\necho b",
  "echo $((1 +\n2))",
  "echo ')' \\) \"'\" '\"'",
  "echo )\necho a",
  "fi",
  "echo a; then"
]

it("SL-191: a command goes on after a line if bash says so", () => {
  for (const script of scripts) {
    const lines = script.split("\n")
    for (const count of lines.keys()) {
      const text = lines.slice(0, count + 1).join("\n")
      assert.strictEqual(isUnfinished(grammar, text), bashWantsMore(text), JSON.stringify(text))
    }
  }
})

it("SL-191: a command goes on after a backslash, except in a comment, and within [[", () => {
  for (const [text, goesOn] of [
    ["echo a \\", true],
    ["echo a\\", true],
    ["\\", true],
    ["echo a \\\\", false],
    ["echo a \\\nb", false],
    ["echo a # b \\", false],
    ["# b \\", false],
    ["echo 'a\\'", false],
    // Bash has other words for these.
    ["[[ a == a &&", true],
    ["", false]
  ] as const) {
    assert.strictEqual(isUnfinished(grammar, text), goesOn, JSON.stringify(text))
  }
})
