/** Serves the page in the test's process, on a log in a file: real HTTP and real SQLite, without the command. */
import { Effect } from "effect"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { AccessToken } from "../../../packages/server/src/http/AccessToken.ts"
import * as LocalServer from "../../../packages/server/src/http/LocalServer.ts"
import * as ShellFeed from "../../../packages/cli/src/watch/ShellFeed.ts"
import * as WatchApp from "../../../packages/cli/src/watch/WatchApp.ts"

export const token = AccessToken.make("0123456789abcdefghijkl")

export interface Served {
  readonly port: number
  /** The address of a path, with the token. */
  readonly at: (path: string, query?: Readonly<Record<string, string | number>>) => string
}

export interface ServedOptions extends Partial<WatchApp.WatchOptions> {
  readonly port?: number
}

/** Serves all sessions of the log, or another feed, until the scope closes. */
export const served = Effect.fnUntraced(function* (options: ServedOptions = {}) {
  const log = yield* EventLog
  const feed = options.feed ?? (yield* Effect.provideService(ShellFeed.ofAll, EventLog, log))
  yield* LocalServer.serve(
    WatchApp.make({ token, feed, after: -1, session: undefined, script: "script", style: "style", ...options })
  )
  const port = yield* LocalServer.port
  return {
    port,
    at: (path, query = {}) => {
      const words = new URLSearchParams({ token })
      for (const [name, value] of Object.entries(query)) words.set(name, String(value))
      return `http://127.0.0.1:${port}${path}?${words}`
    }
  } satisfies Served
})

/** Runs with a server of its own. */
export const serving = <A, E, R>(use: (served: Served) => Effect.Effect<A, E, R>, options: ServedOptions = {}) =>
  Effect.scoped(Effect.provide(Effect.flatMap(served(options), use), LocalServer.layer(options.port ?? 0)))
