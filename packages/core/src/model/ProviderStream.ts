/**
 * Runs one provider attempt: its stream of parts within the model policy's limits, the classification of its faults,
 * and the pause before a retry. Records nothing. Spec: EX-T9..EX-T14, EX-110, EX-680, EX-681 in specs/execution.md
 * (TU-12, TO-7, TO-8).
 */
import type * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Response from "@effect/ai/Response"
import type * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import {
  Chunk,
  Clock,
  Duration,
  Effect,
  Exit,
  Fiber,
  Function as Func,
  Option,
  Random,
  type Scope,
  Struct
} from "effect"
import { draft } from "@daybook/log/events/SessionEvents"
import { scoped } from "@daybook/log/support/Closing"
import * as EventLoop from "@daybook/log/support/EventLoop"
import { maxAnswerBlocks, maxAnswerLength, maxBlockLength, maxTextLength } from "../support/Limits.ts"
import type { ModelPolicy, ResolvedModel } from "./ModelResolver.ts"
import { classifyError, type ProviderFailure } from "./ProviderError.ts"
import * as ProviderModel from "./ProviderModel.ts"
import type { Used } from "./Usage.ts"

// Defines the parts of a provider's answer.

/** A part of the provider's stream with untyped tools. */
export type StreamPart = Response.AnyPart

// Joins chunks that arrive together.

/** The next chunk; fails with nothing at the end. */
type Pull<A, E> = Effect.Effect<Chunk.Chunk<A>, Option.Option<E>>

/**
 * Appends to a chunk whose last element `awaits` more the chunks that arrive within one turn of the event loop. Other
 * chunks are passed on immediately. Reads at most one chunk ahead.
 */
export const joined = <A, E>(pull: Pull<A, E>, awaits: (last: A) => boolean) =>
  Effect.map(Effect.scope, (scope) => {
    let ahead: Fiber.RuntimeFiber<Chunk.Chunk<A>, Option.Option<E>> | undefined

    const next = Effect.suspend(() => {
      const started = ahead
      ahead = undefined
      return started === undefined ? pull : Fiber.join(started)
    })

    const grow = (chunk: Chunk.Chunk<A>): Effect.Effect<Chunk.Chunk<A>> => {
      if (Chunk.isNonEmpty(chunk) && !awaits(Chunk.lastNonEmpty(chunk))) return Effect.succeed(chunk)
      return Effect.flatMap(Effect.forkIn(pull, scope), (fiber) =>
        Effect.zipRight(
          EventLoop.turn,
          Effect.suspend(() => {
            const exit = fiber.unsafePoll()
            if (exit !== null && Exit.isSuccess(exit)) return grow(Chunk.appendAll(chunk, exit.value))
            // It has not arrived, or the stream ended or failed: the next pull returns that.
            ahead = fiber
            return Effect.succeed(chunk)
          })
        )
      )
    }

    return Effect.flatMap(next, grow)
  })

export type ModelPrompt = LanguageModel.GenerateTextOptions<Record<string, Tool.Any>>["prompt"]

export interface ModelRequest {
  readonly prompt: ModelPrompt
  readonly tools: ReadonlyArray<Tool.Any>
  readonly toolChoice?: "auto" | "required"
}

/** The stream itself failed or ended early (TO-8). */
export type Broken = { readonly _tag: "Broken"; readonly failure: ProviderFailure; readonly error?: unknown }
/** The provider reported an error inside the stream (TO-7). */
export type Reported = { readonly _tag: "Reported"; readonly failure: ProviderFailure }
export type StreamFault = Reported | Broken

export const broken = (message: string, retryable: boolean): Broken => ({
  _tag: "Broken",
  failure: { message, retryable, overflow: false, refused: false, ...(retryable ? { unanswered: true } : {}) }
})

export const reported = (error: unknown): Reported => ({ _tag: "Reported", failure: classifyError(error) })

export const isFault = (error: { readonly _tag: string }): error is StreamFault =>
  error._tag === "Reported" || error._tag === "Broken"

/** The wire tools as a toolkit. Its handler is never called: the runner settles calls. */
const toolkitOf = (definitions: ReadonlyArray<Tool.Any>): Toolkit.WithHandler<Record<string, Tool.Any>> => ({
  tools: Object.fromEntries(definitions.map((definition) => [definition.name, definition])),
  handle: () => Effect.dieMessage("tool calls are settled by the runner")
})

/** Characters that a part adds to an answer: its text, or its data in stored form. */
const lengthOf = (part: StreamPart): number => {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta":
    case "tool-params-delta":
      return part.delta.length
    case "file":
      return part.data.length
    default:
      return 0
  }
}

const begins: ReadonlySet<StreamPart["type"]> = new Set([
  "text-start",
  "reasoning-start",
  "tool-params-start",
  "tool-call",
  "tool-result",
  "file",
  "source"
])

