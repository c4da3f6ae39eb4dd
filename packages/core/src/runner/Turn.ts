/**
 * Runs one provider turn: sends one request, publishes its stream, runs its local tools as they are called, and settles
 * everything before it returns. `Publication.ts` orders the events. Spec: EX-T1..EX-T12 in specs/execution.md,
 * UN-10..UN-12 in specs/sessions.md (TO-P1, TU-8..TU-15, TO-1..TO-10).
 */
import * as AiError from "@effect/ai/AiError"
import * as Response from "@effect/ai/Response"
import {
  Cause,
  Chunk,
  Clock,
  Deferred,
  Effect,
  Either,
  Exit,
  Fiber,
  FiberSet,
  Metric,
  Option,
  ParseResult,
  Predicate,
  Schema
} from "effect"
import type { AnswerProblem } from "@daybook/log/domain/AnswerProblem"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Location, StoredError } from "@daybook/log/domain/Values"
import { draft } from "@daybook/log/events/SessionEvents"
import type { AppendError, EventLog, OwnerToken } from "@daybook/log/log/EventLog"
import { scoped } from "@daybook/log/support/Closing"
import * as Metrics from "@daybook/log/support/Metrics"
import { spanned } from "@daybook/log/support/Spans"
import { messageOf } from "@daybook/log/support/SystemError"
import type { Agent } from "../domain/Agent.ts"
import { described, ProviderFailed } from "../domain/RunFailure.ts"
import type { ToolDeclined, ToolStorageError } from "../domain/ToolError.ts"
import type { ToolOutput } from "../domain/ToolOutput.ts"
import type { ResolvedModel } from "../model/ModelResolver.ts"
import type { ProviderFailure } from "../model/ProviderError.ts"
import * as ProviderStream from "../model/ProviderStream.ts"
import type { StreamPart } from "../model/ProviderStream.ts"
import type { ToolChoice } from "../request/Request.ts"
import type { Snapshot } from "../snapshot/SnapshotStore.ts"
import type { Snapshots } from "../snapshot/Snapshots.ts"
import { firstOf } from "../support/Race.ts"
import type { ToolCall } from "../tool/ToolDefinition.ts"
import type { MaterializedTools, CallOutcome } from "../tool/ToolRegistry.ts"
import * as Publication from "./Publication.ts"
import type { Reasons, Repeats } from "./Publication.ts"
import * as Recorder from "./recorder/TurnRecorder.ts"
import type { LocalCall } from "./recorder/TurnRecorder.ts"

// Recovers calls of tools that were not offered. `@effect/ai` ends the stream with an error that holds the rejected
// parts; the model then reads an error for the call (TO-3).

type EncodedPart = Response.AllPartsEncoded

/** The rejected parts. The provider's adapter encoded them, so they are well-formed; only a tool's name is unknown. */
const refusedParts = (error: unknown): ReadonlyArray<EncodedPart> => {
  if (!(error instanceof AiError.MalformedOutput) || !ParseResult.isParseError(error.cause)) return []
  const { actual } = error.cause.issue
  if (!Chunk.isChunk(actual)) return []
  return Chunk.toReadonlyArray(actual).filter(
    (part): part is EncodedPart => Predicate.hasProperty(part, "type") && typeof part.type === "string"
  )
}

/** Decodes a part as the library would: fills in absent metadata and keeps a result in its encoded form. */
const decoded = (part: EncodedPart): StreamPart | undefined => {
  switch (part.type) {
    case "finish":
      return Option.getOrUndefined(Schema.decodeUnknownOption(Response.FinishPart)(part))
    case "response-metadata":
      return undefined
    case "tool-result":
      // The library ties a result's type to the toolkit, which does not know this tool.
      return { ...part, encodedResult: part.result, metadata: part.metadata ?? {} } as unknown as StreamPart
    default:
      return { ...part, metadata: part.metadata ?? {} } as StreamPart
  }
}

/** The parts that ended a stream because of a call to an unknown tool; empty for any other failure. */
const unknownToolParts = (error: unknown, offered: ReadonlySet<string>): ReadonlyArray<StreamPart> => {
  const parts = refusedParts(error)
  const unknown = parts.some(
    (part) => part.type === "tool-call" && part.providerExecuted !== true && !offered.has(part.name)
  )
  return unknown ? parts.map(decoded).filter(Predicate.isNotUndefined) : []
}

