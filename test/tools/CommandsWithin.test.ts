import { assert, describe, it } from "@effect/vitest"
import { careful, judge, table, type Written } from "./CommandTable.ts"

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

  const shells: Written = {
    ...careful,
    "bash -lc *": "allow",
    "bash -euo pipefail -c *": "allow",
    "bash *": "allow",
    "sh -c -- *": "allow",
    "sudo *": "allow"
  }
  table("BR-600", shells, [
    ["bash -lc 'cat x'", "allow"],
    ["bash -lc 'cat x; ls'", "ask"],
    ["bash -l -c 'cat x'", "ask"],
    ["bash -ic 'cat x'", "ask"],
    ["bash -euo pipefail -c 'cat x | grep y'", "allow"],
    ["bash -euo pipefail -c 'cat x > y'", "ask"],
    ['bash -lc "cat $X"', "ask"],
    ["sh -c -- 'cat x'", "allow"],
    ["sudo bash -lc 'cat x'", "allow"],
    ["sudo -u y bash -lc 'cat x'", "ask"],
    ["ssh h 'cat x'", "ask"],
    ['bash -lc "rm $X"', "deny"],
    ["bash -ec 'cat x; rm y'", "deny"],
    ["bash <<E\nrm $X\nE", "deny"],
    ["echo 'rm x' | sudo -u y sh", "deny"],
    ["ssh h 'rm x'", "deny"],
    ["timeout 5 ".repeat(40) + "cat x", "ask"]
  ])
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
