/** Runs a command in a live shell, for `daybook shell exec` and the console. Spec: SL-182..SL-184. */
import { randomUUID } from "node:crypto"
import { StringDecoder } from "node:string_decoder"
import { Deferred, Effect, Stream, Struct } from "effect"
import { Budget, type ExecResult, type Unrecorded } from "@daybook/shell/domain/ExecResult"
import { defaults } from "@daybook/shell/ShellOptions"
import type { ListedShell } from "@daybook/shell/Shells"
import type { Checkpoint, Restored } from "@daybook/shell/checkpoint/Checkpoints"
import { type HostClient, HostLost } from "@daybook/shell/host/HostClient"
import type { Printed } from "@daybook/shell/host/HostProtocol"
import { decode } from "@daybook/shell/mcp/Arguments"
import { columns, dateTime, jsonLine, oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { CommandEnded, type OutputClosed, type OutputFailed, UsageError } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output } from "../terminal/Output.ts"
import { asFlag, existing } from "./ShellHostWork.ts"

const seconds = (total: number): string =>
  total < 120 ? `${total} s` : total < 7_200 ? `${Math.floor(total / 60)} min` : `${Math.floor(total / 3_600)} h`

/** One row per shell: id, transport, folder, and whether it is busy or idle. */
export const shellTable = (shells: ReadonlyArray<ListedShell>): string =>
  columns(
    shells.map(({ busy, cwd, idle_secs: idle, session_id: id, transport }) => [
      id,
      transport,
      oneLine(cwd, 80),
      busy === 0 ? `idle ${seconds(idle)}` : `busy: ${many(busy, "command")}`
    ])
  )

/** Says that something ran and is not in the record. */
export const unrecordedNote = (what: string, { not_recorded: why }: Unrecorded): string =>
  why === undefined ? "" : `${what}, and is not recorded: ${oneLine(why, 400)}\n`

/** What a person should know of a command besides its output: a line each. */
export const resultNotes = (id: string, result: ExecResult): string => {
  const {
    closed,
    duration_ms: ms,
    late_output: late,
    no_checkpoint: missing,
    output,
    sandbox,
    timed_out: timedOut
  } = result
  const lines = [
    ...(late === undefined ? [] : late.split("\n").map((line) => `~ ${line}`)),
    ...(missing === undefined ? [] : [`no checkpoint before the command: ${oneLine(missing, 400)}`]),
    ...(timedOut === true ? [`the command was stopped after ${seconds(Math.floor(ms / 1_000))}`] : []),
    ...(output === undefined ? [] : [`some output is left out here; all of it: daybook shell output ${output}`]),
    ...(closed === undefined || sandbox === undefined ? [] : [sandbox]),
    ...(closed === undefined ? [] : [`${id} is closed: ${closed}`])
  ]
  return [unrecordedNote("the command ran", result), ...lines.map((line) => `${line}\n`)].join("")
}

/** A checkpoint is a row: short id, time, who made it, and what for. */
export const checkpointTable = (checkpoints: ReadonlyArray<Checkpoint>): string =>
  columns(
    checkpoints.map(({ created, id, kind, label = "" }) => [
      id.slice(0, 12),
      dateTime(Date.parse(created)),
      kind,
      oneLine(label, 100)
    ])
  )

export const restoredText = (restored: Restored): string => {
  const { added, changed, deleted, files_changed: count } = restored
  const named = added.length + changed.length + deleted.length
  const list = (mark: string, paths: ReadonlyArray<string>) => paths.map((path) => `${mark} ${oneLine(path, 400)}\n`)
  return [
    `restored ${restored.restored_to.slice(0, 12)}: ${many(count, "file")} changed\n`,
    ...list("+", added),
    ...list("~", changed),
    ...list("-", deleted),
    ...(named < count ? [`and ${many(count - named, "file")} more\n`] : []),
    `the state before is checkpoint ${restored.safety_checkpoint.slice(0, 12)}\n`
  ].join("")
}

interface ShellCommand {
  readonly id: string
  readonly command: string
  readonly budget?: Budget
  readonly timeoutSeconds: number
  /** Sends stdin to the command. */
  readonly input: boolean
  readonly live: boolean
  /** Takes the output while the command runs. */
  readonly print: (printed: Printed) => Effect.Effect<void, OutputClosed | OutputFailed>
  /** Completes when the command has to stop. */
  readonly stop: Effect.Effect<void>
}

/** Prints output to stdout and errors to stderr. */
export const printing = Effect.map(
  Output,
  (output): ShellCommand["print"] =>
    ({ stream, text }) =>
      stream === "stdout" ? output.write(text) : output.error(text)
)