// Runs the local tools of one turn, each in a fiber of the turn's scope; `abort` keeps what must end the turn.

/** Why a tool ends the turn. */
type Abort = ToolDeclined | ToolStorageError | AppendError

interface ToolFibersInput {
  readonly publication: Publication.Publication
  readonly tools: MaterializedTools
  readonly files: TurnFiles
  /** What every call of the turn is given. */
  readonly call: Omit<ToolCall, "callID" | "progress">
}

interface ToolFibers extends ToolFibersInput {
  readonly running: FiberSet.FiberSet<void>
  readonly abort: Deferred.Deferred<never, Abort>
  /** A call has started: since then a tool may end the turn. */
  called: boolean
}

const makeToolFibers = Effect.fnUntraced(function* (input: ToolFibersInput) {
  return { ...input, abort: yield* Deferred.make<never, Abort>(), running: yield* FiberSet.make<void>(), called: false }
})

/** A tool failed outside its contract: the model reads the error and continues (TO-2). */
const brokenTool = (name: string, defect: unknown): CallOutcome => {
  const details = messageOf(defect)
  return { _tag: "Failure", error: { type: "tool.execution", message: `tool "${name}" broke: ${details}` } }
}

const progressOf = ({ abort, publication }: ToolFibers, callID: string) =>
  boundedProgress((update) =>
    Publication.progress(publication, callID, update).pipe(
      Effect.catchAll((error) => Deferred.fail(abort, error)),
      Effect.asVoid
    )
  )

const toolOutcome = (fibers: ToolFibers, { callID, input, name }: LocalCall, restore: Restore) =>
  Effect.flatMap(progressOf(fibers, callID), (progress) =>
    restore(fibers.tools.settle({ name, input, call: { ...fibers.call, callID, progress } }))
  ).pipe(
    Effect.scoped,
    Effect.catchAllDefect((defect) =>
      Effect.as(Effect.logError(`tool "${name}" broke while it served ${callID}`, defect), brokenTool(name, defect))
    )
  )

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Runs one call. It is interruptible until the tool returns; then its result is stored. */
const settleTool = Effect.fn("SessionRunner.tool")((fibers: ToolFibers, call: LocalCall) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      if (!fibers.tools.isReadOnly(call.name)) yield* restore(fibers.files.before)
      const started = yield* Clock.currentTimeMillis
      const settled = yield* toolOutcome(fibers, call, restore)
      const time = (yield* Clock.currentTimeMillis) - started
      yield* Metric.update(Metric.tagged(Metrics.toolTime, "tool", call.name), time)
      yield* Publication.result(fibers.publication, call, settled)
    })
  )
)

/** Starts a call that is on disk, unless a tool ended the turn. A failure to settle it ends the turn, not the fiber set. */
const startTool = (fibers: ToolFibers, call: LocalCall) =>
  Effect.suspend(() => {
    fibers.called = true
    const settled = Effect.catchAllCause(settleTool(fibers, call), (cause) =>
      Cause.isInterruptedOnly(cause) ? Effect.void : Effect.asVoid(Deferred.failCause(fibers.abort, cause))
    )
    return Effect.unlessEffect(FiberSet.run(fibers.running, settled), Deferred.isDone(fibers.abort))
  })

/** Interrupts all tools concurrently: no cleanup waits for another. */
const stopTools = ({ running }: ToolFibers) => Effect.suspend(() => Fiber.interruptAll(Array.from(running)))

/** Fails when a tool ends the turn; never succeeds. */
const aborted = ({ abort }: ToolFibers) => Deferred.await(abort)

const failIfAborted = (fibers: ToolFibers) => Effect.whenEffect(aborted(fibers), Deferred.isDone(fibers.abort))

/**
 * Waits for the model until a tool ends the turn. Before the first call no tool can, and the wait needs no race: its fibers would
 * last as long as the answer.
 */
const unlessAborted =
  (fibers: ToolFibers) =>
  <A, E>(wait: Effect.Effect<A, E>): Effect.Effect<A, E | Abort> =>
    Effect.suspend(() => {
      if (!fibers.called) return wait
      return Effect.flatMap(FiberSet.size(fibers.running), (count) =>
        count === 0 ? Effect.zipRight(failIfAborted(fibers), wait) : firstOf(wait, aborted(fibers))
      )
    })

