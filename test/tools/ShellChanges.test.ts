/** What a rule means in a shell that has run other lines. */
import { spawnSync } from "node:child_process"
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { FastCheck as fc } from "effect"
import * as grammar from "unbash"
import { readCommandLine } from "../../packages/core/src/permission/CommandLine.ts"
import { changesShell, verdictAfter } from "../../packages/core/src/permission/CommandRules.ts"
import { cases } from "../support/Cases.ts"
import { careful, judge, rulesOf, type Written } from "./CommandTable.ts"

const changes = (line: string) => changesShell(grammar, readCommandLine(grammar, line))

const after = (before: string, line: string, written: Written, approved: ReadonlyArray<string> = []) =>
  verdictAfter(
    {
      grammar,
      permission: "bash",
      rules: rulesOf(written),
      approvals: approved.map((resource) => ({ permission: "bash", resource }))
    },
    before,
    readCommandLine(grammar, line)
  )

describe("lines that change a shell", () => {
  it.each([
    "f() { ls; }",
    "function f { ls; }",
    "true && f() { ls; }",
    "alias ls=rm",
    "unalias ls",
    "command alias ls=rm",
    "builtin alias ls=rm",
    "eval 'alias ls=rm'",
    'eval "$x"',
    "export A=1",
    "export PATH=/x:$PATH",
    "PATH=/x",
    "declare -x A=1",
    "hash -p /bin/rm ls",
    "enable -n test",
    "shopt -s expand_aliases",
    "set -o posix",
    "trap 'rm x' DEBUG",
    "unset -f ls",
    "source x.sh",
    ". x.sh",
    "exec 3>x",
    "exec -a x",
    "read PATH",
    "mapfile PATH",
    "printf -v PATH x",
    "for PATH in x; do ls; done",
    ": ${PATH:=x}",
    "((PATH = 1))",
    "let PATH=1",
    "ls {PATH}>x",
    "coproc PATH { cat; }",
    "$x y",
    "f() {"
  ])("BR-20: %j does", (line) => {
    assert.isTrue(changes(line))
  })

  it.each([
    "ls",
    "cd x",
    "cd x && npm test",
    "x=1; echo $x",
    "for f in *; do echo $f; done",
    "export LANG=C",
    "set -eu",
    "FOO=1 make",
    "npm run dev > log 2>&1 &",
    "printf '%s' x",
    "test -f x",
    "bash -c 'alias ls=rm'",
    "env PATH=/x make",
    "echo $(date)",
    "cat <<< x",
    "cat <<'END'\nx\nEND",
    "time make"
  ])("BR-20: %j does not", (line) => {
    assert.isFalse(changes(line))
  })
})

describe("a line after others", () => {
  it.each([
    // What the rules allow in one line, they allow in two.
    ["", "git diff x", "allow"],
    ["show() { git diff x; }", "git log y", "allow"],
    ["git() { cat x; }", "git diff x", "allow"],
    ["git() { rm x; }", "git diff x", "ask"],
    ["git() { ls; }", "git diff x", "ask"],
    ["alias cat=ls", "cat x", "ask"],
    ["export PATH=/x", "cat x", "ask"],
    [". ./x.sh", "cat x", "ask"],
    // The name alone must be allowed too: the line before may have been stopped.
    ["show() { git diff x; }", "show", "ask"],
    ["ls() { git diff x; }", "ls", "ask"],
    // A continued line does not swallow the next one.
    ["alias cat=ls \\", "git diff x", "ask"],
    ["git() { rm x; }", "rm y", "deny"]
  ] as const)("BR-20: after %j, %j: %s", (before, line, verdict) => {
    assert.strictEqual(after(before, line, careful), verdict)
  })

  it("BR-20: rules that allow everything allow it after any line", () => {
    for (const before of ["git() { rm x; }", "alias cat=rm", "f() {"]) {
      assert.strictEqual(after(before, "git status; cat x", { "*": "allow" }), "allow", before)
    }
  })

  it("BR-21: an approval of this state allows its line, and no other", () => {
    const before = "git() { ls; }"
    assert.strictEqual(after(before, "git status", careful, ["git status"]), "allow")
    assert.strictEqual(after(before, "git status; git diff x", careful, ["git status"]), "ask")
    assert.strictEqual(after(before, "git push x", careful, ["git push x"]), "deny")
  })
})

describe("names in a real shell", () => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-names-"))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ["good", "bad"]) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho ${name} >> ${folder}/log\n`)
    chmodSync(join(folder, name), 0o755)
  }
  writeFileSync(join(folder, "script"), "good() { bad; }\n")

  const rules: Written = {
    "*": "ask",
    good: "allow",
    "good *": "allow",
    "export *": "allow",
    "bad *": "deny",
    bad: "deny"
  }
  const earlier = fc.constantFrom(
    "good() { bad; }",
    "good() { good; }",
    "function good { bad; }",
    "good() if true; then bad; fi",
    "true && good() { bad; }",
    "(good() { bad; })",
    "alias good=bad",
    "alias good='bad;'",
    "unalias -a",
    "unset -f good",
    "eval 'good() { bad; }'",
    "builtin eval 'alias good=bad'",
    `. ${folder}/script`,
    `source ${folder}/script`,
    "trap bad DEBUG",
    "trap - DEBUG",
    "hash -p $PWD/bad good",
    "good=bad",
    "export x=bad",
    "command_not_found_handle() { bad; }",
    "PATH=/nowhere",
    "set -- bad",
    "shopt -u expand_aliases",
    "readonly -f good",
    "good",
    "good x; good y"
  )
  const later = fc.constantFrom(
    "good",
    "good x",
    "good; good y",
    "good $x",
    "{ good; }",
    "(good x)",
    "if good; then good; fi"
  )

  // One bash runs all cases, each in a subshell: to start one for each takes most of the time.
  it("BR-20: a line that the rules allow runs no denied command, whatever ran before", { timeout: 120_000 }, () => {
    const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
    const allowed = fc
      .sample(fc.tuple(fc.array(earlier, { maxLength: 3 }), later), cases(150))
      .filter(([lines, line]) => after(lines.filter(changes).join("\n"), line, rules) === "allow")
    const scripts = allowed.map(([lines, line], index) =>
      [
        "(shopt -s expand_aliases",
        ...lines.map((text) => `eval ${quoted(text)}`),
        ": > log",
        `eval ${quoted(line)})`,
        `mv log ${index}.log`
      ].join("\n")
    )
    const env = { PATH: `${folder}:/usr/bin:/bin` }
    spawnSync("bash", ["--norc", "-c", scripts.join("\n")], { cwd: folder, env })
    assert.isAbove(allowed.length, 10)
    allowed.forEach((each, index) =>
      assert.notInclude(readFileSync(join(folder, `${index}.log`), "utf8"), "bad", JSON.stringify(each))
    )
  })

  it.prop(
    "BR-20: the verdict after lines is never milder than the verdict without them",
    [fc.array(earlier, { maxLength: 3 }), later],
    ([lines, line]) => {
      const alone = judge(line, rules)
      const verdict = after(lines.join("\n"), line, rules)
      if (alone !== "allow") assert.strictEqual(verdict, alone)
      else assert.notStrictEqual(verdict, "deny")
    }
  )
})