/** Sends stdin, as text, at the pace of the command. */
const sendInput = Effect.fnUntraced(function* (host: HostClient, call: string) {
  const decoder = new StringDecoder("utf8")
  const parts = Stream.fromAsyncIterable(process.stdin, () => undefined)
  yield* Effect.ignore(
    Stream.runForEach(parts, (part) => {
      const text = typeof part === "string" ? part : decoder.write(part)
      return text === "" ? Effect.void : host.input(call, text, false)
    })
  )
  yield* host.input(call, decoder.end(), true)
})

export const runCommand = Effect.fnUntraced(function* (host: HostClient, given: ShellCommand) {
  const { budget, command, id, input, live, timeoutSeconds } = given
  const call = randomUUID()
  const begun = yield* Deferred.make<void>()
  const whenBegun = <A, E>(work: Effect.Effect<A, E>) =>
    Effect.forkScoped(Effect.ignore(Effect.zipRight(Deferred.await(begun), work)))
  yield* whenBegun(Effect.zipRight(given.stop, host.stop(call)))
  if (input) yield* whenBegun(sendInput(host, call))
  const options = { ...(budget === undefined ? {} : { budget }), timeoutSeconds, interactive: input, live }
  let result: ExecResult | undefined
  yield* Stream.runForEach(host.exec({ call, id, command, ...options }), (news) => {
    switch (news._tag) {
      case "Begun":
        return Effect.asVoid(Deferred.succeed(begun, undefined))
      case "Printed":
        return given.print(news)
      case "Ended":
        return Effect.sync(() => void (result = news.result))
    }
  })
  return result ?? (yield* new HostLost({ details: "it did not report the end of the command" }))
}, Effect.scoped)

interface ExecFlags {
  readonly id: string
  readonly words: ReadonlyArray<string>
  readonly timeout: number | undefined
  readonly grep: string | undefined
  readonly context: number | undefined
  readonly head: number | undefined
  readonly tail: number | undefined
  readonly maxChars: number | undefined
  readonly stdin: boolean
  readonly json: boolean
}

const refuse = (message: string) => new UsageError({ message })

const keepOf = (head: number | undefined, tail: number | undefined) => {
  if (head !== undefined && tail !== undefined) return { keep: { mode: "head_tail", head, tail } }
  if (head !== undefined) return { keep: { mode: "head", n: head } }
  return tail === undefined ? {} : { keep: { mode: "tail", n: tail } }
}

/** The budget of the options; undefined without any. */
const budgetOf = Effect.fnUntraced(function* (given: ExecFlags) {
  const { context, grep: pattern, head, maxChars: characters, tail } = given
  if (context !== undefined && pattern === undefined) return yield* refuse("--context needs --grep")
  const budget = {
    ...(pattern === undefined ? {} : { grep: { pattern, ...(context === undefined ? {} : { context }) } }),
    ...keepOf(head, tail),
    ...(characters === undefined ? {} : { max_chars: characters })
  }
  return Object.keys(budget).length === 0 ? undefined : yield* decode(Budget, budget)
})

const flagsOf = ({ head }: ExecFlags) => ({
  "grep.pattern": "--grep",
  "grep.context": "--context",
  "keep.head": "--head",
  "keep.tail": "--tail",
  "keep.n": head !== undefined ? "--head" : "--tail",
  max_chars: "--max-chars",
  timeout_secs: "--timeout",
  command: "COMMAND"
})

const line = (text: string): string => (text === "" ? "" : `${text}\n`)

const executed = Effect.fnUntraced(function* (given: ExecFlags) {
  const output = yield* Output
  const { id, json, stdin, words } = given
  if (words.length === 0) return yield* refuse("shell exec: COMMAND is missing; daybook help shell exec tells more")
  const budget = yield* budgetOf(given)
  const timeoutSeconds = given.timeout ?? defaults.longestTimeoutSeconds
  const stop = yield* Signal.first
  const live = !json && budget === undefined
  const result = yield* runCommand(yield* existing, {
    id,
    command: words.join(" "),
    timeoutSeconds,
    input: stdin,
    live,
    print: yield* printing,
    stop,
    ...(budget === undefined ? {} : { budget })
  })
  if (json) yield* output.write(`${jsonLine(result, output.terminal)}\n`)
  else if (!live) {
    yield* output.write(line(result.stdout))
    yield* output.error(line(result.stderr))
  }
  // After live output, the handle of the whole output is not needed.
  if (!json) yield* output.note(resultNotes(id, live ? Struct.omit(result, "output") : result))
  if (result.exit_code !== 0) return yield* new CommandEnded({ code: result.exit_code })
}, Effect.scoped)

export const run = Effect.fn("Command.shell.exec")((given: ExecFlags) =>
  Effect.catchTag(executed(given), "InvalidOption", asFlag(flagsOf(given)))
)