/** Maximum characters per block of an answer, by part type. */
const blockLimits = {
  "text-delta": maxTextLength,
  "reasoning-delta": maxBlockLength,
  "tool-params-delta": maxBlockLength
} as const

/** Counts one answer. Returns which limit the next part exceeds, if any (LM-12). */
const makeMeter = () => {
  let [total, blocks] = [0, 0]
  const open = {
    "text-delta": new Map<string, number>(),
    "reasoning-delta": new Map<string, number>(),
    "tool-params-delta": new Map<string, number>()
  }
  return (part: StreamPart): string | undefined => {
    const length = lengthOf(part)
    total += length
    if (total > maxAnswerLength) return `the answer has more than ${maxAnswerLength} characters, which is the limit`
    if (begins.has(part.type) && ++blocks > maxAnswerBlocks) {
      return `the answer has more than ${maxAnswerBlocks} texts and calls, which is the limit`
    }
    if (!("delta" in part)) return undefined
    const limit = blockLimits[part.type]
    const own = (open[part.type].get(part.id) ?? 0) + length
    open[part.type].set(part.id, own)
    return own > limit
      ? `one text, block of reasoning or call of the answer has more than ${limit} characters, which is the limit`
      : undefined
  }
}

/** An answer that is read. */
interface Reading {
  readonly beyond: ReturnType<typeof makeMeter>
  /** The reader has had every chunk that was pulled, and waits for the next one. */
  waits: boolean
}

/**
 * Fails the answer when it exceeds a limit, and ends it with its finish part; later parts are not read. Chunks are
 * preserved: parts that arrive together are stored together.
 */
const bounded = (parts: Pull<StreamPart, Broken>, reading: Reading): Pull<StreamPart, Broken> => {
  let ended = false
  return Effect.suspend(() =>
    ended
      ? Effect.fail(Option.none())
      : Effect.flatMap(parts, (chunk) => {
          reading.waits = false
          let count = 0
          for (const part of chunk) {
            const words = reading.beyond(part)
            if (words !== undefined) return Effect.fail(Option.some(broken(words, false)))
            count += 1
            ended = part.type === "finish"
            if (ended) break
          }
          return Effect.succeed(count === chunk.length ? chunk : Chunk.take(chunk, count))
        })
  )
}

/** Parts that only begin or end something: what follows them at once is stored with them (EX-110). */
const boundaries: ReadonlySet<StreamPart["type"]> = new Set([
  "text-start",
  "text-end",
  "reasoning-start",
  "reasoning-end",
  "tool-params-start",
  "tool-params-end",
  "response-metadata"
])

/** Returns what takes these parts, if they need nothing but that; undefined otherwise. */
export type Now = (parts: ReadonlyArray<StreamPart>) => (() => void) | undefined

const isDelta = (part: StreamPart): boolean => "delta" in part

/** Sends one request. The answer ends with its finish part, or with the scope. */
const open = (
  { info, model, policy: { inactivity } }: ResolvedModel,
  { prompt, toolChoice = "auto", tools }: ModelRequest,
  reading: Reading,
  now: Now
): Effect.Effect<Pull<StreamPart, Broken>, never, Scope.Scope> => {
  const request = { prompt, toolkit: toolkitOf(tools), toolChoice, disableToolCallResolution: true } as const
  const takeNow = (parts: ReadonlyArray<StreamPart>): boolean => {
    const take = reading.waits && parts.every(isDelta) ? now(parts) : undefined
    // A part beyond a limit comes again with the pull, which fails.
    if (take === undefined || parts.some((part) => reading.beyond(part) !== undefined)) return false
    take()
    return true
  }
  // A limit of silence counts from the last pull: with one, each part is pulled.
  const pulled = ProviderModel.pull(model, request, inactivity === undefined ? takeNow : undefined)
  return Effect.flatMap(pulled, (pull) => {
    const parts = Effect.mapError(
      pull,
      Option.map((error): Broken => ({ _tag: "Broken", failure: classifyError(error, info.ref.id), error }))
    )
    const watched =
      inactivity === undefined
        ? parts
        : Effect.timeoutFail(parts, {
            duration: inactivity,
            onTimeout: () => Option.some(broken(`the provider sent nothing for ${Duration.format(inactivity)}`, true))
          })
    return joined(bounded(watched, reading), ({ type }) => boundaries.has(type))
  })
}

/** The next chunk of an answer; undefined at the end. */
type Next = Effect.Effect<Chunk.Chunk<StreamPart> | undefined, Broken>

interface Waiting<E> {
  /** May end the wait for a chunk. */
  readonly waiting?: (wait: Next) => Effect.Effect<Chunk.Chunk<StreamPart> | undefined, Broken | E>
  /** Gets the deltas that come during the wait. Deltas that it takes wake no fiber. */
  readonly now?: Now
}

