/** Records the statements of a database. */
import { Effect, Tracer } from "effect"

/** A tracer that gives on the text of every statement that has a span. */
const tracer = (take: (text: string) => void) =>
  Tracer.make({
    span: (name, parent, context, links, startTime, kind) => {
      const attributes = new Map<string, unknown>()
      return {
        _tag: "Span",
        name,
        spanId: "0",
        traceId: "0",
        parent,
        context,
        links,
        sampled: true,
        kind,
        status: { _tag: "Started", startTime },
        attributes,
        attribute: (key, value) => {
          attributes.set(key, value)
          if (key === "db.query.text") take(String(value))
        },
        event: () => undefined,
        addLinks: () => undefined,
        end: () => undefined
      }
    },
    context: (f) => f()
  })

/** A tracer that keeps each text once. */
export const recording = (texts: Set<string>) => tracer((text) => void texts.add(text))

/** The statements that an effect runs, in order, as they were sent. */
export const statementsOf = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const texts: Array<string> = []
  yield* Effect.withTracer(
    effect,
    tracer((text) => void texts.push(text))
  )
  return texts
})
