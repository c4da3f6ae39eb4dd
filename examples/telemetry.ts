/** Shows how to send the runtime's spans to OpenTelemetry. This one counts them; a real one exports them. */
import { layer as telemetry } from "@daybook/core/otel"
import { Daybook, Sessions } from "@daybook/embedded"
import { Models } from "@daybook/models"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Console, Effect, Layer, Stream } from "effect"

const spans = new InMemorySpanExporter()

const program = Effect.gen(function* () {
  const sessions = yield* Sessions.Sessions
  const session = yield* sessions.create({ location: { directory: process.cwd() } })
  yield* sessions.prompt({ sessionID: session.id, prompt: { text: "Hello" } })
  yield* sessions.events({ sessionID: session.id }).pipe(
    Stream.takeUntil((event) => event.type === "session.next.activity.settled"),
    Stream.runDrain
  )
  const names = new Set(spans.getFinishedSpans().map(({ name }) => name))
  yield* Console.log(`Sessions.prompt: ${names.has("Sessions.prompt")}`)
})

const runtime = Daybook.layer({ filename: "telemetry.sqlite" }).pipe(
  Layer.provide(Models.layer),
  Layer.provideMerge(telemetry({ spanProcessor: new SimpleSpanProcessor(spans) }))
)

NodeRuntime.runMain(Effect.provide(program, runtime))
