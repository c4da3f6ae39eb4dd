/**
 * Follows one prompt or resumption until its activity has settled, and writes the answer and notes, or the durable events
 * as JSON. Deltas and durable events meet in one bounded queue with one reader. Ctrl-C interrupts through the facade, and
 * reading continues until the interruption has settled; a second one exits immediately.
 * Spec: CL-4..CL-8, CL-38, CL-39 in specs/cli.md.
 *
 *   live deltas ──┐
 *   tail ─────────┼─> queue ─> step ─> stdout, stderr
 *   done, Ctrl-C ─┘        (a stop reads the rest of the log, then ends)
 */
import { Cause, Clock, Effect, Exit, Predicate, Queue, Stream, SubscriptionRef } from "effect"
import type { PromptOptions } from "@daybook/core/session/SessionOptions"
import { Sessions } from "@daybook/core/session/Sessions"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog } from "@daybook/log/log/EventLog"
import { eventJson } from "../render/EventLine.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { styleOf } from "../render/Style.ts"
import * as TurnView from "../render/TurnView.ts"
import { ActivityFailed, Interrupted, OutputFailed } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output } from "../terminal/Output.ts"
import * as Question from "../terminal/Question.ts"
import * as QuestionPrompt from "../terminal/QuestionPrompt.ts"
import * as Screen from "../terminal/Screen.ts"

/** Started work on a session. */
export interface Started<E> {
  /** The cursor from which its events are shown. */
  readonly after: number
  /** Returns when no more events are expected; fails as the work failed. */
  readonly done: Effect.Effect<void, E>
}

export interface FollowOptions<E, E2, R> {
  readonly sessionID: SessionID
  readonly json: boolean
  /** The followed prompt; without one, everything after the cursor is shown. */
  readonly promptID?: MessageID
  /** The answer is a structured value: only it goes to stdout, at the end. */
  readonly structured?: boolean
  /** Leave nothing on the terminal; only wait for the work. */
  readonly silent?: boolean
  /** Show the model's reasoning (default: true). */
  readonly reasoning?: boolean
  /** Starts the work. Deltas are already subscribed to. */
  readonly start: Effect.Effect<Started<E>, E2, R>
}

type Item =
  | SessionEvent
  | LiveEvent
  | { readonly type: "stop"; readonly exit: Exit.Exit<void, unknown>; readonly signal: boolean }

const isDurable = (item: SessionEvent | LiveEvent): item is SessionEvent => "seq" in item

/** Whether the activity used all its turns; a resume allows as many again. */
const isOutOfTurns = (error: unknown): error is { readonly message: string } =>
  (Predicate.isTagged(error, "TurnLimitExceeded") ||
    (error instanceof ActivityFailed && error.type === "TurnLimitExceeded")) &&
  Predicate.hasProperty(error, "message")

/**
 * Follows until the prompt's activity has settled. Fails if it did not complete. If it used all its turns, the person at
 * the terminal is asked whether to continue; without a terminal the error names the command that does (CL-133).
 */
export const follow = <E, E2, R>(
  options: FollowOptions<E, E2, R>
): Effect.Effect<void, unknown, R | EventLog | Output | Sessions> =>
  Effect.catchIf(
    Effect.scoped(followScoped(options)).pipe(Effect.withSpan("Turn.follow")),
    isOutOfTurns,
    ({ message }) =>
      Effect.gen(function* () {
        const { promptID: _, sessionID, start: __, ...rest } = options
        const sessions = yield* Sessions
        // The activity has ended but its drain may not have: a resume would join that drain and end with it.
        yield* Effect.ignore(sessions.wait(sessionID))
        const typed = options.json
          ? undefined
          : yield* Question.ask(`\n${oneLine(message.split(";")[0] ?? "", 400)}. Continue for as many again? [y/N] `)
        if (!/^y(?:es)?$/i.test(typed?.trim() ?? "")) {
          const details = `${message.split(";")[0]}; daybook resume ${sessionID} continues for as many again`
          return yield* new ActivityFailed({ message: details, type: "TurnLimitExceeded" })
        }
        return yield* follow({ ...rest, sessionID, start: resumed(sessionID, sessions.resume(sessionID)) })
      })
  )