/** Waits for all tools. Checks `abort` again: a tool that aborts as the last one must not count as a success. */
const awaitTools = (fibers: ToolFibers) =>
  Effect.zipRight(
    Effect.flatMap(FiberSet.size(fibers.running), (count) =>
      count === 0 ? Effect.void : Effect.raceFirst(FiberSet.awaitEmpty(fibers.running), aborted(fibers))
    ),
    failIfAborted(fibers)
  )

// The snapshots around one turn: before its first tool that may change files, and after its last tool.

interface TurnFiles {
  /** Takes the first snapshot, once; every tool that may change files waits for it. */
  readonly before: Effect.Effect<void>
  /** Takes the last snapshot, if there was a first one, and stores what changed. All tools have ended. */
  readonly after: Effect.Effect<void>
}

/** Paths in an event; the store has all of them. */
const listed = 100

interface Input {
  readonly publication: Publication.Publication
  readonly snapshots: Snapshots["Type"]
  readonly sessionID: SessionID
  readonly directory: string
}

type Taken = Either.Either<Snapshot | undefined, string>

const takeSnapshot = ({ directory, sessionID, snapshots }: Input): Effect.Effect<Taken> =>
  Effect.either(Effect.mapError(snapshots.take(sessionID, directory), ({ message }) => message))

interface FoundFiles {
  readonly before?: string
  readonly after?: string
  readonly paths?: ReadonlyArray<string>
  readonly omitted?: ReadonlyArray<string>
  readonly problem?: string
}

const storeFiles = ({ publication }: Input, { omitted = [], paths = [], ...rest }: FoundFiles) =>
  Publication.note(publication, [
    draft("session.next.files.changed", {
      assistantMessageID: Publication.messageID(publication),
      ...rest,
      files: paths.slice(0, listed),
      count: paths.length,
      ...(omitted.length === 0 ? {} : { omitted: omitted.slice(0, listed) })
    })
  ])

/** Stores what the turn changed since the first snapshot. */
const compareFiles = Effect.fnUntraced(function* (input: Input, { tree: before }: Snapshot) {
  const { directory, snapshots } = input
  const last = yield* takeSnapshot(input)
  if (Either.isLeft(last)) return yield* storeFiles(input, { problem: last.left })
  if (last.right === undefined || last.right.tree === before) return
  const { omitted, tree: after } = last.right
  const changes = yield* Effect.either(snapshots.changes(directory, { before, after }))
  if (Either.isLeft(changes)) return yield* storeFiles(input, { problem: changes.left.message })
  yield* storeFiles(input, { before, after, paths: changes.right.map(({ path }) => path), omitted })
})

/** Builds nothing before it is asked: most turns change no files, and a turn waits long for its model. */
const makeTurnFiles = (input: Input): TurnFiles => {
  let first: Taken | undefined
  let before: Effect.Effect<void> | undefined
  return {
    before: Effect.suspend(() => {
      if (before !== undefined) return before
      const taking = Effect.map(takeSnapshot(input), (taken) => void (first = taken))
      // Another tool may have been faster.
      return Effect.flatMap(Effect.cached(taking), (made) => (before ??= made))
    }),
    after: Effect.suspend(() => {
      if (first === undefined) return Effect.void
      const stored = Either.match(first, {
        onLeft: (problem) => storeFiles(input, { problem }),
        onRight: (snapshot) => (snapshot === undefined ? Effect.void : compareFiles(input, snapshot))
      })
      // The turn has ended; its account must not fail it.
      return Effect.ignoreLogged(stored)
    })
  }
}

// Limits stored tool progress: at most one event per second and call, at most a few KiB.

const intervalMs = 1_000
const limitBytes = 4 * 1024

/** Keeps the end of a text, which is its newest part, and notes how many bytes were cut. */
const tail = (text: string): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= limitBytes) return text
  let start = bytes.length - limitBytes
  // Do not cut inside a character: UTF-8 continuation bytes start with the bits 10.
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start++
  return `[${start} bytes before]\n${bytes.toString("utf8", start)}`
}

const bounded = ({ content, structured }: ToolOutput): ToolOutput => {
  const last = content.findLast((part) => part.type === "text")
  return {
    structured: Buffer.byteLength(JSON.stringify(structured)) > limitBytes ? {} : structured,
    content: last === undefined ? [] : [{ type: "text", text: tail(last.text) }]
  }
}

