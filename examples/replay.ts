/** Shows a consumer that prints the events of a database and continues where it stopped. It needs `@daybook/log` only. */
import { Consumer, Store } from "@daybook/log"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect } from "effect"

const program = Consumer.run({
  name: "replay",
  follow: false,
  apply: (events) =>
    Effect.forEach(events, ({ position, sessionID, type }) => Console.log(`${position} ${sessionID} ${type}`))
})

NodeRuntime.runMain(Effect.provide(program, Store.layer({ filename: "embed.sqlite" })))
