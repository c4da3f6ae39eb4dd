import { assert, describe, it } from "@effect/vitest"
import * as grammar from "unbash"
import { readCommandLine } from "../../packages/core/src/permission/CommandLine.ts"
import { lineVerdict, whyAsked } from "../../packages/core/src/permission/CommandRules.ts"
import { literal, type Rule, type Verdict } from "../../packages/core/src/permission/Rule.ts"

type Written = Readonly<Record<string, Verdict>>

const rulesOf = (written: Written): ReadonlyArray<Rule> =>
  Object.entries(written).map(([resource, verdict]) => ({ permission: "bash", resource, verdict }))

const judge = (line: string, written: Written, approved: ReadonlyArray<string> = []): Verdict =>
  lineVerdict(
    {
      grammar,
      permission: "bash",
      rules: rulesOf(written),
      approvals: approved.map((resource) => ({ permission: "bash", resource }))
    },
    readCommandLine(grammar, line)
  )

/** The rules of a careful person. */
const careful: Written = {
  "*": "ask",
  "git diff *": "allow",
  "git log *": "allow",
  "git status": "allow",
  "cat *": "allow",
  "grep *": "allow",
  "echo *": "allow",
  "find *": "allow",
  "sort *": "allow",
  "sed *": "allow",
  "awk *": "allow",
  "npm test": "allow",
  "npm run *": "allow",
  "rm *": "deny",
  "git push *": "deny"
}

const table = (law: string, written: Written, rows: ReadonlyArray<readonly [string, Verdict]>) =>
  it.each(rows.map(([line, verdict]) => [law, line, verdict] as const))("%s: %j: %s", (_, line, verdict) => {
    assert.strictEqual(judge(line, written), verdict)
  })

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

