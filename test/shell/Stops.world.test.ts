/**
 * Method: each of these commands, which people and agents write, runs in a shell of its own until its time limit of a second
 * ends it. Then a further command says whether the shell and its state are still there, and a file whether the rest of the list
 * ran. A command whose program is absent ends at once, and keeps the shell too. Spec: SL-16, SL-761 in specs/shell.md.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../support/Harness.ts"
import { local, withShells } from "./support/LocalShells.ts"

const python = (text: string) => `python3 -c 'import signal,time\n${text}'`

/** Commands that end by the interruption, by themselves or with their group. */
const plain: ReadonlyArray<string> = [
  "sleep 333",
  "while :; do sleep 0.01; done",
  "while :; do :; done",
  "until false; do :; done",
  "yes | cat >/dev/null",
  "(sleep 333)",
  "bash -c 'sleep 333; sleep 333'",
  "dash -c 'sleep 333'",
  "sleep 333 & wait",
  "sleep 333 & wait $!",
  "mkfifo a$$; read x < a$$",
  "mkfifo b$$; cat b$$",
  "mkfifo c$$; echo x > c$$",
  "read -t 300 x </dev/zero",
  "f() { sleep 333; }; f",
  "seq 3 | xargs -n1 -P3 sh -c 'sleep 333'",
  "find /etc/hostname -exec sleep 333 \\;",
  "coproc sleep 333; wait",
  "cat <(sleep 333)",
  "cat <<<x; sleep 333",
  "nohup sleep 333",
  "nice sleep 333",
  "env -i sleep 333",
  "(setsid sleep 5 &); sleep 333",
  "script -qc 'sleep 333' /dev/null",
  "printf 'all:\\n\\tsleep 333\\n' | make -f -",
  "tail -f /dev/null",
  "time sleep 333",
  "eval 'sleep 333'",
  "source <(echo sleep 333)",
  "flock lock sleep 333",
  "perl -e 'sleep 333'",
  "node -e 'setTimeout(() => {}, 333000)'",
  python("time.sleep(333)"),
  "less /etc/passwd; sleep 333",
  "x=$(sleep 333)",
  "sleep 333 && echo and",
  "if sleep 333; then :; else :; fi",
  "for i in 1 2 3; do sleep 333; done",
  "sleep 333 || sleep 333",
  "{ sleep 333; sleep 333; } 2>/dev/null",
  "strace -f -o /dev/null sleep 333",
  "busybox sleep 333",
  "chroot / sleep 333"
]

/** Commands with a group of their own, and commands that ignore or catch the interruption. */
const stubborn: ReadonlyArray<string> = [
  "timeout 300 sleep 333",
  "timeout -k 5 300 sleep 333",
  "timeout --foreground 300 sleep 333",
  "x=$(timeout 300 sleep 333)",
  "timeout 300 yes | cat > /dev/null",
  "for i in 1 2 3; do timeout 300 sleep 333; done",
  "timeout 300 sleep 333 || touch rest",
  "if timeout 300 sleep 333; then :; else touch rest; fi",
  "(timeout 300 sleep 333; touch rest)",
  "f() { timeout 300 sleep 333; touch rest; }; f",
  "busybox timeout 300 busybox sleep 333",
  "setsid -w sleep 333",
  "unshare -pf sleep 333",
  "strace -f -o /dev/null timeout 300 sleep 333",
  "set -m; sleep 333",
  "set -m; sleep 333 & fg",
  "set -m; timeout 300 sleep 333; :",
  `bash -c 'trap "" INT; sleep 333'`,
  `bash -c 'trap "" INT TERM; sleep 333; sleep 333'`,
  "trap 'echo caught' INT; timeout 300 sleep 333",
  "trap '' INT; while :; do sleep 0.1; done",
  "bash -c 'kill -STOP $$'",
  python("signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(333)"),
  python("while True:\n  try: time.sleep(333)\n  except KeyboardInterrupt: pass"),
  "node -e 'process.on(\"SIGINT\", () => {}); setTimeout(() => {}, 333000)'"
]

it.scopedLive(
  "SL-761: of 69 commands that are stopped each keeps its shell with folder and variables, and no rest of a list runs",
  () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const stopped = (command: string, number: number) =>
        withShells({}, (shells) =>
          Effect.gen(function* () {
            const id = yield* shells.create({ target: { ...local, cwd: folder } })
            const rest = join(folder, `rest${number}`)
            yield* shells.exec(id, "STATE=kept")
            yield* shells.exec(id, `${command.replaceAll("touch rest", `touch ${rest}`)}\ntouch ${rest}`, {
              timeoutSeconds: 1
            })
            const after = yield* Effect.either(shells.exec(id, "echo $STATE $PWD"))
            const isKept = after._tag === "Right" && after.right.stdout === `kept ${folder}`
            return isKept && !existsSync(rest) ? [] : [command]
          })
        )
      const commands = [...plain, ...stubborn]
      assert.lengthOf(commands, 69)
      const lost = yield* Effect.forEach(commands, stopped, { concurrency: 4 })
      assert.deepStrictEqual(lost.flat(), [])
    }),
  300_000
)
