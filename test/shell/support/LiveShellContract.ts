/** What a live shell guarantees on every transport. Each transport's test file calls this with its own transport. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { Grace } from "../../../packages/core/src/child/ShellProcess.ts"
import type { TransportFailed } from "../../../packages/shell/src/domain/ShellError.ts"
import { TimesBetween } from "../../../packages/shell/src/session/LiveShell.ts"
import type { Transport } from "../../../packages/shell/src/transport/Program.ts"
import { openShell, type TestShell } from "./Shells.ts"

export interface Place {
  /** The transport's name, for the titles. */
  readonly name: string
  readonly transport: Effect.Effect<Transport, TransportFailed, Scope.Scope>
  /** Numbers of the processes there whose command line contains the text; none once all have ended. */
  readonly processes: (text: string) => Effect.Effect<ReadonlyArray<number>>
  /** A folder that exists there. */
  readonly folder: string
  /** A folder there that all shells may write. */
  readonly shared?: string
  /** Descriptors that a command may close for good; a POSIX shell parks its streams at 6 to 8. */
  readonly closable?: string
  /** An `exec` that fails; it ends a POSIX shell. */
  readonly execFails?: string
  /** False for a POSIX shell: the rest of a list can run after an interrupt (SL-12). */
  readonly stopsLists?: boolean
  /** True where a shell takes long to start: no hostile command is tried there a second time. */
  readonly startsLate?: boolean
}

/** Commands that try to break the next one. */
const hostile = (closable: string, execFails: string): ReadonlyArray<readonly [name: string, command: string]> => [
  ["a heredoc without end", "cat <<X\nfoo"],
  ["an unclosed quote", 'echo "unclosed'],
  ["a stray brace", "}"],
  ["a trailing comment", "true # comment"],
  ["a line continuation at the end", "echo a \\"],
  ["a background job with open streams", "sleep 5 &"],
  ["closed streams", "exec 0<&- 1>&- 2>&-"],
  ["streams that lead nowhere", "exec >/dev/null 2>&1"],
  ["closed descriptors", `for i in ${closable}; do eval "exec $i>&-" 2>/dev/null; done`],
  ["a forged end", "printf '%032d> 0 /forged\\0' 0; printf '%032d>\\0' 0 >&2"],
  ["a mark's beginning at the end", 'printf %s "$DAYBOOK_CALL"; printf \'%s<\' "$DAYBOOK_SHELL" >&2'],
  ["prompts and PROMPT_COMMAND", "PS1='$ ' PS2='> ' PS4='+ '; PROMPT_COMMAND='echo prompt; false'"],
  ["prompts that run commands", "PS1='$(echo x)' PS0='$(exit 3)'; PROMPT_COMMAND='exit 3'"],
  ["a changed IFS", "IFS=0123456789"],
  [
    "functions named like builtins",
    "printf() { echo no; }; pwd() { echo no; }; eval2() { :; }; command() { echo no; }"
  ],
  ["aliases of what the frame runs", "alias printf='echo no' pwd='echo no' eval='echo no' true='false'"],
  ["an interrupt of its own shell", "kill -INT $$; echo never"],
  ["a deleted folder", 'd=$(mktemp -d) && cd "$d" && rmdir "$d"'],
  ["a forged PWD", "PWD=/forged"],
  ["text in each descriptor of the shell", 'for f in /proc/$$/fd/*; do (printf x >"$f") 2>/dev/null; done'],
  ["NUL and escapes", "printf 'a\\0b\\033[31mc\\n'"],
  ["variables that a frame could use", "readonly _db_c=5 token=x code=1"],
  ["a limit of time for input", "TMOUT=1"],
  ["a subshell that exits", "(exit 9)"],
  ["exec that fails", execFails],
  ["ulimit on files", "ulimit -n 64"]
]

