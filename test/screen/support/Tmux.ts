/**
 * A terminal that a person sees: tmux, in control mode. Each output of the program is a notification, after which the screen is
 * read again; nothing is polled.
 */
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { build } from "../../cli/support/Bundle.ts"
import type { Place } from "../../cli/support/Process.ts"
import { waitingFor } from "../../support/Waiting.ts"

export interface Pane {
  /** What is on the screen once it satisfies the predicate. */
  readonly until: (holds: (screen: string) => boolean) => Effect.Effect<string>
  /** What is on the screen, and what has scrolled away above it. */
  readonly all: Effect.Effect<string>
  /** Types characters. */
  readonly type: (text: string) => Effect.Effect<void>
  /** Presses keys by tmux's names: `Enter`, `C-c`, `M-Enter`. */
  readonly press: (...keys: ReadonlyArray<string>) => Effect.Effect<void>
  /** Pastes, as a terminal marks pastes. */
  readonly paste: (text: string) => Effect.Effect<void>
  readonly resize: (columns: number, rows: number) => Effect.Effect<void>
  /** Formats of tmux, such as `#{cursor_flag}`. */
  readonly fact: (format: string) => Effect.Effect<string>
  /** Sends a signal to the command. */
  readonly signal: (name: NodeJS.Signals) => Effect.Effect<void>
}

const slowly = fileURLToPath(new URL("./slow.mjs", import.meta.url))

/** A line for tmux's parser. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Answers of commands in order, and a signal at each output. */
const client = (
  args: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly env: Record<string, string> }
) => {
  const child = spawn("tmux", args, { ...options, stdio: ["pipe", "pipe", "ignore"] })
  const waiting: Array<(lines: ReadonlyArray<string>) => void> = [() => undefined]
  const watchers = new Set<() => void>()
  let answer: Array<string> | undefined
  child.stdin.on("error", () => undefined)
  createInterface(child.stdout).on("line", (line) => {
    if (answer !== undefined && !/^%(?:end|error) /.test(line)) return void answer.push(line)
    if (line.startsWith("%begin ")) answer = []
    else if (answer !== undefined) {
      const lines = answer
      answer = undefined
      waiting.shift()?.(lines)
    } else if (line.startsWith("%output ")) watchers.forEach((watcher) => watcher())
  })
  return {
    child,
    watchers,
    ask: (command: string) =>
      Effect.async<ReadonlyArray<string>>((resume) => {
        waiting.push((lines) => resume(Effect.succeed(lines)))
        child.stdin.write(`${command}\n`)
      })
  }
}

export interface Options {
  readonly env?: Readonly<Record<string, string>>
  readonly columns?: number
  readonly rows?: number
  readonly words?: string
  /** The command's file for its process id. */
  readonly name?: string
  /** The delay of the connection between the terminal and the command, in milliseconds. */
  readonly delay?: number
  /** Whether the shell brings the command to the front again after it was suspended and Enter pressed. */
  readonly jobs?: boolean
}

/** Runs `daybook` in a terminal of its own. After its end the terminal shows its exit code and its modes. */
export const start = (here: Place, options: Options = {}): Effect.Effect<Pane, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { columns = 80, delay, env = {}, jobs = false, name = "screen", rows = 24, words = "" } = options
    const { bin } = build()
    const socket = `daybook-${randomBytes(6).toString("hex")}`
    const script = join(here.root, `${name}.sh`)
    const pid = join(here.root, `${name}.pid`)
    const modes = `stty -a | tr ' ;' '\\n\\n' | grep -xE -- '-?(icanon|echo)' | tr '\\n' ' '`
    const slow = delay === undefined ? "" : `"${process.execPath}" "${slowly}" ${columns} ${rows} ${delay} `
    const command = `${slow}"${process.execPath}" "${bin}" ${words}`
    writeFileSync(`${script}.run`, `echo $$ > "${pid}"\nexec ${command}\n`)
    const again = jobs ? `echo "suspended $?"\n${modes}\nread line\nfg\n` : ""
    writeFileSync(script, `${jobs ? "set -m\n" : ""}sh "${script}.run"\n${again}echo "ended $?"\n${modes}\ncat\n`)
    const { ask, watchers } = yield* Effect.acquireRelease(
      Effect.sync(() =>
        client(
          [
            "-L",
            socket,
            "-f",
            "/dev/null",
            "-C",
            "new-session",
            "-x",
            `${columns}`,
            "-y",
            `${rows}`,
            `sh ${quoted(script)}`
          ],
          {
            cwd: here.cwd,
            env: {
              PATH: process.env["PATH"] ?? "",
              HOME: here.root,
              LANG: "C.UTF-8",
              TERM: "xterm-256color",
              DAYBOOK_DB: here.database,
              DAYBOOK_NAMING: "off",
              ...env
            }
          }
        )
      ),
      ({ child }) =>
        Effect.async<void>((resume) => {
          if (child.exitCode !== null) return resume(Effect.void)
          child.once("exit", () => resume(Effect.void))
          spawn("tmux", ["-L", socket, "kill-server"], { stdio: "ignore" })
        })
    )
    yield* ask(`refresh-client -C ${columns}x${rows}`)
    const capture = (from: string) => Effect.map(ask(`capture-pane -p ${from}`), (lines) => lines.join("\n"))
    const screen = capture("")
    const next = Effect.async<void>((resume) => {
      const watcher = () => {
        watchers.delete(watcher)
        resume(Effect.void)
      }
      watchers.add(watcher)
      return Effect.sync(() => watchers.delete(watcher))
    })
    let seen = ""
    const until = (holds: (screen: string) => boolean): Effect.Effect<string> =>
      Effect.gen(function* () {
        for (;;) {
          // Registered before the look: no output is missed between.
          const changed = yield* Effect.fork(next)
          seen = yield* screen
          if (holds(seen)) return seen
          yield* changed.await
        }
      }).pipe(waitingFor(() => `a screen that satisfies ${holds}:\n${seen}\n`))
    const run = (command: string) => Effect.asVoid(ask(command))
    return {
      until,
      all: capture("-S - -E -"),
      type: (text) => run(`send-keys -l ${quoted(text)}`),
      press: (...keys) => run(`send-keys ${keys.join(" ")}`),
      paste: (text) =>
        Effect.gen(function* () {
          const file = join(here.root, "paste")
          yield* Effect.sync(() => writeFileSync(file, text))
          yield* run(`load-buffer ${quoted(file)}`)
          yield* run("paste-buffer -p")
        }),
      resize: (width, height) => run(`refresh-client -C ${width}x${height}`),
      fact: (format) => Effect.map(ask(`display-message -p ${quoted(format)}`), ([line = ""]) => line),
      signal: (name) => run(`run-shell ${quoted(`kill -${name.slice(3)} $(cat "${pid}")`)}`)
    }
  })
