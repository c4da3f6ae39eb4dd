import { assert, describe, it } from "@effect/vitest"
import * as grammar from "unbash"
import { literal } from "../../packages/core/src/domain/Rule.ts"
import { readCommandLine } from "../../packages/core/src/permission/CommandLine.ts"
import { lineVerdict, whyAsked } from "../../packages/core/src/permission/CommandRules.ts"
import { careful, judge, rulesOf, table, type Written } from "./CommandTable.ts"

describe("commands of a line", () => {
  table("BR-1", careful, [
    ["git diff x", "allow"],
    ["git status", "allow"],
    ["git status -s", "ask"],
    ["git push origin", "deny"],
    ["ls", "ask"],
    ["git diff x; git log y", "allow"],
    ["git diff x; ls", "ask"],
    ["git diff x; rm y", "deny"],
    ["git diff x;rm y", "deny"],
    ["git diff x && cat y || echo z", "allow"],
    ["git diff x && rm y", "deny"],
    ["git diff x || rm y", "deny"],
    ["git diff x | grep y", "allow"],
    ["git diff x | tee y", "ask"],
    ["git diff x | rm y", "deny"],
    ["git diff x |& grep y", "allow"],
    ["git diff x & cat y", "allow"],
    ["git diff x & rm y", "deny"],
    ["git diff x\ncat y", "allow"],
    ["git diff x\nrm y", "deny"],
    ["git diff x\n\n\n  ls", "ask"],
    ["(git diff x)", "allow"],
    ["(git diff x; rm y)", "deny"],
    ["{ git diff x; cat y; }", "allow"],
    ["{ git diff x; rm y; }", "deny"],
    ["! git diff x", "allow"],
    ["! rm x", "deny"],
    ["if git diff x; then cat y; else echo z; fi", "allow"],
    ["if git diff x; then rm y; fi", "deny"],
    ["if rm x; then cat y; fi", "deny"],
    ["if git diff x; then cat y; elif rm z; then echo a; fi", "deny"],
    ["while git diff x; do cat y; done", "allow"],
    ["until git diff x; do rm y; done", "deny"],
    ["for f in a b; do cat $f; done", "allow"],
    ["for f in a b; do rm $f; done", "deny"],
    ["for f in a b; do git diff $f; done", "ask"],
    ["case a in a) cat x;; *) rm y;; esac", "deny"],
    ["case a in a) cat x;; *) grep y z;; esac", "allow"],
    ["select f in a b; do rm $f; done", "deny"],
    ["f() { cat x; }; f", "allow"],
    ["f() { rm x; }; f", "deny"],
    ["f() { ls; }; f", "ask"],
    ["function f { rm x; }", "deny"],
    ["f() { f | f & }; f", "ask"],
    ["(f() { cat x; }); f", "ask"],
    ["f; f() { cat x; }", "ask"],
    ["if cat x; then f() { cat x; }; fi; f", "ask"],
    ['f() { "$@"; }; f ls', "ask"],
    ["git() { rm x; }; git diff y", "deny"],
    ["coproc cat x", "allow"],
    ["coproc rm x", "deny"],
    ["[[ -f x ]] && cat x", "allow"],
    ["[[ -f x ]] && rm x", "deny"],
    ["cat x # rm y", "allow"],
    ["# rm y\ncat x", "allow"],
    ["# rm y", "ask"],
    ["", "ask"],
    ["cat <<EOF\nrm x\nEOF", "allow"],
    ["cat - <<EOF\nrm x\nEOF", "allow"],
    ["cat - <<EOF\ntext\nEOF\nrm y", "deny"],
    ["cat - <<'EOF'\n$(rm x)\nEOF", "allow"],
    ["grep a <<< 'rm x'", "allow"],
    ["grep a <<EOF; rm y\ntext\nEOF", "deny"]
  ])

  it("BR-1: the last of the rules that match a command decides", () => {
    assert.strictEqual(judge("rm build", { ...careful, "rm build": "allow" }), "allow")
    assert.strictEqual(judge("git diff secret", { ...careful, "* secret": "ask" }), "ask")
  })

  it("BR-1: rules for another permission say nothing of commands", () => {
    const rules = [{ permission: "edit", resource: "*", verdict: "allow" as const }]
    const options = { grammar, permission: "bash", rules, approvals: [] }
    assert.strictEqual(lineVerdict(options, readCommandLine(grammar, "cat x")), "ask")
  })
})

