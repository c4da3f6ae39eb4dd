/**
 * Runs the keeper of a live shell: asks it to signal the shell's processes, and waits until it has. Spec: SL-16..SL-19 in
 * specs/shell.md.
 */
import { Deferred, Effect, Exit as Outcome, type Scope } from "effect"
import { pause } from "@daybook/core/child/ShellProcess"
import { TransportFailed } from "../domain/ShellError.ts"
import type { Exit, Transport } from "../transport/Program.ts"
import { lost } from "../transport/NodeProgram.ts"
import { firstOf } from "./FirstOf.ts"
import { keeperScript, type Order, orderLine, type Place } from "./KeeperScript.ts"

export interface Keeper {
  /** Completes with the answer when the order is carried out, or without one when the keeper has ended. */
  readonly ask: (order: Order) => Effect.Effect<string>
  readonly exit: Effect.Effect<Exit>
}

const longestReply = 16_384

/** Texts of the keeper, each NUL-terminated. */
const makeReplies = () => {
  let text = ""
  let replies: ReadonlyArray<string> = []
  let ended = false
  let waiting: ((reply: string | undefined) => void) | undefined
  const deliver = () => {
    const [first, ...rest] = replies
    if (waiting === undefined || (first === undefined && !ended)) return
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
    end: () => {
      ended = true
      deliver()
    },
    /** Undefined when the keeper has ended. */
    next: Effect.async<string | undefined>((resume) => {
      waiting = (reply) => resume(Effect.succeed(reply))
      deliver()
    })
  }
}

/** Time that the keeper has to kill a shell's processes before the transport is closed. */
const finishMillis = 20_000
/** Time that it has for an order. A machine that stands still, such as a paused container, carries out none. */
const orderMillis = 30_000

export const start = Effect.fn("Keeper.start")(function* (
  transport: Transport,
  mark: string,
  /** Other times are for tests. */
  millis: number = orderMillis
): Effect.fn.Return<Keeper, TransportFailed, Scope.Scope> {
  const program = yield* transport.run(keeperScript(mark))
  const replies = makeReplies()
  program.listen((stream, bytes) => {
    if (stream === "stderr") replies.add(bytes)
  })
  const ended = yield* Deferred.make<Exit>()
  yield* Effect.forkScoped(
    Effect.flatMap(program.exit, (exit) => {
      replies.end()
      return Deferred.succeed(ended, exit)
    })
  )
  if ((yield* replies.next) === undefined) {
    const details = `the shell's keeper did not start: ${replies.rest().trim() || "it printed nothing"}`
    return yield* new TransportFailed({ transport: transport.name, reason: "no shell", details })
  }
  const order = yield* Effect.makeSemaphore(1)
  let isSilent = false
  /** A keeper that does not answer counts as ended: a late answer must not meet another order. */
  const giveUp = () => {
    isSilent = true
    replies.end()
    Deferred.unsafeDone(ended, Outcome.succeed(lost))
  }
  // Each reply meets its order: nothing interrupts the wait, and it has no fibers that an interruption could reach.
  const answer = (asked: Order) =>
    Effect.suspend(() =>
      isSilent ? Effect.succeed(undefined) : Effect.zipRight(program.write(orderLine(asked)), replies.next)
    ).pipe(
      Effect.map((reply) => reply ?? ""),
      order.withPermits(1)
    )
  const inTime = <A>(wait: Effect.Effect<A>) =>
    Effect.suspend(() => {
      const timer = setTimeout(giveUp, millis)
      return Effect.ensuring(
        wait,
        Effect.sync(() => clearTimeout(timer))
      )
    })
  // A question has time: a machine may stand still as long as nothing has to be done.
  const ask = (asked: Order) =>
    Effect.uninterruptible(asked.order === "between" ? answer(asked) : inTime(answer(asked)))
  // Its end kills what is left, also if an order is lost.
  yield* Effect.addFinalizer(() =>
    Effect.zipRight(program.endInput, firstOf(Effect.asVoid(Deferred.await(ended)), pause(finishMillis)))
  )
  return { ask, exit: Deferred.await(ended) }
})

/** Kills a shell with everything that it started, in place of a keeper that has ended. */
export const finish = (transport: Transport, mark: string, place: Place): Effect.Effect<void> =>
  Effect.gen(function* () {
    const keeper = yield* start(transport, mark)
    yield* keeper.ask({ order: "root", ...place })
    yield* keeper.ask({ order: "finish" })
  }).pipe(
    Effect.scoped,
    // Without a connection nothing more can be done.
    Effect.catchAll(() => Effect.void)
  )
