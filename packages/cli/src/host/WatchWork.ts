/**
 * Serves the live page of all shells until a signal. Spec: SL-215..SL-217 in specs/shell.md.
 *
 *   signal -> connections are closed -> the database closes
 */
import { Effect, Schema } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import * as AccessToken from "@daybook/server/http/AccessToken"
import * as LocalServer from "@daybook/server/http/LocalServer"
import { jsonLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output } from "../terminal/Output.ts"
import type { ShellFeed } from "../watch/ShellFeed.ts"
import * as WatchApp from "../watch/WatchApp.ts"

// The build defines them: the page's script and style.
declare const DAYBOOK_WATCH_SCRIPT: string
declare const DAYBOOK_WATCH_STYLE: string

/** A request to serve. */
interface Request {
  readonly feed: ShellFeed
  readonly session: SessionID | undefined
  readonly after: number
  /** 0: a free one. */
  readonly port: number
  readonly json: boolean
}

const decodeToken = Schema.decodeUnknown(AccessToken.AccessToken)

/** The operator's token, for an address that stays the same when the server is started again; else a new one. */
const token = Effect.suspend(() => {
  const given = process.env["DAYBOOK_WATCH_TOKEN"] ?? ""
  return given === ""
    ? AccessToken.fresh
    : Effect.mapError(
        decodeToken(given),
        () => new UsageError({ message: "DAYBOOK_WATCH_TOKEN: expected 22 to 128 letters, digits, - or _" })
      )
})

export const run = Effect.fn("Command.shell.watch.serve")(function* ({ after, feed, json, port, session }: Request) {
  const signal = yield* Signal.first
  const output = yield* Output
  const secret = yield* token
  const served = Effect.gen(function* () {
    const app = WatchApp.make({
      token: secret,
      feed,
      after,
      session,
      script: DAYBOOK_WATCH_SCRIPT,
      style: DAYBOOK_WATCH_STYLE
    })
    yield* LocalServer.serve(app)
    const url = `http://127.0.0.1:${yield* LocalServer.port}/?token=${secret}`
    const line = json ? jsonLine({ type: "ready", url }, output.terminal) : url
    // Serving continues without a reader of stdout.
    yield* Effect.catchTag(output.write(`${line}\n`), "OutputClosed", () => Effect.void)
    if (!json) yield* output.note("open the page in a browser; Ctrl-C ends it\n")
    yield* signal
  })
  yield* Effect.provide(Effect.scoped(served), LocalServer.layer(port))
}, Effect.scoped)
