/** Runs `daybook shell attach`: reads commands line by line and runs each in a live shell. Spec: SL-190..SL-194. */
import { createInterface } from "node:readline"
import { Deferred, Effect, Stream, Struct } from "effect"
import type { Grammar } from "@daybook/core/permission/CommandLine"
import { ShellNotFound } from "@daybook/shell/domain/ShellError"
import type { HostClient } from "@daybook/shell/host/HostClient"
import { defaults } from "@daybook/shell/ShellOptions"
import { isUnfinished } from "@daybook/shell/policy/VisibleCommands"
import { exitCode, failureOf } from "../render/Failure.ts"
import { oneLine } from "../render/Plain.ts"
import { CommandEnded } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"
import * as ShellExec from "./ShellExec.ts"
import { resultNotes } from "./ShellExec.ts"
import { existing } from "./ShellHostWork.ts"

/** A line; `cleared` after Ctrl-C; `end` after Ctrl-D on an empty line, or at the end of the input. */
type Typed = { readonly line: string } | "cleared" | "end"

type LineEditor = { readonly read: (prompt: string) => Effect.Effect<Typed> }

const historySize = 1_000

/** An editor on stdin and stdout, which must be a terminal, until the scope ends. */
export const make = Effect.gen(function* () {
  const editor = createInterface({
    input: process.stdin,
    output: process.stdout,
    terminal: true,
    historySize,
    removeHistoryDuplicates: true
  })
  // Pasted lines that are not read yet.
  const typed: Array<Typed> = []
  let waiting: ((typed: Typed) => void) | undefined
  let ended = false
  const give = (next: Typed) => {
    const take = waiting
    waiting = undefined
    if (take === undefined) typed.push(next)
    else take(next)
  }
  editor
    .on("line", (line) => give({ line }))
    .on("SIGINT", () => {
      // To the end of the line, then delete to its beginning.
      editor.write(null, { ctrl: true, name: "e" })
      editor.write(null, { ctrl: true, name: "u" })
      process.stdout.write("^C\n")
      give("cleared")
    })
    .on("close", () => {
      ended = true
      give("end")
    })
  editor.pause()
  process.stdin.setRawMode(false)
  yield* Effect.addFinalizer(() => Effect.sync(() => editor.removeAllListeners("close").close()))

  const release = () => {
    if (ended) return
    editor.pause()
    process.stdin.setRawMode(false)
  }
  // The rest of a paste is shown again behind the next prompt.
  const hideRest = Effect.sync(() => {
    if (editor.line !== "") process.stdout.write("\r\u001b[J")
  })
  const next = (prompt: string) =>
    Effect.async<Typed>((resume) => {
      const early = typed.shift()
      if (early !== undefined) return resume(Effect.succeed(early))
      if (ended) return resume(Effect.succeed("end"))
      waiting = (given) => {
        release()
        resume(Effect.succeed(given))
      }
      process.stdin.setRawMode(true)
      editor.setPrompt(prompt)
      editor.prompt(true)
      return Effect.sync(() => {
        waiting = undefined
        release()
      })
    })
  return { read: (prompt) => Effect.zipLeft(next(prompt), hideRest) } satisfies LineEditor
})

const grammar: Effect.Effect<Grammar> = Effect.promise(() => import("unbash"))

/** Errors after which the shell takes further commands. */
const passing = new Set(["CommandBlocked", "InvalidOption", "HostBusy", "ShellRecordFailed", "TransportFailed"])

interface Ran {
  readonly code: number
  readonly cwd: string | undefined
  /** The shell takes no more commands. */
  readonly closed: boolean
}

/** Completes with Ctrl-C, until the scope ends. */
const interrupt = Effect.gen(function* () {
  const made = yield* Deferred.make<void>()
  const onSignal = () => Deferred.unsafeDone(made, Effect.void)
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGINT", onSignal)),
    () => Effect.sync(() => process.off("SIGINT", onSignal))
  )
  return Deferred.await(made)
})