/** Sends one request and runs `take` on each of the answer's chunks. */
export const forEachChunk = <E, R, E2 = never>(
  model: ResolvedModel,
  request: ModelRequest,
  take: (parts: ReadonlyArray<StreamPart>) => Effect.Effect<void, E, R>,
  { now = () => undefined, waiting = Func.identity }: Waiting<E2> = {}
): Effect.Effect<void, E | E2 | Broken, R> =>
  Effect.gen(function* () {
    const reading: Reading = { beyond: makeMeter(), waits: false }
    const pull = Effect.catchAll(
      yield* open(model, request, reading, now),
      Option.match({ onNone: () => Effect.succeed(undefined), onSome: (fault) => Effect.fail(fault) })
    )
    const next = waiting(pull)
    for (;;) {
      reading.waits = true
      const chunk = yield* next
      if (chunk === undefined) return
      yield* take(Chunk.toReadonlyArray(chunk))
    }
  }).pipe(scoped)

/** Limits the duration of a whole attempt. */
export const within =
  ({ timeout }: ModelPolicy) =>
  <A, E, R>(attempt: Effect.Effect<A, E, R>): Effect.Effect<A, E | Broken, R> =>
    timeout === undefined
      ? attempt
      : Effect.timeoutFail(attempt, {
          duration: timeout,
          onTimeout: () => broken(`the provider took longer than ${Duration.format(timeout)}`, true)
        })

/**
 * Retries for providers over HTTP. The waits add up to at least 80 seconds: an overload lasts about a minute. A server
 * that is not reached, or breaks off, has not said that waiting helps: a person learns of it within five seconds.
 */
export const defaultRetry = {
  times: 7,
  unansweredTimes: 2,
  baseDelay: Duration.seconds(1),
  maxDelay: Duration.seconds(30)
} as const satisfies ModelPolicy["retry"]

/** What comes before the next attempt. */
export interface Pause {
  readonly wait: Duration.Duration
  /** The attempts that the policy allows in all. */
  readonly attempts: number
}

/** Longest retry delay accepted from a provider when the policy sets none. */
const maxRetryAfter = Duration.minutes(15)

/** The remaining delay that the provider asked for; undefined when it has passed. */
const askedWait = ({ retryAfterMs, retryAtMs }: ProviderFailure): Effect.Effect<Duration.Duration | undefined> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const ms = retryAfterMs ?? (retryAtMs === undefined ? 0 : retryAtMs - now)
    return ms > 0 ? Duration.millis(Math.ceil(ms)) : undefined
  })

const inWords = (wait: Duration.Duration): string =>
  Duration.greaterThan(wait, Duration.days(365)) ? "more than a year" : Duration.format(wait)

const withWords = (fault: StreamFault, words: string): StreamFault => ({
  ...fault,
  failure: { ...fault.failure, message: `${fault.failure.message}; ${words}` }
})

/**
 * The pause before the next attempt, after `count` attempts: the provider's delay, else exponential backoff with
 * jitter. Fails with the fault, and the requested delay in its message, when the policy allows no further attempt.
 */
export const pauseBefore = Effect.fnUntraced(function* ({ retry }: ModelPolicy, fault: StreamFault, count: number) {
  const asked = yield* askedWait(fault.failure)
  const times = timesOf(retry, fault.failure)
  if (retry === undefined || count > times || !fault.failure.retryable) {
    return yield* Effect.fail(asked === undefined ? fault : withWords(fault, `it asks to wait ${inWords(asked)}`))
  }
  if (asked === undefined) {
    const jitter = yield* Random.nextRange(0.8, 1.2)
    const wait = Duration.millis(Math.round(Duration.toMillis(retry.baseDelay) * 2 ** (count - 1) * jitter))
    return { wait: Duration.min(wait, retry.maxDelay), attempts: times + 1 }
  }
  const longest = retry.maxRetryAfter ?? maxRetryAfter
  if (Duration.lessThanOrEqualTo(asked, longest)) return { wait: asked, attempts: times + 1 }
  const words = `it asks to wait ${inWords(asked)}, longer than the ${inWords(longest)} allowed: resume the session then`
  return yield* Effect.fail(withWords(fault, words))
})

const timesOf = (retry: ModelPolicy["retry"], { unanswered }: ProviderFailure): number =>
  (unanswered === true ? retry?.unansweredTimes : undefined) ?? retry?.times ?? 0

/** Whether the provider may charge tokens for this failed request, because it started to work on it. */
export const isCharged = ({ _tag, failure }: StreamFault, output: boolean): boolean =>
  output || (_tag === "Broken" && !failure.refused)

/** The event for a failed attempt: the pause before the next one, and the usage estimate. */
export const retried = (attempt: number, { failure }: StreamFault, pause: Pause, used: Used | undefined) =>
  draft("session.next.retried", {
    attempt,
    attempts: pause.attempts,
    waitMs: Math.ceil(Duration.toMillis(pause.wait)),
    ...used,
    error: {
      message: failure.message,
      isRetryable: failure.retryable,
      ...Struct.pick(failure, "statusCode", "responseHeaders", "responseBody")
    }
  })
