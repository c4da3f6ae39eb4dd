/**
 * Follows one prompt or resumption until its activity has settled, and writes the answer and notes, or the durable
 * events as JSON. Deltas and durable events meet in one bounded queue with one reader. Ctrl-C interrupts through the
 * facade, and reading continues until the interruption has settled; a second Ctrl-C exits immediately. Spec:
 * CL-4..CL-8, CL-38, CL-39 in specs/cli.md.
 *
 *   events and deltas ─┐
 *   done, Ctrl-C ──────┴─> queue ─> step ─> stdout, stderr
 *                          (a stop reads the rest of the log, then ends)
 */
import { Cause, Clock, type Context, Effect, Exit, Option, Predicate, Queue, Stream, SubscriptionRef } from "effect"
import { Naming } from "@daybook/core/session/Naming"
import type { PromptOptions } from "@daybook/core/session/SessionOptions"
import { Sessions } from "@daybook/core/session/Sessions"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { LiveEvent, SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type Followed } from "@daybook/log/log/EventLog"
import { Mcp, type McpStatus } from "@daybook/mcp/Mcp"
import { eventJson } from "../render/EventLine.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import * as RunView from "../render/RunView.ts"
import { type Style, styleOf } from "../render/Style.ts"
import { ActivityFailed, CallsRefused, Interrupted, OutputFailed } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output } from "../terminal/Output.ts"
import * as Question from "../terminal/Question.ts"
import * as QuestionPrompt from "../terminal/QuestionPrompt.ts"
import * as Screen from "../terminal/Screen.ts"
import { Remote } from "./Remote.ts"

/** The sentence about a missing or late MCP server; undefined for a server that is connected or about to be. */
const sentenceOf = ({ details, name, state, tools }: McpStatus): string | undefined => {
  if (state === "connected" || details === undefined) return undefined
  const so = state === "failed" ? "the run goes on without its tools" : "its tools come when it has"
  const known = state === "connecting" && tools > 0 ? "its calls wait for it" : so
  return `MCP server "${name}": ${oneLine(details, 400)}; ${known}`
}

/** Returns the sentences about servers that were not mentioned before. */
export const makeNotes = () => {
  const said = new Set<string>()
  return (all: ReadonlyArray<McpStatus>): ReadonlyArray<string> =>
    all.flatMap((status) => {
      const sentence = said.has(status.name) ? undefined : sentenceOf(status)
      if (sentence === undefined) return []
      said.add(status.name)
      return [sentence]
    })
}

export interface StartedWork<E> {
  /** The cursor from which its events are shown. */
  readonly after: number
  /** Returns when no more events are expected; fails with the error of the work. */
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
  /** Starts the work. */
  readonly start: Effect.Effect<StartedWork<E>, E2, R>
}

type Item =
  | Followed
  | { readonly type: "stop"; readonly exit: Exit.Exit<void, unknown>; readonly signal: boolean }
  | { readonly type: "note"; readonly line: string }

const isDurable = (item: SessionEvent | LiveEvent): item is SessionEvent => "seq" in item

/** Whether the activity used all its turns; a resume allows as many again. */
const isOutOfTurns = (error: unknown): error is { readonly message: string } =>
  (Predicate.isTagged(error, "TurnLimitExceeded") ||
    (error instanceof ActivityFailed && error.type === "TurnLimitExceeded")) &&
  Predicate.hasProperty(error, "message")

/**
 * Follows until the prompt's activity has settled. Fails if it did not complete, or if its answer is not whole. If it used all its turns, the person at
 * the terminal is asked whether to continue; without a terminal the error names the command that does (CL-133).
 */
