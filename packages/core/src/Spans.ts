/** Spans of what runs thousands of times a second. Everything else names its span with `Effect.fn`. */
import { Context, DefaultServices, Effect, Tracer } from "effect"

/** Effect's own tracer, which shows its spans to nobody. */
const unheard = Context.get(DefaultServices.liveServices, Tracer.Tracer)

/** `Effect.withSpan` for hosts that have installed a tracer: without one, the span would cost more than its effect. */
export const withSpan =
  (name: string) =>
  <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.tracerWith((tracer) =>
      tracer === unheard ? effect : Effect.withSpan(effect, name, { captureStackTrace: false })
    )
