/**
 * Makes the result of one command from the bytes of its streams and its end: redacted, bounded, with the whole on disk if
 * something is left out. Spec: SL-15, SL-20..SL-27, SL-65 in specs/shell.md.
 */
import { Deferred, Effect, type Scope } from "effect"
import type { ExecResult, StreamReport } from "../domain/ExecResult.ts"
import { TransportFailed } from "../domain/ShellError.ts"
import type { CompiledBudget } from "../output/LineBudget.ts"
import * as OutputPipeline from "../output/OutputPipeline.ts"
import type { OutputFile, OutputStore, OutputStream } from "../output/OutputStore.ts"
import { redacted, type Secrets } from "../output/RedactionStream.ts"
import type { Transport } from "../transport/Program.ts"
import type { Sink, Sinks } from "./Dialogue.ts"
import type { CommandEnd } from "./LiveShell.ts"
import type { Dialect } from "./ShellScripts.ts"

// A command's standard input that is written while the command runs: a fifo where the shell is, which a program beside
// the shell fills.

interface InputPipe {
  /** Path of the fifo. */
  readonly path: string
  readonly write: (text: string | Uint8Array) => Effect.Effect<void>
  readonly end: Effect.Effect<void>
}

const script = `
folder=$(mktemp -d "\${TMPDIR:-/tmp}/daybook-input.XXXXXX") || exit 121
trap 'rm -rf -- "$folder"' EXIT
mkfifo -m 600 "$folder/input" || exit 121
printf '%s\\n' "$folder/input"
cat >"$folder/input"
`

/** Creates the fifo. The scope's end removes it. */
export const open = Effect.fn("InputPipe.open")(function* (
  transport: Transport
): Effect.fn.Return<InputPipe, TransportFailed, Scope.Scope> {
  const program = yield* transport.run(script)
  yield* Effect.addFinalizer(() => program.endInput)
  const found = yield* Deferred.make<string, TransportFailed>()
  let said = ""
  program.listen((_, bytes) => {
    said = (said + Buffer.from(bytes).toString("utf8")).slice(-4_096)
    const end = said.indexOf("\n")
    if (said.startsWith("/") && end > 0) Deferred.unsafeDone(found, Effect.succeed(said.slice(0, end)))
  })
  yield* Effect.forkScoped(
    Effect.flatMap(program.exit, () =>
      Deferred.fail(
        found,
        new TransportFailed({
          transport: transport.name,
          reason: "no shell",
          details: `the command's input could not be created: ${said.trim() || "the program printed nothing"}`
        })
      )
    )
  )
  const path = yield* Deferred.await(found)
  return { path, write: program.write, end: program.endInput }
})

// Collects what background jobs print between commands, redacted and bounded.

export interface LateOutput {
  readonly sink: Sink
  /** What was printed since the last call. */
  readonly take: () => string
}

/** Characters of late output that a result has. */
const longest = 10_000

export const makeLateOutput = (secrets: Secrets): LateOutput => {
  const budget = { matches: undefined, context: 0, keep: { mode: "all" as const }, characters: longest }
  let pipeline: OutputPipeline.OutputPipeline | undefined
  return {
    sink: (bytes) => {
      pipeline ??= OutputPipeline.make({ budget, secrets })
      pipeline.add(bytes)
    },
    take: () => {
      const text = pipeline?.end().text ?? ""
      pipeline = undefined
      return text
    }
  }
}

interface ExecutionOptions {
  readonly budget: CompiledBudget
  readonly secrets: Secrets
  /** Keeps whole outputs under `handle`; without it, what is left out is lost. */
  readonly store: OutputStore | undefined
  readonly handle: string
  readonly dialect: Dialect
  /** Receives the redacted text while the command runs. */
  readonly onText: ((stream: OutputStream, text: string) => void) | undefined
}

/** What the caller knows of the command. */
export interface CommandTiming {
  readonly millis: number
  readonly late: string
}

export interface Execution {
  readonly sinks: Sinks
  /** Called once, after the end of the command. */
  readonly result: (ended: CommandEnd, more: CommandTiming) => ExecResult
}

/** Exit code of a command that was stopped before its timeout: 128 + SIGINT. */
export const interrupted = 130

/** An interactive bash says that it ends. */
const withoutFarewell = (text: string): string => text.replace(/(?:^|\n)exit$/, "")