/** Commands that only bash has. */
const hostileToBash: ReadonlyArray<readonly [name: string, command: string]> = [
  ["disabled builtins", "enable -n printf pwd exec return export eval unset"],
  ["the disabled builtin", "enable -n builtin"],
  ...["eval", "export", "printf", "return"].map((name) => [`the disabled ${name}`, `enable -n ${name}`] as const),
  ["the disabled unset, and a prompt that exits", "enable -n unset; PROMPT_COMMAND='exit 3'"],
  ["a list of prompts that exit", "PROMPT_COMMAND=([1]='exit 3')"],
  ["functions named builtin, unset and enable", "builtin() { echo no; }; unset() { echo no; }; enable() { echo no; }"],
  ["a function named builtin in POSIX mode", "set -o posix; builtin() { echo no; }"],
  ["errexit with variables that cannot be unset", "readonly TMOUT=100 PROMPT_COMMAND; set -eE; trap 'exit 3' ERR"],
  ["a restricted shell", "set -r"],
  ["an option that ends the shell after a command", "set -t"],
  ["a variable of the frame that takes numbers only", "declare -i DAYBOOK_CALL"],
  ["traps that are inherited", "set -ET; trap 'false' DEBUG ERR RETURN"],
  ["a trap that changes arguments", "set -T; trap 'set -- x' DEBUG; (exit 5)"],
  ["a function named builtin that loops", "builtin() { while :; do :; done; }; (exit 7)"],
  ["a function named builtin that fails", "builtin() { return 1; }"],
  ["a function named builtin that exits", "builtin() { exit 3; }"],
  ["a limit of function calls", "FUNCNEST=1"],
  ["a limit of function calls that cannot be changed", "readonly FUNCNEST=1"],
  ["a limit of function calls that ends the command", "readonly FUNCNEST=1; f() { g; }; g() { :; }; f"],
  ["variables that all are read-only", "for v in $(compgen -v); do readonly $v; done"],
  ["errexit, and a variable of the frame that is read-only", "readonly DAYBOOK_CALL; set -e"],
  ["extended debugging", "shopt -s extdebug; trap 'true' DEBUG"]
]

const disableAll = "enable -n $(enable | cut -d ' ' -f 2)"
/** Commands after which a shell cannot report any more. */
const fatal = (closeAll: string): ReadonlyArray<string> => [closeAll, "set -n; echo hi"]
const fatalToBash: ReadonlyArray<string> = [
  disableAll,
  "builtin() { while :; do :; done; }; readonly -f builtin",
  "shopt -s extdebug; trap 'false' DEBUG",
  "trap 'set -T; set -- x' DEBUG",
  // Bash runs the trap for ever.
  "set -T; trap 'return 5' RETURN",
  // Some versions of bash crash.
  "set -o vi; set -o emacs"
]
/** Dash and BusyBox assign it after each command. */
const fatalToSh: ReadonlyArray<string> = ["readonly _"]

let marks = 0
/** An argument of `sleep` that only one test uses. */
const uniqueSeconds = () => `4${String(process.pid).padStart(8, "0")}.${++marks}`

