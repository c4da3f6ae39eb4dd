/** Shows how to embed Daybook: one layer, one prompt, and every event that the prompt causes. */
import { Daybook, Sessions } from "@daybook/embedded"
import { Models } from "@daybook/models"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect, Layer, Stream } from "effect"

const program = Effect.gen(function* () {
  const sessions = yield* Sessions.Sessions
  const session = yield* sessions.create({ location: { directory: process.cwd() } })
  yield* sessions.prompt({ sessionID: session.id, prompt: { text: "Hello, Daybook" } })
  yield* sessions.events({ sessionID: session.id }).pipe(
    Stream.takeUntil((event) => event.type === "session.next.activity.settled"),
    Stream.runForEach((event) => Console.log(`${event.seq} ${event.type}`))
  )
})

const runtime = Daybook.layer({ filename: "embed.sqlite" }).pipe(Layer.provide(Models.layer))

NodeRuntime.runMain(Effect.provide(program, runtime))
