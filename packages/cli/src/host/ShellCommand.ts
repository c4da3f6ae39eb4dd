/**
 * Runs one command in a live shell for a person or a program: prints what it prints while it runs, sends it input, and stops it
 * on request. Spec: SL-182..SL-184, SL-178 in specs/shell.md.
 */
import { randomUUID } from "node:crypto"
import { StringDecoder } from "node:string_decoder"
import { Deferred, Effect, Stream } from "effect"
import type { Budget, ExecResult } from "@daybook/shell/domain/ExecResult"
import { type HostClient, HostLost } from "@daybook/shell/host/HostClient"
import type { Printed } from "@daybook/shell/host/HostProtocol"
import type { OutputClosed, OutputFailed } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"

export interface ShellCommand {
  readonly id: string
  readonly command: string
  readonly budget?: Budget
  readonly timeoutSeconds: number
  /** Sends stdin to the command. */
  readonly input: boolean
  /** Prints the output while the command runs. */
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

export const run = Effect.fnUntraced(function* (host: HostClient, given: ShellCommand) {
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
