/** Spans for code that runs thousands of times a second, often in each turn, or as long as a turn. All other code uses `Effect.fn`. */
import { Context, DefaultServices, Effect, type Fiber, Tracer } from "effect"

/** Effect's default tracer, which exports no spans. */
const unheard = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** Whether the host installed a tracer for this fiber. */
export const isTraced = ({ currentDefaultServices }: Fiber.RuntimeFiber<unknown, unknown>): boolean =>
  Context.get(currentDefaultServices, Tracer.Tracer) !== unheard

/** `Effect.withSpan`, only if the host installed a tracer: otherwise the span would cost more than its effect. */
export const withSpan =
  (name: string, attributes?: Readonly<Record<string, unknown>>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiberRuntime<A, E, R>((fiber) =>
      isTraced(fiber)
        ? Effect.withSpan(effect, name, {
            captureStackTrace: false,
            ...(attributes === undefined ? {} : { attributes })
          })
        : effect
    )

/** A function whose effect has the span, only if the host installed a tracer. */
export const spanned =
  <Args extends ReadonlyArray<unknown>, A, E, R>(name: string, verb: (...args: Args) => Effect.Effect<A, E, R>) =>
  (...args: Args): Effect.Effect<A, E, R> =>
    withSpan(name)(verb(...args))