/**
 * Builds a progress reporter for one call; it ends with the scope. Updates within a second of the last stored one are
 * coalesced: the newest is stored when that second ends. So the last update of a tool that then waits is shown too.
 */
const boundedProgress = Effect.fnUntraced(function* (store: (update: ToolOutput) => Effect.Effect<void>) {
  const scope = yield* Effect.scope
  let storedAt = Number.NEGATIVE_INFINITY
  let waiting: ToolOutput | undefined
  const storeNow = (update: ToolOutput) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      storedAt = now
      waiting = undefined
      return store(bounded(update))
    })
  const storeWaiting = Effect.suspend(() => (waiting === undefined ? Effect.void : storeNow(waiting)))
  return (update: ToolOutput): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const isScheduled = waiting !== undefined
      const wait = storedAt + intervalMs - now
      if (!isScheduled && wait <= 0) return storeNow(update)
      waiting = update
      return isScheduled ? Effect.void : Effect.asVoid(Effect.forkIn(Effect.delay(storeWaiting, wait), scope))
    })
})

export interface TurnInput<E> {
  readonly sessionID: SessionID
  readonly messageID: MessageID
  readonly owner: OwnerToken
  readonly agent: Agent
  readonly location: Location
  readonly model: ResolvedModel
  readonly prompt: ProviderStream.ModelPrompt
  readonly tools: MaterializedTools
  readonly snapshots: Snapshots["Type"]
  readonly toolChoice: ToolChoice
  /** Estimated tokens of the request. */
  readonly inputEstimate: number
  readonly repeats: Repeats
  readonly ending: Publication.PublicationInput["ending"]
  /** Opens the step in the log. After it, the turn guarantees that the step is closed. */
  readonly open: Effect.Effect<unknown, E>
  readonly log: EventLog["Type"]
}

export interface TurnResult {
  /** The model has tool results to read (TU-9), or paused (EX-T43). */
  readonly continue: boolean
  readonly problem: AnswerProblem | undefined
}

interface Turn extends Pick<TurnInput<never>, "model" | "prompt" | "tools" | "toolChoice"> {
  readonly publication: Publication.Publication
  readonly fibers: ToolFibers
}

/** The failure of a call whose handler was cut off. */
export const interruptedTool: StoredError = { type: "tool.interrupted", message: "Tool execution interrupted" }
const noResult: StoredError = { type: "tool.no-result", message: "no result from provider" }

const take = ({ fibers, publication }: Turn, parts: ReadonlyArray<StreamPart>) =>
  Publication.take(publication, parts, (call) => startTool(fibers, call))

/** Runs `otherwise` if the answer has not ended. */
const unlessEnded = <E>({ publication }: Turn, otherwise: Effect.Effect<void, E>) =>
  Effect.suspend(() => (Publication.answer(publication).ended === "no" ? otherwise : Effect.void))

/** The stream has ended, but the model can still get the error for an unknown tool (TO-3). */
const recoverUnknownTool = (turn: Turn, fault: ProviderStream.StreamFault) => {
  const offered = new Set(turn.tools.definitions.map(({ name }) => name))
  const refused = fault._tag === "Broken" ? unknownToolParts(fault.error, offered) : []
  return refused.length === 0
    ? Effect.fail(fault)
    : Effect.zipRight(take(turn, refused), unlessEnded(turn, take(turn, [Recorder.cutOff])))
}

/** Sends the request and publishes its stream, within the time limit of an attempt. */
const stream = (turn: Turn) =>
  ProviderStream.forEachChunk(
    turn.model,
    { prompt: turn.prompt, tools: turn.tools.definitions, toolChoice: turn.toolChoice },
    (parts) => take(turn, parts),
    { waiting: unlessAborted(turn.fibers), now: (parts) => Publication.takeNow(turn.publication, parts) }
  ).pipe(
    Effect.catchIf(ProviderStream.isFault, (fault) => recoverUnknownTool(turn, fault)),
    Effect.zipRight(unlessEnded(turn, Effect.fail(ProviderStream.broken("the answer broke off before its end", true)))),
    ProviderStream.within(turn.model.policy)
  )

