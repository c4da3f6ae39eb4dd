/**
 * One attempt at a provider: its stream of parts within the limits of the model's policy, what a fault of it means, and
 * when and how late it may be tried again. Records nothing. Spec: EX-T9..EX-T12 (TU-12, TO-7, TO-8).
 */
import type { LanguageModel, Tool, Toolkit } from "@effect/ai"
import { Duration, Effect, Random, Stream } from "effect"
import { draft } from "../events/SessionEvents.ts"
import type { ModelPolicy, ResolvedModel } from "../model/ModelResolver.ts"
import { classifyError, type ProviderFailure } from "../model/ProviderError.ts"
import type { StreamPart } from "./TurnRecorder.ts"

export type ModelPrompt = LanguageModel.GenerateTextOptions<Record<string, Tool.Any>>["prompt"]

/** The stream itself failed, or broke off (TO-8). */
export type Broken = { readonly _tag: "Broken"; readonly failure: ProviderFailure; readonly error?: unknown }
/** The provider said so inside the stream (TO-7). */
export type Reported = { readonly _tag: "Reported"; readonly failure: ProviderFailure }
/** How a stream ended that did not end well. */
export type StreamFault = Reported | Broken

export const broken = (message: string, retryable: boolean): Broken => ({
  _tag: "Broken",
  failure: { message, retryable, overflow: false }
})

export const reported = (error: unknown): Reported => ({ _tag: "Reported", failure: classifyError(error) })

export const isFault = (error: { readonly _tag: string }): error is StreamFault =>
  error._tag === "Reported" || error._tag === "Broken"

/** The wire tools as a toolkit. Its handlers are never asked: the runtime settles calls itself. */
const toolkitOf = (definitions: ReadonlyArray<Tool.Any>): Toolkit.WithHandler<Record<string, Tool.Any>> => ({
  tools: Object.fromEntries(definitions.map((definition) => [definition.name, definition])),
  handle: () => Effect.dieMessage("tool calls are settled by the runner")
})

/** One request. The finish part is the end of the answer: nothing after it is read. */
export const partsOf = (
  { model, policy }: ResolvedModel,
  prompt: ModelPrompt,
  tools: ReadonlyArray<Tool.Any>,
  toolChoice: "auto" | "required" = "auto"
): Stream.Stream<StreamPart, Broken> => {
  const parts = Stream.mapError(
    model.streamText({ prompt, toolkit: toolkitOf(tools), toolChoice, disableToolCallResolution: true }),
    (error): Broken => ({ _tag: "Broken", failure: classifyError(error), error })
  )
  const { inactivity } = policy
  const watched =
    inactivity === undefined
      ? parts
      : Stream.timeoutFail(
          parts,
          () => broken(`the provider sent nothing for ${Duration.format(inactivity)}`, true),
          inactivity
        )
  return Stream.takeUntil(watched, ({ type }) => type === "finish")
}

/** Bounds the whole of one attempt. */
export const within =
  ({ timeout }: ModelPolicy) =>
  <A, E, R>(attempt: Effect.Effect<A, E, R>): Effect.Effect<A, E | Broken, R> =>
    timeout === undefined
      ? attempt
      : Effect.timeoutFail(attempt, {
          duration: timeout,
          onTimeout: () => broken(`the provider took longer than ${Duration.format(timeout)}`, true)
        })

/** Whether the policy allows another attempt after this many. */
export const mayRetry = ({ retry }: ModelPolicy, { failure }: StreamFault, attempts: number) =>
  retry !== undefined && attempts <= retry.times && failure.retryable ? retry : undefined

/** What the provider asks for, else doubling with jitter; never longer than the policy's longest wait. */
export const retryDelay = (
  { failure }: StreamFault,
  { baseDelay, maxDelay }: NonNullable<ModelPolicy["retry"]>,
  attempt: number
) =>
  Effect.map(Random.nextRange(0.8, 1.2), (jitter) =>
    Duration.min(
      failure.retryAfterMs === undefined
        ? Duration.millis(Math.round(Duration.toMillis(baseDelay) * 2 ** (attempt - 1) * jitter))
        : Duration.millis(failure.retryAfterMs),
      maxDelay
    )
  )

/** The attempt that is given up, for readers of the log. */
export const retried = (attempt: number, { failure }: StreamFault) =>
  draft("session.next.retried", {
    attempt,
    error: {
      message: failure.message,
      isRetryable: failure.retryable,
      ...(failure.statusCode === undefined ? {} : { statusCode: failure.statusCode }),
      ...(failure.responseHeaders === undefined ? {} : { responseHeaders: failure.responseHeaders }),
      ...(failure.responseBody === undefined ? {} : { responseBody: failure.responseBody })
    }
  })
