/** Shows a consumer that replays the log of a database and continues where it stopped. It needs `@daybook/log` only. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { EventLog, Store } from "@daybook/log"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect, Stream } from "effect"

const cursor = "replay.cursor"
const after = existsSync(cursor) ? Number(readFileSync(cursor, "utf8")) : 0

const program = Effect.flatMap(EventLog.EventLog, (log) =>
  log.feed({ after }).pipe(
    Stream.takeUntil((event) => event.type === "session.next.activity.settled"),
    Stream.runForEach((event) =>
      Effect.zipRight(
        Console.log(`${event.position} ${event.sessionID} ${event.type}`),
        Effect.sync(() => writeFileSync(cursor, String(event.position)))
      )
    )
  )
)

NodeRuntime.runMain(Effect.provide(program, Store.layer({ filename: "embed.sqlite" })))
