/**
 * Runs the keeper of a live shell: asks it to signal the shell's processes, and waits until it has. Spec: SL-16..SL-19 in
 * specs/shell.md.
 */
import { Deferred, Effect, type Scope } from "effect"
import { pause } from "@daybook/core/child/ShellProcess"
import { TransportFailed } from "../domain/ShellError.ts"
import type { Exit, Transport } from "../transport/Program.ts"
import { firstOf } from "./FirstOf.ts"
import { keeperScript, type Order, orderLine } from "./KeeperScript.ts"

export interface Keeper {
  /** The fifo of the shell's control stream, if the transport has no stream of its own for it. */
  readonly control: string | undefined
  /** Gives what arrives at the fifo. Called once. */
  readonly listen: (listener: (bytes: Buffer) => void) => void
  /** Completes with the answer when the order is carried out, or without one when the keeper has ended. */
  readonly ask: (order: Order) => Effect.Effect<string>
  readonly exit: Effect.Effect<Exit>
}

const longestReply = 16_384

/** Texts of the keeper, each NUL-terminated. */
const makeReplies = () => {
  let text = ""
  let replies: ReadonlyArray<string> = []
  let waiting: ((reply: string) => void) | undefined
  const deliver = () => {
    const [first, ...rest] = replies
    if (first === undefined || waiting === undefined) return
    const resume = waiting
    replies = rest
    waiting = undefined
    resume(first)
  }
  return {
    add: (bytes: Uint8Array) => {
      const parts = (text + Buffer.from(bytes).toString("utf8")).split("\0")
      text = (parts.pop() ?? "").slice(-longestReply)
      replies = [...replies, ...parts]
      deliver()
    },
    rest: () => text,
    next: Effect.async<string>((resume) => {
      waiting = (reply) => resume(Effect.succeed(reply))
      deliver()
    })
  }
}

/** Time that the keeper has to kill a shell's processes before the transport is closed. */
const finishMillis = 20_000

export const start = Effect.fn("Keeper.start")(function* (
  transport: Transport,
  mark: string
): Effect.fn.Return<Keeper, TransportFailed, Scope.Scope> {
  const withFifo = !transport.controlled
  const program = yield* transport.run(keeperScript({ mark, control: withFifo }))
  const replies = makeReplies()
  let control: (bytes: Buffer) => void = () => undefined
  program.listen((stream, bytes) => {
    if (stream === "stdout") control(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    if (stream === "stderr") replies.add(bytes)
  })
  const ended = yield* Deferred.make<Exit>()
  yield* Effect.forkScoped(Effect.flatMap(program.exit, (exit) => Deferred.succeed(ended, exit)))
  const folder = yield* firstOf(
    replies.next,
    Effect.flatMap(program.exit, () =>
      Effect.fail(
        new TransportFailed({
          transport: transport.name,
          reason: "no shell",
          details: `the shell's keeper did not start: ${replies.rest().trim() || "it printed nothing"}`
        })
      )
    )
  )
  const order = yield* Effect.makeSemaphore(1)
  // Uninterruptible, so that each reply meets its order.
  const ask = (asked: Order) =>
    Effect.uninterruptible(
      order.withPermits(1)(
        firstOf(Effect.zipRight(program.write(orderLine(asked)), replies.next), Effect.as(Deferred.await(ended), ""))
      )
    )
  // Its end kills what is left, also if an order is lost.
  yield* Effect.addFinalizer(() =>
    Effect.zipRight(program.endInput, firstOf(Effect.asVoid(Deferred.await(ended)), pause(finishMillis)))
  )
  return {
    control: withFifo ? `${folder}/control` : undefined,
    listen: (listener) => {
      control = listener
    },
    ask,
    exit: Deferred.await(ended)
  }
})