export const liveShellContract = ({
  closable = "3 7 8 9 60 61 62 63",
  execFails = "exec /nonexistent 2>/dev/null",
  stopsLists = true,
  folder,
  name,
  processes,
  shared = "/tmp",
  startsLate = false,
  transport
}: Place) => {
  const withShell = <A>(use: (shell: TestShell) => Effect.Effect<A, never, Scope.Scope>) =>
    Effect.scoped(Effect.flatMap(transport, (each) => Effect.flatMap(openShell(each, folder), use)))
  const live = (title: string, use: (shell: TestShell) => Effect.Effect<void, never, Scope.Scope>, grace = 2_000) =>
    it.live(`${title} (${name})`, () => Effect.provideService(withShell(use), Grace, grace))

  live("SL-13: state persists from command to command", ({ run }) =>
    Effect.gen(function* () {
      yield* run("cd /tmp; export A=1; b=2; f() { echo f$1; }; alias say='echo said'; set -f; false")
      const answer = yield* run('echo "$? $A $b $(f 3) $PWD *"')
      expect(answer).toMatchObject({ stdout: "1 1 2 f3 /tmp *\n", stderr: "", code: 0, cwd: "/tmp" })
      expect((yield* run("say it")).stdout).toBe("said it\n")
    })
  )

  live("SL-13: a command's exit code passes through", ({ run }) =>
    Effect.gen(function* () {
      for (const code of [0, 1, 2, 77, 255]) expect((yield* run(`(exit ${code})`)).code).toBe(code)
      expect((yield* run("sh -c 'kill -TERM $$'")).code).toBe(143)
      expect((yield* run("no-such-command")).code).toBe(127)
      expect((yield* run("/tmp")).code).toBe(126)
    })
  )

  live("SL-15: standard output and standard error are apart, byte for byte", ({ run }) =>
    Effect.gen(function* () {
      const answer = yield* run("printf '\\377a\\n\\0b'; printf 'e\\n\\n' >&2; printf c")
      expect(answer).toMatchObject({ stdout: Buffer.from("\xffa\n\0bc", "latin1").toString(), stderr: "e\n\n" })
    })
  )

  live("SL-15: a command's input is empty", ({ run }) =>
    Effect.map(run("cat; read -r x; echo $?"), (answer) => expect(answer.stdout).toBe("1\n"))
  )

  live("SL-15: a traced shell traces the command alone", ({ run }) =>
    Effect.gen(function* () {
      yield* run("set -x")
      const answer = yield* run("echo x")
      expect(answer.stdout).toBe("x\n")
      expect(answer.stderr).toMatch(/^\S* ?echo x\n$/)
    })
  )

  if (stopsLists) {
    live("SL-15: bash prints nothing about its terminal after a signal ended a child", ({ run }) =>
      Effect.gen(function* () {
        for (const [signal, code] of [
          ["TERM", 143],
          ["KILL", 137],
          ["INT", 130]
        ] as const) {
          const answer = yield* run(`echo before >&2; sh -c 'kill -${signal} $$'`)
          expect(answer).toMatchObject({ stdout: "", stderr: "before\n", code })
        }
      })
    )
  }

  live("SL-15: what background jobs print between commands is late output", ({ late, run }) =>
    Effect.gen(function* () {
      const fifo = (yield* run(`f=$(mktemp -u -p ${shared}) && mkfifo $f $f.done && echo $f`)).stdout.trim()
      yield* run("(read -r x <$f; echo late; echo late >&2; echo >$f.done) &")
      // Another shell waits until the job has printed.
      yield* withShell((other) => other.run(`echo >${fifo}; read -r x <${fifo}.done`)).pipe(Effect.orDie)
      expect(yield* run("echo now")).toMatchObject({ stdout: "now\n", stderr: "" })
      expect(late()).toBe("late\nlate\n")
    })
  )

  live("SL-14: 100 KB of command text arrive whole", ({ run }) =>
    Effect.map(run(`x='${"y'\\''".repeat(20_000)}'; echo \${#x}`), (answer) => expect(answer.stdout).toBe("40000\n"))
  )

  // Opens a shell for each of them: a busy machine needs more than the usual time.
  const manyShells = 120_000
  const afterHostile = `SL-14: the next command is exact after a hostile one (${name})`
  it.live(
    afterHostile,
    () =>
      Effect.flatMap(transport.pipe(Effect.orDie), (each) =>
        Effect.forEach(
          [...hostile(closable, execFails), ...(stopsLists ? hostileToBash : [])].flatMap(([title, command]) => [
            [title, command] as const,
            // The shell is asked for a note while the command runs.
            ...(startsLate ? [] : [[`${title}, slowly`, `sleep 0.1; ${command}`] as const])
          ]),
          ([title, command]) =>
            Effect.scoped(
              Effect.gen(function* () {
                const { run } = yield* openShell(each, folder)
                yield* run(command)
                const answer = yield* run("echo hi")
                expect({ title, ...answer }).toMatchObject({
                  title,
                  stdout: "hi\n",
                  stderr: "",
                  code: 0,
                  closed: undefined
                })
                expect(answer.cwd).not.toContain("forged")
              })
            ),
          { concurrency: 4, discard: true }
        )
      ).pipe(Effect.scoped),
    manyShells
  )

  if (stopsLists) {
    live("SL-14: a function named builtin gets no token", ({ run }) =>
      Effect.gen(function* () {
        yield* run('builtin() { seen="$seen $*"; }')
        const { stdout } = yield* run('echo "$seen"')
        // The frame does not call it at all.
        expect(stdout).toBe("\n")
      })
    )

    live("SL-584: a coprocess serves later commands, and the shell outlives its end", ({ run }) =>
      Effect.gen(function* () {
        yield* run("coproc cat")
        expect((yield* run('echo a >&"${COPROC[1]}"; read -r x <&"${COPROC[0]}"; echo "$x"')).stdout).toBe("a\n")
        yield* run('kill "$COPROC_PID"; wait')
        expect(yield* run("echo hi")).toMatchObject({ stdout: "hi\n", closed: undefined })
      })
    )

    live("SL-10: what would end or disturb the frame does not persist", ({ run }) =>
      Effect.gen(function* () {
        yield* run("PROMPT_COMMAND=: TMOUT=500 FUNCNEST=7 kept=1; set -Tt; builtin() { echo no; }")
        const answer = yield* run('echo "${PROMPT_COMMAND-}${TMOUT-} $FUNCNEST $kept"; builtin echo "${-//[^tT]}"')
        expect(answer).toMatchObject({ stdout: " 0 1\n\n", stderr: "", code: 0 })
      })
    )

    live("SL-16: each command names its processes anew, also after one that disabled export", ({ run }) =>
      Effect.gen(function* () {
        const print = "sh -c 'echo $DAYBOOK_CALL'"
        const names = [
          yield* run(print),
          yield* run(`enable -n export; ${print}`),
          yield* run(print),
          yield* run(print)
        ]
        expect(new Set(names.map(({ stdout }) => stdout)).size).toBe(4)
      })
    )

    live("SL-16: a stopped list does not go on, and the shell keeps its state", ({ run, stop }) =>
      Effect.gen(function* () {
        yield* run("cd /tmp; export A=kept")
        for (const text of [
          "echo part; sleep 30; echo never",
          "echo started; while :; do :; done; echo never",
          "sh -c 'trap \"exit 0\" INT; echo started; while :; do sleep 0.05; done'; echo never",
          "(trap '' INT; echo started; sleep 0.3); echo never",
          "echo started; f() { sleep 30; echo never; }; f; echo never",
          "echo started; x=$(sleep 30; echo never); echo never",
          "echo started; sleep 30 | cat; echo never",
          "echo started; setsid sleep 30 || echo never",
          "(echo started; sh -c 'trap \"exit 0\" INT; while :; do sleep 0.05; done'; echo never); echo never",
          "(trap : INT; echo started; sleep 30; echo never); echo never",
          "f() { trap return INT; echo started; sleep 30; echo never; }; f; echo never",
          "trap 'echo never' INT; echo started; sleep 30; echo never",
          "trap '' INT; echo started; while :; do sleep 0.05; done; echo never",
          "trap - INT; set -m; echo started; sleep 30; echo never"
        ]) {
          const answer = yield* stop(text)
          expect({ text, ...answer }).toMatchObject({ text, stopped: true, code: 124, closed: undefined })
          expect(answer.stdout).not.toContain("never")
          expect((yield* run("echo $A")).stdout).toBe("kept\n")
        }
      })
    )
  }

  if (stopsLists) {
    live("SL-582: a trap of an interrupt does not run at a stop, and the shell keeps it", ({ run, stop }) =>
      Effect.gen(function* () {
        yield* run("trap 'echo \"it'\\''s\" trapped' INT")
        for (const command of ["sleep 30", "while :; do :; done"]) {
          expect((yield* stop(`echo started; ${command}`)).stdout).toBe("started\n")
          expect((yield* run("kill -INT $$")).stdout).toBe("it's trapped\n")
        }
      })
    )

    live("SL-582: a subshell's trap of its exit runs at a stop, after what the subshell runs has ended", ({ stop }) =>
      Effect.gen(function* () {
        const slow = "sh -c 'trap \"sleep 0.1; echo first; exit\" INT; echo started; while :; do sleep 0.02; done'"
        const { stdout } = yield* stop(`(trap 'echo second' EXIT; ${slow}; echo never)`)
        expect(stdout).toBe("started\nfirst\nsecond\n")
      })
    )
  }

  live("SL-16: a command that ignores an interrupt is killed, and the shell keeps its state", ({ run, stop }) =>
    Effect.gen(function* () {
      const mark = uniqueSeconds()
      yield* run("A=kept")
      const ignoring = `sh -c 'trap "" INT TERM; echo started; sleep ${mark}; sleep ${mark}'`
      const answer = yield* stop(
        `f() { ${ignoring} || echo never; echo never; }; if f; then echo never; fi; echo never`
      )
      expect(answer).toMatchObject({ stdout: "started\n", stopped: true, code: 124, closed: undefined })
      expect(yield* processes(`sleep ${mark}`)).toEqual([])
      expect((yield* run("echo $A")).stdout).toBe("kept\n")
    })
  )

  live("SL-16: a stopped command leaves no process, also in a session of its own", ({ stop }) =>
    Effect.gen(function* () {
      const mark = uniqueSeconds()
      const copy = `(while :; do sleep ${mark}; done) &`
      const orphan = `(env -i setsid sleep ${mark} &)`
      yield* stop(
        `setsid sleep ${mark} & (trap '' INT; exec sleep ${mark}) & ${orphan}; ${copy} echo started; sleep 30`
      )
      expect(yield* processes(`sleep ${mark}`)).toEqual([])
    })
  )

  live("SL-16: a shell that a command has stopped answers after the interrupt", ({ run, stop }) =>
    Effect.gen(function* () {
      expect(yield* stop("echo started; kill -STOP $$")).toMatchObject({ stopped: true, code: 124, closed: undefined })
      expect((yield* run("echo hi")).stdout).toBe("hi\n")
    })
  )

  live("SL-16: a stopped storm of forks leaves no process", ({ run, stop }) =>
    Effect.gen(function* () {
      const mark = uniqueSeconds()
      const storm = `storm() { [ "$1" -gt 0 ] || exec sleep ${mark}; storm $(($1 - 1)) & storm $(($1 - 1)) & wait; }`
      const answer = yield* stop(`${storm}; echo started; storm 6`)
      expect(answer).toMatchObject({ stopped: true, code: 124, closed: undefined })
      expect(yield* processes(`sleep ${mark}`)).toEqual([])
      expect((yield* run("echo hi")).stdout).toBe("hi\n")
    })
  )

  live("SL-16: a job of an earlier command survives the stop", ({ run, stop }) =>
    Effect.gen(function* () {
      // Until it runs, it does not ignore an interrupt.
      yield* run('sleep 4322.75 & job=$!; until read -r name </proc/$job/comm; [ "$name" = sleep ]; do :; done')
      yield* stop("echo started; sleep 30")
      expect((yield* run("kill -0 $job && kill -KILL $job; echo $?")).stdout).toBe("0\n")
    })
  )

  live(
    "SL-17: a shell that does not answer after the kill is closed with all that it started",
    ({ live: shell, stop }) =>
      Effect.gen(function* () {
        const mark = uniqueSeconds()
        // Without bash the rest of the list can run for a moment after the kill (SL-12).
        const [ignored, rest] = stopsLists ? ["$(seq 64)", "echo never"] : ["INT", ":"]
        const answer = yield* stop(`trap '' ${ignored}; echo started; sleep ${mark}; ${rest}; while :; do :; done`)
        expect(answer.stdout).toBe("started\n")
        expect(answer).toMatchObject({ stopped: true, code: 124, closed: "timeout" })
        expect(yield* shell.ended).toBe("timeout")
        expect(yield* processes(`sleep ${mark}`)).toEqual([])
        expect(
          yield* shell.run({ text: "echo hi" }, { stdout: () => undefined, stderr: () => undefined })
        ).toBeUndefined()
      }),
    500
  )

  if (stopsLists) {
    live(
      "SL-17: a shell whose traps skip every command is closed",
      ({ stop }) =>
        Effect.map(stop("shopt -s extdebug; trap 'echo started; false' DEBUG; :"), ({ closed, stopped }) => {
          expect(stopped).toBe(true)
          // It can end by itself: an interrupt ends a trap before the trap's answer.
          expect(["timeout", "exited"]).toContain(closed)
        }),
      500
    )

    live("SL-24: a command that a shell did not read before it ended has no result", ({ run }) =>
      Effect.gen(function* () {
        yield* run("readonly PROMPT_COMMAND='exit 3'")
        expect((yield* run("echo hi")).code).toBeUndefined()
      })
    )
  }

  it.live(`SL-28: a shell that cannot report is closed at once, with all that it started (${name})`, () => {
    const closeAll = stopsLists ? 'for i in $(seq 3 255); do eval "exec $i>&-"; done' : "exec 7>&-"
    return Effect.forEach(
      [...fatal(closeAll), ...(stopsLists ? fatalToBash : fatalToSh)],
      (command) =>
        Effect.gen(function* () {
          const mark = uniqueSeconds()
          const [first, next] = yield* withShell(({ run }) =>
            Effect.all([run(`sleep ${mark} & ${command}`), run("echo hi")])
          )
          const isExact = next.stdout === "hi\n" && next.stderr === "" && next.code === 0 && next.closed === undefined
          const isClosed = first.closed === "exited" && !first.stopped
          expect({ command, first, next, isFine: isClosed || isExact }).toMatchObject({ isFine: true })
          expect(yield* processes(`sleep ${mark}`)).toEqual([])
        }),
      { concurrency: 4, discard: true }
    ).pipe(Effect.provideService(TimesBetween, 5))
  })

  live("SL-18: an interrupted fiber stops its command", ({ live: shell, run }) =>
    Effect.gen(function* () {
      const mark = uniqueSeconds()
      const started = yield* Deferred.make<void>()
      const sink = () => Deferred.unsafeDone(started, Effect.void)
      const fiber = yield* Effect.fork(
        shell.run({ text: `echo started; sleep ${mark}; echo never` }, { stdout: sink, stderr: () => undefined })
      )
      yield* Deferred.await(started)
      expect(Exit.isInterrupted(yield* Fiber.interrupt(fiber))).toBe(true)
      expect(yield* processes(`sleep ${mark}`)).toEqual([])
      expect((yield* run("echo hi")).stdout).toBe("hi\n")
    })
  )

  live("SL-17: exit and errexit end the shell with their code", () =>
    Effect.gen(function* () {
      for (const [text, code] of [
        ["echo a; exit 7", 7],
        ["set -e; echo a; (exit 3); echo never", 3],
        ["echo a; exec sh -c 'exit 5'", 5],
        ["echo a; kill -KILL $$", 137]
      ] as const) {
        const answer = yield* withShell(({ run }) => run(text)).pipe(Effect.orDie)
        expect(answer).toMatchObject({ stdout: "a\n", code, closed: "exited", stopped: false })
      }
    })
  )

  it.live(`SL-19, SL-29: the scope's end leaves no process (${name})`, () =>
    Effect.gen(function* () {
      const mark = uniqueSeconds()
      const scope = yield* Scope.make()
      const each = yield* Scope.extend(transport, scope)
      const { run } = yield* Scope.extend(openShell(each, folder), scope)
      // The last one has neither the shell's variables nor its session, nor a parent of the shell.
      const four = `sleep ${mark} & setsid sleep ${mark} & env -i sleep ${mark} & (env -i setsid sleep ${mark} &)`
      // A program that has not yet become sleep does not count, nor does the search itself.
      const found = `grep -lszx '${mark.slice(0, -1)}[${mark.slice(-1)}]' /proc/[0-9]*/cmdline`
      const running = `${found} | xargs grep -Lszx -e setsid -e env | wc -l`
      yield* run(`${four}; until [ "$(${running})" -eq 4 ]; do :; done`)
      expect((yield* processes(`sleep ${mark}`)).length).toBe(4)
      yield* Scope.close(scope, Exit.void)
      expect(yield* processes(`sleep ${mark}`)).toEqual([])
    })
  )
}