const followScoped = <E, E2, R>(options: FollowOptions<E, E2, R>) =>
  Effect.gen(function* () {
    const { json, promptID, sessionID, silent, start, structured } = options
    const output = yield* Output
    const log = yield* EventLog
    const sessions = yield* Sessions
    const queue = yield* Queue.bounded<Item>(1024)
    const signal = yield* Signal.first
    let stopping = false
    const live = Screen.canMove() && !(json && output.terminal)
    const style = styleOf(process.env, process.stderr.isTTY === true)
    // For a structured value, everything else goes to stderr, where nothing is streamed.
    const terminal = structured === true || output.terminal
    let view = TurnView.make({ promptID, terminal, live, reasoning: options.reasoning ?? true, style })
    const startedAt = yield* Clock.currentTimeMillis
    /** The sequence number of the last shown event. */
    const cursor = yield* SubscriptionRef.make(-1)
    const screen = live
      ? yield* Screen.open({
          style,
          live: () => ({
            startedAt,
            phase: stopping ? { type: "stopping" } : view.phase,
            running: Array.from(view.running.values())
          }),
          caughtUp: Effect.flatMap(Effect.orDie(log.latest(sessionID)), (latest) =>
            cursor.changes.pipe(
              Stream.takeUntil((seq) => seq >= latest),
              Stream.runDrain
            )
          )
        })
      : undefined
    if (!json) {
      // A reader that fell behind loses its deltas; the durable events complete what it has shown.
      yield* Effect.forkScoped(
        Effect.ignore(Stream.runForEach(log.live({ sessionID }), (event) => Queue.offer(queue, event)))
      )
    }
    yield* QuestionPrompt.atTerminal
    const { after, done } = yield* start
    const stop = (exit: Exit.Exit<void, unknown>, signal: boolean) =>
      Queue.offer(queue, { type: "stop" as const, exit, signal })
    yield* Stream.runForEach(log.tail({ sessionID, after }), (event) => Queue.offer(queue, event)).pipe(
      Effect.onExit((exit) => stop(exit, false)),
      Effect.forkScoped
    )
    yield* Effect.forkScoped(Effect.flatMap(Effect.exit(done), (exit) => stop(exit, false)))
    yield* signal.pipe(
      Effect.tap(() => Effect.sync(() => (stopping = true))),
      Effect.zipRight(Effect.exit(sessions.interrupt(sessionID))),
      Effect.flatMap((exit) => stop(exit, true)),
      Effect.forkScoped
    )

    const put = ({ text, to, ...piece }: TurnView.Write) => {
      const beside = to === "stderr" || structured === true
      if (screen !== undefined && (beside || Screen.isShared())) return screen.write([{ ...piece, text }])
      return output.draw(beside ? "stderr" : "stdout", text)
    }
    yield* SubscriptionRef.set(cursor, after)
    const show = Effect.fnUntraced(function* (event: SessionEvent | LiveEvent) {
      if (isDurable(event)) {
        if (event.seq <= (yield* SubscriptionRef.get(cursor))) return
        if (json) yield* output.write(`${eventJson(event, output.terminal)}\n`)
      }
      const [next, writes] = TurnView.step(view, event)
      view = next
      if (!json && silent !== true) for (const written of writes) yield* put(written)
      if (isDurable(event)) yield* SubscriptionRef.set(cursor, event.seq)
    })

    const shown = Effect.gen(function* () {
      for (;;) {
        const item = yield* Queue.take(queue)
        if (item.type !== "stop") {
          yield* show(item)
          if (view.settled !== undefined && promptID !== undefined) return undefined
          continue
        }
        let more = true
        while (more) {
          const page = yield* log.read({ sessionID, after: yield* SubscriptionRef.get(cursor) })
          for (const event of page.events) yield* show(event)
          yield* SubscriptionRef.update(cursor, (seq) => Math.max(seq, page.cursor))
          more = page.hasMore
        }
        return item
      }
    })
    const answered = Effect.suspend(() =>
      json || structured !== true || view.value === undefined
        ? Effect.void
        : Effect.zipRight(screen?.close ?? Effect.void, output.write(`${jsonLine(view.value, output.terminal)}\n`))
    )
    const stopped = yield* Effect.zipLeft(shown, answered).pipe(
      // The reader of the answer is gone.
      Effect.catchTags({
        OutputClosed: () =>
          Effect.zipRight(Effect.ignore(sessions.interrupt(sessionID)), new Interrupted({ message: "" })),
        OutputFailed: ({ message }) =>
          Effect.zipRight(
            Effect.ignore(sessions.interrupt(sessionID)),
            new OutputFailed({
              message: `${message}; the turn was interrupted, daybook show ${sessionID} prints what was answered`
            })
          )
      })
    )
    return yield* conclude(sessionID, promptID, view, stopped)
  })

const conclude = (
  sessionID: SessionID,
  promptID: MessageID | undefined,
  view: TurnView.TurnView,
  stopped: Extract<Item, { type: "stop" }> | undefined
): Effect.Effect<void, unknown> => {
  const interrupted = new Interrupted({ message: `interrupted; the inbox of ${sessionID} is kept` })
  if (stopped?.signal === true) return Exit.isFailure(stopped.exit) ? stopped.exit : Effect.fail(interrupted)
  if (stopped !== undefined && Exit.isFailure(stopped.exit) && !Cause.isInterruptedOnly(stopped.exit.cause)) {
    return stopped.exit
  }
  const settled = view.settled ?? view.elsewhere
  if (settled?.outcome === "interrupted") {
    return Effect.fail(settled.error === undefined ? interrupted : new Interrupted({ message: settled.error.message }))
  }
  if (settled?.outcome === "failed") {
    const { message, type } = settled.error ?? { message: `the activity of ${sessionID} failed`, type: "unknown" }
    return Effect.fail(new ActivityFailed({ message, type }))
  }
  if (promptID === undefined || view.settled?.outcome === "completed") return Effect.void
  return Effect.fail(
    new ActivityFailed({
      message: `${promptID} waits in the inbox of ${sessionID}; daybook resume ${sessionID} runs it`
    })
  )
}

/** Starts a resumption: it is done when the facade returns, and fails as the facade fails. */
export const resumed = <E>(sessionID: SessionID, resume: Effect.Effect<void, E>) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const after = yield* log.latest(sessionID)
    return { after, done: resume } satisfies Started<E>
  })

/**
 * Starts a prompt: its events begin with its admission or, for a repeated prompt, with its promotion. It is done when nothing
 * runs or waits to run in this process; a wake waits for another process that owns the session, so that work is included.
 */
export const admitted = (prompt: PromptOptions & { readonly id: MessageID }) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const input = yield* sessions.prompt(prompt)
    return {
      after: (input.promotedSeq ?? input.admittedSeq) - 1,
      done: Effect.asVoid(sessions.wait(prompt.sessionID))
    } satisfies Started<unknown>
  })