describe("what is not read", () => {
  table("BR-2", careful, [
    ["git diff 'x", "ask"],
    ['git diff "x', "ask"],
    ["git diff x; }", "ask"],
    ["git diff x; fi", "ask"],
    ["git diff x )", "ask"],
    ["git diff `x", "ask"],
    ["git diff $(x", "ask"],
    ["if git diff x; then", "ask"],
    ["cat - <<EOF\nx", "ask"],
    ["git diff x ;; cat y", "ask"],
    ["git diff x\u200b", "ask"],
    ["git diff x\u202e", "ask"],
    ["git diff\u00a0x", "ask"],
    ["git diff x\r", "ask"],
    ["git diff \u001b[2Jx", "ask"],
    ["rm x 'y", "deny"],
    [`git diff ${"x".repeat(17_000)}`, "ask"],
    [`git diff x${"; cat y".repeat(501)}`, "ask"],
    [`git diff ${"$(".repeat(2_000)}`, "ask"],
    [`${"(".repeat(2_000)}git diff x${")".repeat(2_000)}`, "ask"],
    [`${"f() ".repeat(4_000)}{ cat x; }`, "ask"]
  ])

  it("BR-2: a rule that denies or asks about the line as it is written holds", () => {
    assert.strictEqual(judge("cat x | grep y", { ...careful, "*| grep*": "deny" }), "deny")
    assert.strictEqual(judge("cat x | grep y", { ...careful, "*| grep*": "ask" }), "ask")
    assert.strictEqual(judge('cat "x"', { ...careful, '*"x"*': "deny" }), "deny")
  })
})

describe("quoting", () => {
  table("BR-3", careful, [
    ["\\rm x", "deny"],
    ["'rm' x", "deny"],
    ['"r"m x', "deny"],
    ["r\\m x", "deny"],
    ["r\\\nm x", "deny"],
    ["$'rm' x", "deny"],
    ["$'\\x72m' x", "deny"],
    ["$'\\162\\155' x", "deny"],
    ["rm\tx", "deny"],
    ["  rm   x", "deny"],
    ["rm 'x'", "deny"],
    ["git 'push' origin", "deny"],
    ["git  push  origin", "deny"],
    ["git 'diff' x", "allow"],
    ["git   diff   x", "allow"],
    ['"git" diff "x y; rm z"', "allow"],
    ["git diff 'x; rm y'", "allow"],
    ["git diff '$(rm y)'", "allow"],
    ["git diff \\$\\(rm y\\)", "allow"],
    ["git diff \\; rm y", "allow"],
    ["'git diff' x", "ask"],
    ["git 'diff x'", "ask"],
    ["'git diff x'", "ask"],
    ["npm run 'x y'", "allow"]
  ])

  it("BR-3: a rule that is written with quotes allows a command that is written so", () => {
    const rules: Written = { 'git commit -m "fix: *"': "allow" }
    assert.strictEqual(judge('git commit -m "fix: all"', rules), "allow")
    assert.strictEqual(judge('git commit -m "fix: all"; ls', rules), "ask")
    assert.strictEqual(judge('git commit -m "fix: $(ls)"', rules), "ask")
  })
})

describe("what is known only when it runs", () => {
  table("BR-8", careful, [
    ["$X y", "ask"],
    ["$X", "ask"],
    ["g* diff x", "ask"],
    ["/bin/r? x", "ask"],
    ["{git,diff,x}", "ask"],
    ["~/git diff x", "ask"],
    ["'' diff x", "ask"],
    ['g"$X" diff x', "ask"],
    ["git $X y", "ask"],
    ["git diff $X", "ask"],
    ['git diff "$X"', "ask"],
    ["git diff src/$X", "ask"],
    ['git diff "src/$X"', "allow"],
    ['git diff src/"$@"', "ask"],
    ["git diff *.ts", "ask"],
    ["git diff ./*.ts", "allow"],
    ["git diff [a-z]*", "ask"],
    ["git diff {a,--output=b}", "ask"],
    ["git diff -{u,-output=b}", "ask"],
    ["X=--output=y; git diff $X", "ask"],
    ["cat $X", "allow"],
    ["cat *.ts", "allow"],
    ["echo $HOME", "allow"],
    ["find . $X", "ask"]
  ])

  it("BR-8: a word that can become what a rule denies or asks about is asked about", () => {
    const rules: Written = { "cat *": "allow", "cat secret*": "deny", "cat draft": "ask" }
    assert.strictEqual(judge("cat $X", rules), "ask")
    assert.strictEqual(judge('cat "s$X"', rules), "ask")
    assert.strictEqual(judge("cat d{a,r}aft", rules), "ask")
    assert.strictEqual(judge('cat "notes/$X"', rules), "allow")
  })
})