describe("what a rule has to name", () => {
  table("BR-4", careful, [
    ["git diff $(cat x)", "ask"],
    ["git diff $(rm x)", "deny"],
    ["git diff `rm x`", "deny"],
    ["git diff `cat \\`rm x\\``", "deny"],
    ['echo "$(rm x)"', "deny"],
    ['echo "a $(cat b)"', "ask"],
    ["echo ${x:-$(rm y)}", "deny"],
    ["echo $((1 + $(rm y)))", "deny"],
    ["echo $((x + 1))", "ask"],
    ["echo $((1 + 1))", "allow"],
    ["echo ${x@P}", "ask"],
    ["echo ${!x}", "ask"],
    ["echo ${x[y]}", "ask"],
    ["echo ${x:y}", "ask"],
    ["echo ${PATH:=x}; cat y", "ask"],
    ["echo ${x:+y}", "allow"],
    ["((x++)); cat y", "ask"],
    ["[[ $x -eq 1 ]] && cat y", "ask"],
    ["[[ -v x ]] && cat y", "ask"],
    ["x[y]=1; cat y", "ask"],
    ["x=$(rm y); cat z", "deny"],
    ["x=$(cat y); cat z", "ask"],
    ["for f in $(rm y); do cat z; done", "deny"],
    ["for f in $(cat y); do cat z; done", "ask"],
    ["case $(rm y) in *) cat z;; esac", "deny"],
    ["[[ $(rm y) ]] && cat z", "deny"],
    ["cat - <<EOF\n$(rm x)\nEOF", "deny"],
    ["cat - <<EOF\n`cat x`\nEOF", "ask"],
    ["cat <(rm x)", "deny"],
    ["cat <(cat x)", "ask"],
    ["cat x >(rm y)", "deny"],
    ["git diff x > y", "ask"],
    ["git diff x >y", "ask"],
    ["git diff x >> y", "ask"],
    ["git diff x >| y", "ask"],
    ["git diff x &> y", "ask"],
    ["git diff x 2> y", "ask"],
    ["git diff x <> y", "ask"],
    ["git diff x >& y", "ask"],
    ["git diff x {fd}> y", "ask"],
    ["cat x < y", "ask"],
    ["cat - < /dev/tcp/h/1", "ask"],
    ["> y cat x", "ask"],
    ["cat x; > y", "ask"],
    ["{ cat x; } > y", "ask"],
    ["(cat x) > y", "ask"],
    ["for f in a; do cat x; done > y", "ask"],
    ["f() { cat x; } > y", "ask"],
    ["cat x > $(rm y)", "deny"],
    ["cat x > /dev/nullx", "ask"],
    ["cat x > /dev/null/../../y", "ask"],
    ["cat x > $y", "ask"],
    ["cat x > /dev/null", "allow"],
    ["cat x 2>/dev/null", "allow"],
    ["cat x &>/dev/null", "allow"],
    ["cat x 2>&1", "allow"],
    ["cat x >&2", "allow"],
    ["cat x 2>&-", "allow"],
    ["cat x < /dev/null", "allow"],
    ["{ cat x; } 2>&1", "allow"]
  ])
  table("BR-5", careful, [
    ["PATH=/x cat y", "ask"],
    ["LD_PRELOAD=x cat y", "ask"],
    ["GIT_EXTERNAL_DIFF=x git diff y", "ask"],
    ["GIT_PAGER=x git log y", "ask"],
    ["BASH_ENV=x cat y", "ask"],
    ["IFS=x cat y", "ask"],
    ["FOO=1 cat y", "ask"],
    ["LC_ALL=C cat y", "allow"],
    ["NO_COLOR=1 npm test", "allow"],
    ["PATH=/x; cat y", "ask"],
    ["PATH+=:/x; cat y", "ask"],
    ["x=1; cat y", "allow"],
    ["for PATH in /x; do cat y; done", "ask"],
    ["NODE_OPTIONS=--import=./x npm test", "ask"],
    ["npm_config_script_shell=./x npm test", "ask"]
  ])

  it.each([
    ["echo $(*", "echo $(cat x)", "allow"],
    ["echo $(*", "echo $(ls)", "ask"],
    ["echo $(*", "echo $(rm x)", "deny"],
    ["npm run * > *", "npm run b > y", "allow"],
    ["npm run * > *", "npm run b >> y", "ask"],
    ["npm run * > y", "npm run b > z", "ask"],
    ["NODE_OPTIONS=* npm test", "NODE_OPTIONS=--import=x npm test", "allow"],
    ["NODE_OPTIONS=* npm test", "NODE_OPTIONS=x PATH=y npm test", "ask"],
    ["git diff --output=*", "git diff --output=x", "allow"],
    ["git diff --output=*", "git diff --output=x --ext-diff", "ask"],
    ["find * -exec cat *", "find . -exec cat {} \\;", "allow"],
    ["sort -o *", "sort -o x y", "allow"]
  ] as const)("BR-4: a rule for %j: %j: %s", (resource, line, verdict) => {
    assert.strictEqual(judge(line, { ...careful, [resource]: "allow" }), verdict)
  })
})