export const follow = <E, E2, R>(
  options: FollowOptions<E, E2, R>
): Effect.Effect<void, unknown, R | EventLog | Naming | Output | Sessions> =>
  Effect.catchIf(
    Effect.scoped(followScoped(options)).pipe(Effect.withSpan("RunFollower.follow")),
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

/** A run that is being followed, and where it is shown. */
interface Run {
  readonly sessionID: SessionID
  readonly json: boolean
  readonly silent: boolean
  readonly structured: boolean
  readonly output: Context.Tag.Service<typeof Output>
  /** The sequence number of the last shown event. */
  readonly cursor: SubscriptionRef.SubscriptionRef<number>
  view: RunView.RunView
  /** A signal came, and the run is being interrupted. */
  stopping: boolean
}

/** Opens the screen: live lines below the answer. */
const openScreen = Effect.fnUntraced(function* (run: Run, style: Style) {
  const log = yield* EventLog
  const startedAt = yield* Clock.currentTimeMillis
  return yield* Screen.open({
    style,
    live: () => ({
      startedAt,
      phase: run.stopping ? { type: "stopping" } : run.view.phase,
      running: Array.from(run.view.running.values())
    }),
    caughtUp: Effect.flatMap(Effect.orDie(log.latest(run.sessionID)), (latest) =>
      run.cursor.changes.pipe(
        Stream.takeUntil((seq) => seq >= latest),
        Stream.runDrain
      )
    )
  })
})

/** Feeds the queue with the durable events, the end of the work, and the end of its interruption after a signal. */
const watch = Effect.fnUntraced(function* <E>(
  run: Run,
  queue: Queue.Enqueue<Item>,
  { after, done }: StartedWork<E>,
  signal: Effect.Effect<void>
) {
  const { sessionID } = run
  const log = yield* EventLog
  const sessions = yield* Sessions
  const stop = (exit: Exit.Exit<void, unknown>, signal: boolean) => Queue.offer(queue, { type: "stop", exit, signal })
  const items = run.json ? log.tail({ sessionID, after }) : log.follow({ sessionID, after })
  yield* Stream.runForEach(items, (item) => Queue.offer(queue, item)).pipe(
    Effect.onExit((exit) => stop(exit, false)),
    Effect.forkScoped
  )
  yield* Effect.forkScoped(Effect.flatMap(Effect.exit(done), (exit) => stop(exit, false)))
  yield* signal.pipe(
    Effect.tap(() => Effect.sync(() => (run.stopping = true))),
    Effect.zipRight(Effect.exit(sessions.interrupt(sessionID))),
    Effect.flatMap((exit) => stop(exit, true)),
    Effect.forkScoped
  )
})

/** Feeds the queue with a line about each MCP server that fails or is late. A run over a server has none. */
const watchServers = Effect.fnUntraced(function* (queue: Queue.Enqueue<Item>) {
  const mcp = yield* Effect.serviceOption(Mcp)
  if (Option.isNone(mcp)) return
  const notes = makeNotes()
  yield* mcp.value.changes.pipe(
    Stream.mapConcat(notes),
    Stream.runForEach((line) => Queue.offer(queue, { type: "note", line })),
    Effect.forkScoped
  )
})

const put = ({ output, structured }: Run, screen: Screen.Screen | undefined, { text, to, ...piece }: RunView.Write) => {
  const beside = to === "stderr" || structured
  if (screen !== undefined && (beside || Screen.isShared())) return screen.write([{ ...piece, text }])
  return output.draw(beside ? "stderr" : "stdout", text)
}

/** Shows a line about something beside the run. */
const mention = Effect.fnUntraced(function* (run: Run, screen: Screen.Screen | undefined, line: string) {
  if (run.silent) return
  if (run.json) return yield* run.output.note(`${line}\n`)
  const [next, writes] = RunView.beside(run.view, line)
  run.view = next
  for (const written of writes) yield* put(run, screen, written)
})

/** Shows the lines that came with the end of the run. */
const mentionRest = (run: Run, screen: Screen.Screen | undefined, queue: Queue.Dequeue<Item>) =>
  Effect.flatMap(Queue.takeAll(queue), (rest) =>
    Effect.forEach(rest, (item) => (item.type === "note" ? mention(run, screen, item.line) : Effect.void), {
      discard: true
    })
  )

/** Shows one event: as JSON, or on the terminal. */
const show = Effect.fnUntraced(function* (
  run: Run,
  screen: Screen.Screen | undefined,
  event: SessionEvent | LiveEvent
) {
  const { cursor, json, output, silent } = run
  if (isDurable(event)) {
    if (event.seq <= (yield* SubscriptionRef.get(cursor))) return
    if (json) yield* output.write(`${eventJson(event, output.terminal)}\n`)
  }
  const [next, writes] = RunView.step(run.view, event)
  run.view = next
  if (!json && !silent) for (const written of writes) yield* put(run, screen, written)
  if (isDurable(event)) yield* SubscriptionRef.set(cursor, event.seq)
})

/** Shows events until the prompt has settled, or until a stop and the rest of the log after it; returns the stop. */
const showAll = Effect.fnUntraced(function* (
  run: Run,
  screen: Screen.Screen | undefined,
  queue: Queue.Dequeue<Item>,
  promptID: MessageID | undefined
) {
  const { cursor, sessionID } = run
  const log = yield* EventLog
  for (;;) {
    const item = yield* Queue.take(queue)
    if (item.type === "note") {
      yield* mention(run, screen, item.line)
      continue
    }
    if (item.type === "replay.complete") continue
    if (item.type !== "stop") {
      yield* show(run, screen, item)
      if (run.view.settled !== undefined && promptID !== undefined) return undefined
      continue
    }
    for (let more = true; more;) {
      const page = yield* log.read({ sessionID, after: yield* SubscriptionRef.get(cursor) })
      for (const event of page.events) yield* show(run, screen, event)
      yield* SubscriptionRef.update(cursor, (seq) => Math.max(seq, page.cursor))
      more = page.hasMore
    }
    return item
  }
})

/** Writes the structured value, if the answer is one. */
const writeValue = ({ json, output, structured, view }: Run, screen: Screen.Screen | undefined) =>
  json || !structured || view.value === undefined
    ? Effect.void
    : Effect.zipRight(screen?.close ?? Effect.void, output.write(`${jsonLine(view.value, output.terminal)}\n`))

/** Interrupts the run if its output cannot be written. */
const interruptUnread = (sessionID: SessionID) => {
  const interrupt = Effect.flatMap(Sessions, (sessions) => Effect.ignore(sessions.interrupt(sessionID)))
  return {
    OutputClosed: () => Effect.zipRight(interrupt, new Interrupted({ message: "" })),
    OutputFailed: ({ message }: OutputFailed) =>
      Effect.zipRight(
        interrupt,
        new OutputFailed({
          message: `${message}; the turn was interrupted, daybook show ${sessionID} prints what was answered`
        })
      )
  }
}

const followScoped = Effect.fnUntraced(function* <E, E2, R>(options: FollowOptions<E, E2, R>) {
  const { json, promptID, reasoning = true, sessionID, silent = false, start, structured = false } = options
  const output = yield* Output
  const queue = yield* Queue.bounded<Item>(1024)
  const signal = yield* Signal.first
  const live = Screen.canMove() && !(json && output.terminal)
  const style = styleOf(process.env, process.stderr.isTTY === true)
  // For a structured value, everything else goes to stderr, where nothing is streamed.
  const terminal = structured || output.terminal
  const run: Run = {
    sessionID,
    json,
    silent,
    structured,
    output,
    cursor: yield* SubscriptionRef.make(-1),
    view: RunView.make({ promptID, terminal, live, reasoning, style }),
    stopping: false
  }
  const screen = live ? yield* openScreen(run, style) : undefined
  yield* watchServers(queue)
  yield* (yield* Remote) === undefined ? QuestionPrompt.atTerminal : QuestionPrompt.ofSession(sessionID)
  const started = yield* start
  yield* watch(run, queue, started, signal)
  yield* SubscriptionRef.set(run.cursor, started.after)
  const stopped = yield* showAll(run, screen, queue, promptID).pipe(
    Effect.zipLeft(mentionRest(run, screen, queue)),
    Effect.zipLeft(Effect.suspend(() => writeValue(run, screen))),
    Effect.catchTags(interruptUnread(sessionID))
  )
  yield* named(sessionID, signal)
  return yield* conclude(sessionID, promptID, run.view, stopped)
})

/** How long a command waits for the name of its session after the answer (NM-7). */
const patience = "10 seconds"

/** Waits until the session has its name; the process would end before. A signal ends the waiting. */
const named = (sessionID: SessionID, signal: Effect.Effect<void>) =>
  Effect.flatMap(Naming, (naming) =>
    Effect.ignore(Effect.timeout(Effect.raceFirst(naming.settled(sessionID), signal), patience))
  )

/** Names the calls of a completed run that were refused without a person's answer (CL-773). */
const refusal = (calls: ReadonlyArray<string>) => {
  const different = [...new Set(calls)].slice(0, 5).map((call) => oneLine(call, 120))
  const more = new Set(calls).size - different.length
  const count = calls.length === 1 ? "a call was refused" : `${calls.length} calls were refused`
  return new CallsRefused({
    message:
      `${count}: ${different.join("; ")}${more > 0 ? `; and ${more} more` : ""}. ` +
      "To permit such calls, name them with --allow, or answer on a terminal"
  })
}

const isRunInterrupted = (exit: Exit.Exit<void, unknown> | undefined): boolean =>
  exit !== undefined &&
  Exit.isFailure(exit) &&
  Option.exists(Cause.failureOption(exit.cause), Predicate.isTagged("RunInterrupted"))

const conclude = (
  sessionID: SessionID,
  promptID: MessageID | undefined,
  view: RunView.RunView,
  stopped: Extract<Item, { type: "stop" }> | undefined
): Effect.Effect<void, unknown> => {
  const interrupted = new Interrupted({
    message: `stopped; what was written is kept. Go on: daybook continue, or daybook resume ${sessionID}`
  })
  if (stopped?.signal === true && Exit.isFailure(stopped.exit)) return stopped.exit
  // A resumed run may end before this follower hears of the signal.
  if (stopped?.signal === true || isRunInterrupted(stopped?.exit)) return Effect.fail(interrupted)
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
  const problem = view.settled?.error
  if (problem !== undefined) {
    const goOn = problem.type === "answer.cut" ? ` Go on: daybook resume ${sessionID}` : ""
    return Effect.fail(new ActivityFailed({ message: `${problem.message}${goOn}`, type: problem.type }))
  }
  if (view.settled?.outcome === "completed" && view.refused.length > 0) return refusal(view.refused)
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
    return { after, done: resume } satisfies StartedWork<E>
  })

/**
 * Starts a prompt: its events begin with its admission or, for a repeated prompt, with its promotion. It is done when nothing
 * runs or waits to run in this process; a wake waits for another process that owns the session, so that work is included.
 */
export const admitted = Effect.fnUntraced(function* (prompt: PromptOptions & { readonly id: MessageID }) {
  const sessions = yield* Sessions
  const input = yield* sessions.prompt(prompt)
  return {
    after: (input.promotedSeq ?? input.admittedSeq) - 1,
    done: Effect.asVoid(sessions.wait(prompt.sessionID))
  } satisfies StartedWork<unknown>
})