/** Retries when the policy allows it and the attempt stored nothing durable (TU-12). */
const attempt = (turn: Turn, count: number): Effect.Effect<void, ProviderStream.StreamFault | Abort> =>
  Effect.catchIf(Effect.zipRight(Publication.sent(turn.publication), stream(turn)), ProviderStream.isFault, (fault) =>
    Effect.gen(function* () {
      const output = yield* Publication.failed(turn.publication, fault)
      const pause = yield* ProviderStream.pauseBefore(output ? {} : turn.model.policy, fault, count)
      yield* Publication.retried(turn.publication, count, fault, pause)
      yield* Effect.sleep(pause.wait)
      yield* attempt(turn, count + 1)
    })
  )

const fail = Effect.fnUntraced(function* (
  { model, publication }: Turn,
  { content, message, overflow, retryable }: ProviderFailure
) {
  const answer = Publication.answer(publication)
  const step = { type: overflow ? "context-overflow" : "provider", message }
  yield* Publication.wrapUp(publication, { local: interruptedTool, hosted: noResult, step })
  return yield* new ProviderFailed({
    sessionID: publication.sessionID,
    providerID: model.info.ref.providerID,
    details: message,
    retryable,
    overflow,
    ...(content === undefined ? {} : { rejected: content }),
    partial: answer.output
  })
})

/** Runs the request and its tools to their end. */
const run = Effect.fnUntraced(function* (turn: Turn) {
  const { fibers, publication } = turn
  const fault = yield* attempt(turn, 1).pipe(
    Effect.as(undefined),
    Effect.catchIf(ProviderStream.isFault, Effect.succeed)
  )
  if (fault?._tag === "Reported") {
    yield* stopTools(fibers)
    return yield* fail(turn, fault.failure)
  }
  yield* awaitTools(fibers)
  if (fault !== undefined) return yield* fail(turn, fault.failure)
  // Computed before leftovers are failed: input that never became a call is not a reason to continue.
  const answer = Publication.answer(publication)
  const result: TurnResult = { continue: Recorder.goesOn(answer), problem: Recorder.problemIn(answer) }
  yield* Publication.wrapUp(publication, { local: interruptedTool, hosted: noResult })
  return result
})

/**
 * Stops the tools and settles the turn, for every exit: after the end of the turn is recorded, no part of the turn runs
 * or writes.
 */
const end = Effect.fnUntraced(function* (
  { fibers, publication }: Turn,
  exit: Exit.Exit<TurnResult, ProviderFailed | Abort>
) {
  yield* Metric.increment(Metrics.turnsWith(Exit.isSuccess(exit) ? "ended" : "failed"))
  if (Exit.isSuccess(exit) || Publication.isWrappedUp(publication)) return
  yield* stopTools(fibers)
  const reasons: Reasons = { local: interruptedTool, hosted: interruptedTool, step: abortedStep(exit.cause) }
  yield* Effect.ignoreLogged(Publication.wrapUp(publication, reasons))
})

/** Runs the turn. On `ProviderFailed`, the step is settled as failed in the log. */
export const runTurn = spanned(
  "SessionRunner.turn",
  Effect.fnUntraced(function* <E>(input: TurnInput<E>) {
    const {
      agent,
      ending,
      inputEstimate,
      location,
      log,
      messageID,
      model,
      owner,
      repeats,
      sessionID,
      snapshots,
      tools
    } = input
    const begun = Recorder.start(sessionID, messageID, model.info, inputEstimate)
    const publication = yield* Publication.make({ log, sessionID, owner, begun, repeats, ending })
    const { directory } = location
    const files = makeTurnFiles({ publication, snapshots, sessionID, directory })
    const fibers = yield* makeToolFibers({ publication, tools, files, call: { sessionID, messageID, agent, location } })
    const turn: Turn = { ...input, publication, fibers }
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.zipRight(
        input.open,
        Effect.onExit(restore(run(turn)), (exit) => Effect.zipRight(end(turn, exit), files.after))
      )
    )
  }, scoped)
)

const abortedStep = (cause: Cause.Cause<ProviderFailed | Abort>): StoredError => {
  const failure = Option.getOrUndefined(Cause.failureOption(cause))
  if (failure === undefined) {
    return Cause.isInterruptedOnly(cause)
      ? { type: "aborted", message: "interrupted" }
      : { type: "defect", message: described(cause, "an internal error ended the turn") }
  }
  return failure._tag === "ToolDeclined"
    ? { type: "declined", message: `a call of ${failure.tool} was declined` }
    : { type: failure._tag, message: failure.message }
}