/** Runs one command after another in the shell. */
const makeRunner = Effect.fnUntraced(function* (host: HostClient, id: string) {
  const output = yield* Output
  const print = yield* ShellExec.printing
  // Whether the cursor is at the beginning of a line, if both streams are one terminal.
  let atStart = true
  const execute = Effect.fnUntraced(function* (command: string) {
    const stop = yield* interrupt
    atStart = true
    return yield* ShellExec.runCommand(host, {
      id,
      command,
      timeoutSeconds: defaults.longestTimeoutSeconds,
      input: false,
      live: true,
      print: (printed) => {
        atStart = printed.text.endsWith("\n")
        return print(printed)
      },
      // The terminal shows ^C.
      stop: Effect.map(stop, () => void (atStart = false))
    })
  }, Effect.scoped)
  return {
    atStart: () => atStart,
    run: (command: string) =>
      execute(command).pipe(
        Effect.tap((result) => output.note(resultNotes(id, Struct.omit(result, "output")))),
        Effect.map(({ closed, cwd, exit_code: code }): Ran => ({ code, cwd, closed: closed !== undefined })),
        Effect.catchIf(
          (error) => passing.has(error._tag),
          (error) => {
            const { code, sentence = "" } = failureOf(error)
            return Effect.as(output.note(`daybook: ${sentence}\n`), {
              code,
              cwd: undefined,
              closed: false
            } satisfies Ran)
          }
        )
      )
  }
})

const done = (code: number) => (code === exitCode.ok ? Effect.void : Effect.fail(new CommandEnded({ code })))

/** A console for a person. Ctrl-C stops the running command, or clears the line; Ctrl-D leaves the shell. */
const atTerminal = Effect.fnUntraced(function* (host: HostClient, id: string, start: string) {
  const output = yield* Output
  const editor = yield* make
  const runner = yield* makeRunner(host, id)
  const shell = yield* grammar
  let cwd = start
  let text = ""
  for (;;) {
    const typed = yield* editor.read(text === "" ? `${oneLine(id)} ${oneLine(cwd, 60)} $ ` : "> ")
    if (typed === "end") {
      yield* output.note(`\n${oneLine(id)} stays open\n`)
      return
    }
    if (typed === "cleared") {
      text = ""
      continue
    }
    text = text === "" ? typed.line : `${text}\n${typed.line}`
    if (isUnfinished(shell, text)) continue
    const command = text
    text = ""
    if (command.trim() === "") continue
    const ran = yield* runner.run(command)
    if (!runner.atStart()) yield* output.write("\n")
    if (ran.closed) return yield* done(ran.code)
    cwd = ran.cwd ?? cwd
  }
})

/** Runs the lines of stdin. The exit code is that of the last command, as with `sh`. */
const fromStdin = Effect.fnUntraced(function* (host: HostClient, id: string) {
  const runner = yield* makeRunner(host, id)
  const shell = yield* grammar
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity })
  let text: string | undefined
  let last: Ran = { code: exitCode.ok, cwd: undefined, closed: false }
  const run = Effect.fnUntraced(function* (command: string) {
    if (command.trim() !== "") last = yield* runner.run(command)
  })
  yield* Stream.fromAsyncIterable(lines, () => new CommandEnded({ code: exitCode.failed })).pipe(
    Stream.mapEffect((line) => {
      const command = text === undefined ? line : `${text}\n${line}`
      if (isUnfinished(shell, command)) {
        text = command
        return Effect.void
      }
      text = undefined
      return run(command)
    }),
    Stream.takeUntil(() => last.closed || last.code === exitCode.interrupted),
    Stream.runDrain
  )
  // Runs an unfinished command too: the shell reports what is missing.
  if (text !== undefined && !last.closed) yield* run(text)
  yield* done(last.code)
})

export const run = Effect.fn("Command.shell.attach")(function* ({ id }: { readonly id: string }) {
  const output = yield* Output
  const host = yield* existing
  const shell = (yield* host.list).find(({ session_id: each }) => each === id)
  if (shell === undefined) return yield* new ShellNotFound({ shellID: id })
  yield* process.stdin.isTTY === true && output.terminal ? atTerminal(host, id, shell.cwd) : fromStdin(host, id)
}, Effect.scoped)