/** The end of a text that may be the farewell of a bash. */
const farewellOf = (text: string): string =>
  ["exit\n", "exit"].find((word) => text === word || text.endsWith(`\n${word}`)) ?? ""

/** Passes text on. What may be a farewell waits for the next text, or for the end. */
const makeLive = (pass: (text: string) => void) => {
  let held = ""
  const add = (text: string) => {
    const all = held + text
    held = farewellOf(all)
    if (held.length < all.length) pass(all.slice(0, all.length - held.length))
  }
  const end = (isFarewell: boolean) => {
    if (held !== "" && !isFarewell) pass(held)
  }
  return { add, end }
}

/** What a result says of the command's end. */
const endOf = (
  { closed, code, cwd, stopped, timedOut }: CommandEnd,
  { late, millis }: CommandTiming,
  secrets: Secrets
) => ({
  exit_code: stopped && !timedOut ? interrupted : code,
  duration_ms: Math.round(millis),
  cwd: redacted(cwd, secrets),
  ...(timedOut ? { timed_out: true as const } : {}),
  ...(closed === undefined ? {} : { closed }),
  ...(late === "" ? {} : { late_output: late })
})

const reports = (stdout: StreamReport | undefined, stderr: StreamReport | undefined) => ({
  ...(stdout === undefined ? {} : { stdout }),
  ...(stderr === undefined ? {} : { stderr })
})

interface PassedOptions {
  readonly take: (stream: OutputStream, bytes: Uint8Array) => void
  readonly secrets: Secrets
  readonly dialect: Dialect
}

/** Passes the output on as it comes, without terminal sequences and secrets; the result has none. */
export const passed = ({ dialect, secrets, take }: PassedOptions): Execution => {
  let printed = false
  const stream = (name: OutputStream) => {
    const clean = OutputPipeline.makeClean(secrets)
    const pass = (text: string) => {
      if (text === "") return
      printed = true
      take(name, Buffer.from(text))
    }
    const live = name === "stderr" && dialect === "bash" ? makeLive(pass) : { add: pass, end: () => {} }
    return {
      sink: (bytes: Uint8Array) => live.add(clean.add(bytes)),
      end: (isFarewell: boolean) => {
        live.add(clean.end())
        live.end(isFarewell)
      }
    }
  }
  const stdout = stream("stdout")
  const stderr = stream("stderr")
  return {
    sinks: { stdout: stdout.sink, stderr: stderr.sink },
    result: (ended, timing) => {
      stdout.end(false)
      stderr.end(ended.closed === "exited")
      return { stdout: "", stderr: "", ...endOf(ended, timing, secrets), truncated: printed }
    }
  }
}

export const make = ({ budget, dialect, handle, onText, secrets, store }: ExecutionOptions): Execution => {
  const stream = (name: OutputStream) => {
    let file: OutputFile | undefined
    const live = onText === undefined ? undefined : makeLive((text) => onText(name, text))
    let pipeline: OutputPipeline.OutputPipeline | undefined
    const begin = () => {
      file = store?.open(handle, name)
      pipeline = OutputPipeline.make({
        budget,
        secrets,
        onText: (text) => {
          file?.add(text)
          if (name === "stderr") live?.add(text)
          else onText?.(name, text)
        }
      })
      return pipeline
    }
    return {
      sink: (bytes: Uint8Array) => (pipeline ?? begin()).add(bytes),
      end: (isFarewell: boolean) => {
        const shaped = pipeline?.end() ?? OutputPipeline.silent
        live?.end(isFarewell)
        const kept = file?.end(shaped.truncated) ?? false
        return { ...shaped, kept: kept && shaped.truncated, report: shaped.truncated ? shaped.report : undefined }
      }
    }
  }
  const stdout = stream("stdout")
  const stderr = stream("stderr")
  return {
    sinks: { stdout: stdout.sink, stderr: stderr.sink },
    result: (ended, timing) => {
      const saysExit = ended.closed === "exited" && dialect === "bash"
      const [out, err] = [stdout.end(false), stderr.end(saysExit)]
      const truncated = out.truncated || err.truncated
      const left = saysExit ? withoutFarewell(err.text) : err.text
      return {
        stdout: out.text,
        stderr: left,
        ...endOf(ended, timing, secrets),
        truncated,
        ...(truncated ? { budget: reports(out.report, err.report) } : {}),
        ...(out.kept || err.kept ? { output: handle } : {})
      }
    }
  }
}