describe("rules for every command", () => {
  table("BR-10", { "*": "allow" }, [
    ["ls", "allow"],
    ["$X y > z", "allow"],
    ['sh -c "$X"', "allow"],
    ["ls 'x", "allow"]
  ])
  table("BR-10", { "*": "allow", "rm *": "deny", "git push *": "ask" }, [
    ["ls", "allow"],
    ["ls > x", "allow"],
    ["ls $(cat x)", "allow"],
    ["sudo ls", "allow"],
    ["npm run b -o y | tee z", "ask"],
    ["$X y", "ask"],
    ["r{m,x}", "ask"],
    ['sh -c "$X"', "ask"],
    ["cat x | sh", "ask"],
    ["eval $X", "ask"],
    ["PATH=/x ls", "ask"],
    ["git $X", "ask"],
    [`sudo ${"-n ".repeat(100)}rm x`, "ask"],
    [`git ${"-p ".repeat(100)}push x`, "ask"],
    ["hyperfine 'rm x'", "ask"],
    ["caffeinate -i rm x", "ask"],
    ["git commit -m 'rm x'", "allow"],
    ["bash x", "allow"],
    ["echo $X | bash /dev/stdin", "ask"],
    ["echo $X | sh -s", "ask"],
    ["git push x", "ask"],
    ["sudo git push x", "ask"],
    ["ls 'x", "ask"],
    ["ls $(rm x)", "deny"]
  ])
  table("BR-10", { "*": "deny", "git diff *": "allow", "cat *": "allow" }, [
    ["git diff x", "allow"],
    ["(git diff x | cat -n)", "allow"],
    ["git diff x; ls", "deny"],
    ["git diff 'x", "ask"],
    ["git log config", "deny"],
    ["ls 'x", "deny"]
  ])
})

describe("approvals of exactly one line", () => {
  it.each([
    "git fetch x && make -j2 > log 2>&1",
    'for f in *; do $X "$f"; done',
    "rm -i 'a",
    'PATH=/x sh -c "$(cat y)"',
    "sort -o x *.txt"
  ])("BR-11: an approval of exactly %j allows it, and nothing beside it", (line) => {
    const rules: Written = { "*": "ask" }
    assert.strictEqual(judge(line, rules), "ask")
    assert.strictEqual(judge(line, rules, [literal(line)]), "allow")
    assert.strictEqual(judge(line, { ...rules, [literal(line)]: "allow" }), "allow")
    assert.strictEqual(judge(`${line}; ls`, rules, [literal(line)]), "ask")
    assert.strictEqual(judge(`${line} > z`, rules, [literal(line)]), "ask")
  })

  it("BR-11: an approval of one command allows it among others that are allowed", () => {
    assert.strictEqual(judge("make all && cat x", careful, ["make all"]), "allow")
    assert.strictEqual(judge("make all > x && cat x", careful, ["make all"]), "ask")
    assert.strictEqual(judge("PATH=/x make all && cat x", careful, ["make all"]), "ask")
    assert.strictEqual(judge("{ make all; } > x", careful, ["make all"]), "ask")
  })

  it("BR-11: no approval allows what a rule denies", () => {
    assert.strictEqual(judge("rm x", careful, ["rm x", "*"]), "deny")
    assert.strictEqual(judge("cat x; rm x", careful, ["cat x; rm x"]), "deny")
  })
})

describe("why a line is asked about", () => {
  const why = (line: string) =>
    whyAsked(
      {
        grammar,
        permission: "bash",
        rules: rulesOf(careful),
        approvals: [{ permission: "bash", resource: "make all" }]
      },
      readCommandLine(grammar, line)
    )

  it.each([
    ["ls", []],
    ["ls; make", []],
    ["git diff x; ls", [`no rule allows "ls"`]],
    ["make all && ls -l && cat x", [`no rule allows "ls -l"`]],
    ["git diff --output=x", [`"git diff --output=x": --output may run a command or write a file`]],
    ["cat $(ls)", [`"cat $(ls)": it has a substitution`]],
    ["echo x > y", [`"echo x > y": it is redirected to a file`]],
    ["cat x; echo '", ["the line cannot be judged by its commands: unterminated single quote"]],
    [
      Array.from({ length: 6 }, (_, n) => `ls ${n}`).join(";") + "; cat x",
      [...[0, 1, 2, 3, 4].map((n) => `no rule allows "ls ${n}"`), "and 1 more"]
    ],
    [`cat x; ls ${"y".repeat(200)}`, [`no rule allows "ls ${"y".repeat(97)}..."`]]
  ])("BR-13: %j: %j", (line, reasons) => {
    assert.deepStrictEqual(why(line), reasons)
  })
})
