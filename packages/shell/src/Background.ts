/** Commands in the background: started, followed, given input, stopped, collected. Spec: SL-72..SL-76. */
import { Deferred, type Duration, Effect, Fiber, Mailbox, Schema } from "effect"
import { ExecResult } from "./domain/ExecResult.ts"
import type { ShellNotFound } from "./domain/ShellError.ts"
import type { ExecError } from "./OpenShell.ts"
import type { ExecOptions } from "./ShellOptions.ts"
import { HeadTail } from "./output/LineBudget.ts"

export const Collected = Schema.Struct({
  /** Output since the last call; of more than 100,000 characters a stream, both ends. */
  stdout: Schema.String,
  stderr: Schema.String,
  /** The result, once the command has ended. */
  result: Schema.optionalWith(ExecResult, { exact: true })
})
export type Collected = typeof Collected.Type

/** No command was started under this handle, or it ended long ago. */
export class CommandNotFound extends Schema.TaggedError<CommandNotFound>("@daybook/shell/CommandNotFound")(
  "CommandNotFound",
  { handle: Schema.String }
) {
  override get message() {
    return `no command was started under ${this.handle}, or its result is no longer kept`
  }
}

export interface StartOptions extends Omit<ExecOptions, "input" | "stop"> {
  /** Keeps the standard input open for `send`; it is empty by default. */
  readonly interactive?: boolean
}

interface BackgroundCommand {
  readonly fiber: Fiber.RuntimeFiber<ExecResult, ShellNotFound | ExecError>
  readonly input: Mailbox.Mailbox<string> | undefined
  readonly stop: Deferred.Deferred<void>
  readonly take: () => Pick<Collected, "stdout" | "stderr">
}

const mostKept = 256
/** Texts that wait until the command reads them. */
const mostWaiting = 64
const characters = 100_000

type Exec = (
  id: string,
  command: string,
  options: ExecOptions,
  accepted: Effect.Effect<void>
) => Effect.Effect<ExecResult, ShellNotFound | ExecError>

const shown = (text: HeadTail): string => {
  const { head, omitted, tail } = text.kept()
  return omitted === 0 ? head : `${head}\n[... ${omitted} characters left out ...]\n${tail}`
}

const makeOutput = () => {
  let texts = { stdout: new HeadTail(characters), stderr: new HeadTail(characters) }
  return {
    add: (stream: "stdout" | "stderr", text: string) => texts[stream].add(text),
    take: () => {
      const { stderr, stdout } = texts
      texts = { stdout: new HeadTail(characters), stderr: new HeadTail(characters) }
      return { stdout: shown(stdout), stderr: shown(stderr) }
    }
  }
}

/** The scope's end stops what runs. */
export const make = Effect.fnUntraced(function* (exec: Exec) {
  const scope = yield* Effect.scope
  const started = new Map<string, BackgroundCommand>()
  let number = 0

  /** Forgets the oldest results. */
  const shrink = () => {
    for (const [handle, { fiber }] of started) {
      if (started.size <= mostKept) return
      if (fiber.unsafePoll() !== null) started.delete(handle)
    }
  }

  const find = (handle: string) =>
    Effect.suspend(() => {
      const found = started.get(handle)
      return found === undefined ? Effect.fail(new CommandNotFound({ handle })) : Effect.succeed(found)
    })

  const start = Effect.fn("Shells.start")(function* (id: string, command: string, options: StartOptions = {}) {
    const { interactive, onText, ...rest } = options
    const input = interactive === true ? yield* Mailbox.make<string>(mostWaiting) : undefined
    const stop = yield* Deferred.make<void>()
    const output = makeOutput()
    const accepted = yield* Deferred.make<void>()
    const execution: ExecOptions = {
      ...rest,
      ...(input === undefined ? {} : { input: Mailbox.toStream(input) }),
      stop: Deferred.await(stop),
      onText: (stream, text, flow) => {
        output.add(stream, text)
        onText?.(stream, text, flow)
      }
    }
    const accept = Effect.asVoid(Deferred.succeed(accepted, undefined))
    const fiber = yield* Effect.forkIn(exec(id, command, execution, accept), scope)
    // A refused command fails the call.
    yield* Effect.raceFirst(Deferred.await(accepted), Fiber.join(fiber))
    number += 1
    const handle = `${id}.command-${number}`
    started.set(handle, { fiber, input, stop, take: output.take })
    shrink()
    return handle
  })

  return {
    /** Starts a command and returns its handle. It runs after the commands that the shell has already. */
    start,
    /** Waits for the end, at most so long, and returns the new output. */
    collect: (handle: string, { wait = 0 }: { readonly wait?: Duration.DurationInput } = {}) =>
      Effect.gen(function* () {
        const { fiber, take } = yield* find(handle)
        yield* Effect.ignore(Effect.timeout(Fiber.await(fiber), wait))
        const ended = fiber.unsafePoll()
        const text = take()
        const collected: Collected = ended === null ? text : { ...text, result: yield* ended }
        return collected
      }),
    /** Sends text to the command's input; `end` closes it. Ignored if the input is not open. */
    send: (handle: string, text: string, { end = false }: { readonly end?: boolean } = {}) =>
      Effect.gen(function* () {
        const { fiber, input } = yield* find(handle)
        if (input === undefined) return
        // A full mailbox waits for the command, which may end.
        yield* Effect.raceFirst(input.offer(text), Fiber.await(fiber))
        if (end) yield* input.end
      }),
    stop: (handle: string) =>
      Effect.flatMap(find(handle), ({ stop }) => Effect.asVoid(Deferred.succeed(stop, undefined)))
  }
})

export type Background = Effect.Effect.Success<ReturnType<typeof make>>
