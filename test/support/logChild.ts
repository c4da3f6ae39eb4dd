/**
 * A separate process on a database file that executes its parent's messages:
 *   `open` opens the log; `append` stores titles, one event each, and acknowledges each; `remake` removes a session and
 *   creates it again with titles; `remove` removes a session; `follow` sends every event after a cursor; `hold` keeps the write lock until `release`;
 *   `start` opens another file and closes it. It answers with messages and ends on request or when killed.
 */
import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Layer, ManagedRuntime, Stream } from "effect"
import * as Identifiers from "../../packages/log/src/domain/Identifiers.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SqlEventLog from "../../packages/log/src/log/SqlEventLog.ts"
import * as Database from "../../packages/log/src/storage/Database.ts"
import * as Transaction from "../../packages/log/src/storage/Transaction.ts"

export type Command =
  | { readonly do: "open" }
  | { readonly do: "append"; readonly sessionID: string; readonly titles: ReadonlyArray<string> }
  | { readonly do: "remake"; readonly sessionID: string; readonly titles: ReadonlyArray<string> }
  | { readonly do: "remove"; readonly sessionID: string }
  | { readonly do: "follow"; readonly sessionID: string; readonly after: number }
  | { readonly do: "hold" }
  | { readonly do: "release" }
  | { readonly do: "start"; readonly filename: string }

export type Answer =
  | { readonly is: "opened" }
  | { readonly is: "failed"; readonly tag: string; readonly message: string }
  | { readonly is: "stored"; readonly seq: number }
  | { readonly is: "event"; readonly seq: number; readonly id: string }
  | { readonly is: "removed" }
  | { readonly is: "held" }
  | { readonly is: "released" }

const [, , filename = ""] = process.argv
const say = (answer: Answer) => Effect.sync(() => process.send?.(answer))

const runtime = ManagedRuntime.make(
  SqlEventLog.layer().pipe(Layer.provideMerge(Layer.mergeAll(Database.layer({ filename }), Identifiers.layer)))
)
const release = Effect.runSync(Deferred.make<void>())

const obey = Effect.fnUntraced(function* (command: Command) {
  const log = yield* EventLog
  switch (command.do) {
    case "open":
      return yield* say({ is: "opened" })
    case "append": {
      const sessionID = SessionID.make(command.sessionID)
      for (const title of command.titles) {
        const [event] = yield* log.append(sessionID, [draft("session.next.renamed", { title })])
        yield* say({ is: "stored", seq: event.seq })
      }
      return
    }
    case "remake": {
      const sessionID = SessionID.make(command.sessionID)
      yield* log.remove(sessionID)
      const created = draft("session.created", { location: { directory: "/work" } })
      const renames = command.titles.map((title) => draft("session.next.renamed", { title }))
      const events = yield* log.append(sessionID, [created, ...renames])
      return yield* say({ is: "stored", seq: events.length - 1 })
    }
    case "remove":
      yield* log.remove(SessionID.make(command.sessionID))
      return yield* say({ is: "removed" })
    case "follow": {
      const sessionID = SessionID.make(command.sessionID)
      return yield* log
        .tail({ sessionID, after: command.after })
        .pipe(Stream.runForEach(({ id, seq }) => say({ is: "event", seq, id })))
    }
    case "hold": {
      const sql = yield* SqlClient.SqlClient
      yield* Transaction.immediately(sql)(Effect.zipRight(say({ is: "held" }), Deferred.await(release)))
      return yield* say({ is: "released" })
    }
    case "start":
      yield* Effect.scoped(Layer.build(Layer.fresh(Database.layer({ filename: command.filename }))))
      return yield* say({ is: "opened" })
    case "release":
      return yield* Deferred.succeed(release, undefined)
  }
})

process.on("message", (command: Command) => {
  Effect.runFork(
    Effect.catchAll(Effect.provide(obey(command), runtime), (error) =>
      say({ is: "failed", tag: error._tag, message: error.message })
    )
  )
})