describe("options and arguments that run or write", () => {
  table("BR-6", careful, [
    ["git diff --output=x", "ask"],
    ["git diff --output x", "ask"],
    ["git diff --outp=x", "ask"],
    ["git diff --ext-diff", "ask"],
    ["git log -O x", "ask"],
    ["git diff '--output=x'", "ask"],
    ["git diff --stat", "allow"],
    ["git log --oneline -5 --pretty=%h", "allow"],
    ["git log --no-pager", "allow"],
    ["sort -o x y", "ask"],
    ["sort -nox y", "ask"],
    ["sort --compress-program=x y", "ask"],
    ["sort -n x", "allow"],
    ["find . -name x", "allow"]
  ])
  table("BR-7", careful, [
    ["find . -delete", "ask"],
    ["find . -fprint x", "ask"],
    ["find . -exec cat {} ;", "ask"],
    ["find . -exec cat {} \\;", "ask"],
    ["find . -exec rm {} \\;", "deny"],
    ["find . -name x -o -execdir rm -rf {} +", "deny"],
    ["find . -ok sh -c 'rm x' ;", "deny"],
    ["sed -n 1,5p x", "allow"],
    ["sed 's/a/b/g' x", "allow"],
    ["sed -i s/a/b/ x", "ask"],
    ["sed --in-place s/a/b/ x", "ask"],
    ["sed '1e rm x' y", "ask"],
    ["sed 's/a/b/e' x", "ask"],
    ["sed 's/a/b/w y' x", "ask"],
    ["sed -n -e p -e 'w y' x", "ask"],
    ['sed "s/a/$x/" y', "ask"],
    ["awk '{print $1}' x", "allow"],
    ["awk 'BEGIN { system(\"rm x\") }'", "ask"],
    ["awk '{print > \"y\"}' x", "ask"],
    ["awk -f x y", "ask"],
    ["grep -o x y", "allow"],
    ["npm run b --script-shell=./y", "ask"]
  ])
  table("BR-7", { "git *": "allow", "tar *": "allow", "curl *": "allow", "node *": "allow", "rsync *": "allow" }, [
    ["git -c core.pager=x diff", "ask"],
    ["git -ccore.pager=x diff", "ask"],
    ["git --exec-path=x diff", "ask"],
    ["git --config-env=core.pager=X diff", "ask"],
    ["git fetch --upload-pack=x y", "ask"],
    ["git fetch --upload-p x y", "ask"],
    ["git push --receive-pack=x", "ask"],
    ["git clone -u x y", "ask"],
    ["git clone ext::sh x", "ask"],
    ["git rebase --exec x", "ask"],
    ["git rebase -x y", "ask"],
    ["git config core.pager x", "ask"],
    ["git bisect run x", "ask"],
    ["git submodule foreach x", "ask"],
    ["git grep -Ox y", "ask"],
    ["git grep --open-files-in-pager=x y", "ask"],
    ["git archive -o x", "ask"],
    ["git format-patch --output-directory x", "ask"],
    ["git difftool -x y", "ask"],
    ["git commit -m x", "allow"],
    ["git diff -u x", "allow"],
    ["git log --cc -c", "allow"],
    ["git log config", "allow"],
    ["git -C x config y z", "ask"],
    ["tar -xf x", "ask"],
    ["tar -t -I x", "ask"],
    ["tar --to-command=x", "ask"],
    ["tar --checkpoint-action=exec=x", "ask"],
    ["curl -o x y", "ask"],
    ["curl -sSLo x y", "ask"],
    ["curl -O y", "ask"],
    ["curl --output x y", "ask"],
    ["curl -K x", "ask"],
    ["curl -s x", "allow"],
    ["node x", "allow"],
    ["node -e x", "ask"],
    ["node --eval=x", "ask"],
    ["node --import ./x y", "ask"],
    ["rsync -e x y z", "ask"],
    ["rsync --rsh=x y z", "ask"]
  ])
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

describe("commands that run commands", () => {
  const lines = [
    "env rm x",
    "env -i A=b rm x",
    "env -S 'rm x'",
    "env '-Srm x'",
    "sudo rm x",
    "sudo -u root rm x",
    "doas rm x",
    "command rm x",
    "command -p rm x",
    "builtin command rm x",
    "exec rm x",
    "exec -a y rm x",
    "nohup rm x",
    "nohup rm x &",
    "time rm x",
    "time -p rm x",
    "timeout 5 rm x",
    "timeout -s KILL 5 rm x",
    "nice rm x",
    "nice -n 5 rm x",
    "setsid rm x",
    "stdbuf -oL rm x",
    "busybox rm x",
    "xargs rm",
    "cat x | xargs -n1 rm -f",
    "cat x | xargs -I{} rm {}",
    "parallel rm x",
    "watch 'rm x'",
    "sh -c 'rm x'",
    "bash -lc 'rm x'",
    "bash -c 'cat y && rm x'",
    "bash -c \"bash -c 'rm x'\"",
    "sudo env nice sh -c 'timeout 5 rm x'",
    "eval rm x",
    "eval 'rm x'",
    "eval 'cat y; rm x'",
    "trap 'rm x' EXIT",
    "alias y='rm x'",
    "sh <<< 'rm x'",
    "bash <<EOF\nrm x\nEOF",
    "{ bash; } <<EOF\nrm x\nEOF",
    "echo 'rm x' | sh",
    "echo rm x | bash",
    "printf 'cat y\\nrm x' | sh",
    "cat <<EOF | sh\nrm x\nEOF",
    "git -c alias.y='!rm x' y",
    "git submodule foreach rm x",
    "git submodule foreach 'rm x'",
    "git rebase --exec 'rm x' y",
    "script -c 'rm x'",
    "su -c 'rm x'",
    "ssh h rm x",
    "/bin/rm x",
    "/usr/bin/../bin/rm x",
    "./rm x",
    "sudo /bin/rm x",
    "\\env \\rm x",
    "git -C y push z",
    "git --no-pager push z",
    "git -c a=b -C y push z"
  ]
  it.each(lines)("BR-9: a denied command is found in %j", (line) => {
    assert.strictEqual(judge(line, careful), "deny")
    assert.strictEqual(judge(line, { "*": "allow", "rm *": "deny", "git push *": "deny" }), "deny")
  })

  it.each(lines)("BR-12: rules that name no wrapper ask about %j", (line) => {
    assert.notStrictEqual(
      judge(line.replaceAll("rm", "cat").replaceAll("push", "diff"), { ...careful, "sh *": "ask" }),
      "deny"
    )
    assert.notStrictEqual(judge(line, { "git diff *": "allow", "cat *": "allow" }), "allow")
  })

  const wrapping: Written = {
    ...careful,
    "timeout *": "allow",
    "sh -c *": "allow",
    "xargs *": "allow",
    "sudo cat *": "allow",
    "npx tsc *": "allow",
    "bash check.sh *": "allow"
  }
  table("BR-12", wrapping, [
    ["timeout 5 cat x", "allow"],
    ["timeout 5 ls", "ask"],
    ["timeout -s git diff rm x", "deny"],
    ["timeout -k 5 5 cat x", "ask"],
    ["timeout 5 git diff --output=x", "ask"],
    ["sh -c 'cat x'", "allow"],
    ["sh -c 'cat x; ls'", "ask"],
    ["sh -c 'cat x > y'", "ask"],
    ['sh -c "$x"', "ask"],
    ["sh -c 'cat x", "ask"],
    ["xargs cat", "allow"],
    ["xargs git diff", "ask"],
    ["xargs ls", "ask"],
    ["sudo cat x", "allow"],
    ["sudo -u y cat x", "ask"],
    ["sudo ls", "ask"],
    ["env cat x", "ask"],
    ["command -v ls", "ask"],
    ["npx tsc -p x", "allow"],
    ["npx -y tsc x", "ask"],
    ["npx eslint x", "ask"],
    ["bash check.sh a", "allow"],
    ["bash other.sh a", "ask"],
    ["bash -x check.sh a", "ask"]
  ])
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

describe("text that the shell evaluates", () => {
  /** The shell's own commands as well. */
  const builtins: Written = {
    ...careful,
    ...Object.fromEntries(
      "[ compgen declare export fc local mapfile read set test unset wait"
        .split(" ")
        .map((name) => [`${name} *`, "allow"])
    )
  }
  const open: Written = { "*": "allow", "rm *": "deny" }
  const hidden = "b[$(rm y)0]"

  it.each([
    `a=(['${hidden}']=1); cat z`,
    `x='${hidden}'; a=([x]=1); cat z`,
    `x='${hidden}'; a=(1 [x]+=1); cat z`,
    `declare -i x; x='${hidden}'`,
    `local -ri x`,
    `declare +n x`,
    `declare -n r; r='${hidden}'; echo $r`,
    `RANDOM='${hidden}'; cat z`,
    `SRANDOM='${hidden}'; cat z`,
    `OPTIND='${hidden}'; cat z`,
    `HISTCMD='${hidden}'; cat z`,
    `for RANDOM in '${hidden}'; do cat z; done`,
    `read RANDOM <<< '${hidden}'`,
    `x=-v; [ $x '${hidden}' ]`,
    `x=-v; [ "$x" '${hidden}' ]`,
    `x=-v; [ ! "$x" '${hidden}' ]`,
    `x=-v; test "$x" '${hidden}'`,
    `x='-v b[$(rm)0]'; [ $x ]`,
    `x='-v b[$(rm)0] -o z'; [ $x = y ]`,
    `mapfile -tC 'rm x #' -c1 a <<< y`,
    `mapfile -c1 -C rm a <<< y`,
    `x=p; wait -n$x a`,
    `wait -np x`,
    `compgen -W '$(rm x)'`,
    `set -k; cat PATH=/x`,
    `set -a; FOO=1; cat x`,
    `set -euo posix; cat x`,
    `set $x; cat y`,
    `fc -s rm`,
    `cat x >&'$(rm y)'`,
    `cat x 2>&'b\`rm y\`'`
  ])("BR-14: %j asks, whether rules allow the command or all but one", (line) => {
    assert.notStrictEqual(judge(line, builtins), "allow")
    assert.notStrictEqual(judge(line, open), "allow")
  })

  table("BR-14", builtins, [
    ["a=(x y); cat z", "allow"],
    ["a=([0]=x [1]=y); cat z", "allow"],
    ["declare -a x", "allow"],
    ["declare -r x=1", "allow"],
    ['[ "$x" = y ]', "allow"],
    ['[ -n "$x" ] && cat y', "allow"],
    ['test ! -f "$x"', "allow"],
    ['[ "$x" -gt "$y" ]', "allow"],
    ['[ "$x" ]', "allow"],
    ["set -euo pipefail; cat x", "allow"],
    ["set -x\ncat x", "allow"],
    ["set -- a $x; cat y", "allow"],
    ["read -r x <<< y", "allow"],
    ["wait $!", "ask"],
    ["wait 1", "allow"]
  ])

  it.each(["$'r\\x{6d}' y", "$'r\\0x'm y", "$'rm\\0x' y", "$'\\cR'm y", "$'r\\u{6d}' y", "r$'\\xed' y"])(
    "BR-3: what shells read in different ways is not known: %j",
    (line) => assert.notStrictEqual(judge(line, open), "allow")
  )

  it.each([
    "export FOO=1; cat x",
    "FOO=1; export FOO; cat x",
    "export OPENSSL_CONF=./x",
    "declare -x DOTNET_STARTUP_HOOKS=x"
  ])("BR-5: a variable for the commands that follow asks: %j", (line) => {
    assert.strictEqual(judge(line, builtins), "ask")
    assert.strictEqual(judge(line, open), "ask")
    assert.strictEqual(judge("export CI=1 LC_ALL=C; cat x", builtins), "allow")
    assert.strictEqual(judge("export FOO=1; cat x", { ...builtins, "export FOO=*": "allow" }), "allow")
  })

  it("BR-1: a function that `unset` may have removed is the command of its name", () => {
    const line = "ls() { cat x; }; for i in 1 2; do ls; unset -f ls; done"
    assert.strictEqual(judge(line, { ...builtins, "unset *": "allow" }), "ask")
  })
})

describe("programs that run or write by their arguments", () => {
  const programs =
    "bun cc curl docker file gcc git go less make man node npm nvim openssl perl pnpm python3 rsync ruby uniq wget yq"
  const wide: Written = Object.fromEntries(
    programs.split(" ").flatMap((name) => [
      [name, "allow"],
      [`${name} *`, "allow"]
    ])
  )
  table("BR-7", wide, [
    ...[
      "git send-email --sendmail-cmd='x' y",
      "git submodule--helper foreach 'x'",
      "git remote-ext x 'y'",
      "git merge-index x -a",
      "git -C x --no-pager shell -c y",
      "git for-each-repo --config=x push",
      "git fast-export --export-marks=x HEAD",
      "git read-tree --index-output=x HEAD",
      "git apply --build-fake=x y",
      "git archive --remote=ext::x HEAD",
      "git maintenance start",
      "git alias-of-mine",
      "git instaweb",
      "git help --web x",
      "git merge -sx y",
      "git rebase --strategy x",
      "yq -i .a x",
      "yq eval -i .a x",
      "yq --inplace .a x",
      "npm run b -C /x",
      "npm run b --shell=x",
      "npm test -C x",
      "pnpm -C x test",
      "make 'X!=y'",
      "make .SHELLFLAGS='-c x'",
      "make a.b='$(shell x)'",
      "make -e",
      "bun test --preload ./x",
      "gcc -wrapper sh,-c,x y.c",
      "cc -fplugin=./x y.c",
      "go vet -vettool=x",
      "go build -ldflags=-extld=x",
      "go env -w X=y",
      "curl -w '%output{x}' y",
      "curl --libcurl x y",
      "curl --engine x y",
      "curl -d @x y",
      "curl -d@x y",
      "curl --data-binary=@x y",
      "curl -F a=@x y",
      "curl -F 'a=<x' y",
      "curl --unix-socket x http://y",
      "wget --save-cookies x y",
      "openssl req -engine x",
      "openssl list -provider-path . -provider x",
      "less --lesskey-content=x y",
      "less --LOG-FILE=x y",
      "man -l x",
      "nvim -c x",
      "nvim +x",
      "ruby -i x y",
      "rsync -M--log-file=x a b",
      "docker container exec x y",
      "docker cp x y",
      "file -C -m x",
      "uniq a b",
      "uniq -c a b",
      "uniq -f 1 a b",
      "uniq - b"
    ].map((line) => [line, "ask"] as const),
    ...[
      "git stash pop",
      "git -C x --no-pager log",
      "git worktree list",
      "make -j4 all",
      "npm run b",
      "curl -H 'a: b' https://x/y?z=1",
      "uniq -c a",
      "uniq -f 1 a",
      "yq .a x",
      "docker ps",
      "go test ./...",
      "less x"
    ].map((line) => [line, "allow"] as const)
  ])
  table("BR-7", { ...wide, "git frobnicate *": "allow", "git config --get *": "allow" }, [
    ["git frobnicate x", "allow"],
    ["git config --get x", "allow"]
  ])

  table("BR-15", wide, [
    ["python3 -u", "ask"],
    ["python3 -", "ask"],
    ["python3 -u -", "ask"],
    ["python3 - x <<E\nimport os\nE", "ask"],
    ["python3 /dev/stdin", "ask"],
    ["node /proc/self/fd/0", "ask"],
    ["perl <<< x", "ask"],
    ["ruby -w", "ask"],
    ["python3 x.py", "allow"],
    ["python3 --version", "allow"],
    ["node -v", "allow"]
  ])
  table("BR-10", { "*": "allow", "rm *": "deny" }, [
    ["echo 'import os' | python3", "ask"],
    ["ed x <<< '!rm y'", "ask"],
    ["sqlite3 x '.shell rm y'", "ask"],
    ["m4 <<< 'syscmd(rm x)'", "ask"],
    ["gnuplot -e 'system \"rm x\"'", "ask"],
    ["psql -c '\\! /bin/rm x'", "ask"],
    ["at now <<E\nrm x\nE", "ask"],
    ["concurrently 'cat y && rm x'", "ask"],
    [`caffeinate ${"-i ".repeat(80)}rm x`, "ask"],
    ["docker ps --rm x", "allow"],
    ["gh pr list --search 'firm x'", "allow"],
    ["eslint src --cache", "allow"]
  ])
})
