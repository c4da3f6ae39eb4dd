/**
 * Runs `daybook discord`: the bot over a server, or over a runtime of its own that it serves to itself on a loopback address.
 * Spec: CL-310..CL-312 in specs/cli.md, DI-2 in specs/discord.md.
 */
import { readFile, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { Effect, Either, Layer, Redacted } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import { showIssues } from "@daybook/core/definition/Yaml"
import { bookLayer, check, Discord, discordLayer, readSettings, serve, type Settings } from "@daybook/discord"
import { secretsOf } from "@daybook/log/support/Redaction"
import type { Asks } from "@daybook/server"
import * as HttpServing from "@daybook/server/http/HttpServing"
import * as AccessToken from "@daybook/server/http/AccessToken"
import * as DatabasePath from "../config/DatabasePath.ts"
import { oneLine } from "../render/Plain.ts"
import { DiscordIncomplete, UsageError } from "../support/Errors.ts"
import { dataFolder } from "../support/Paths.ts"
import * as Signal from "../support/Signal.ts"
import * as Watchdog from "../support/Watchdog.ts"
import { Output } from "../terminal/Output.ts"
import * as ServerLog from "../terminal/ServerLog.ts"
import * as ClientAsks from "./ClientAsks.ts"
import * as Host from "./Host.ts"
import { Remote } from "./Remote.ts"
import { withTelemetry } from "./Runtime.ts"

// The build defines it.
declare const DAYBOOK_VERSION: string

export interface Request {
  readonly config: string
  readonly outbox: string | undefined
  readonly check: boolean
  readonly logFormat: "text" | "json"
  readonly logLevel: "debug" | "info" | "warning" | "error" | "none"
}

const usage = (message: string) => new UsageError({ message })

const settingsOf = (path: string): Effect.Effect<Settings, UsageError> =>
  Effect.gen(function* () {
    const name = oneLine(path, 400)
    const text = yield* Effect.tryPromise({
      try: () => readFile(path, "utf8"),
      catch: () => usage(`${name}: it cannot be read; it names the channels of the bot (daybook discord --help)`)
    })
    const read = readSettings(text)
    return Either.isRight(read) ? read.right : yield* usage(`${name}: ${showIssues(read.left)}`)
  })

/** A folder that does not exist would only be noticed at the first question. */
const withFolders = (settings: Settings) =>
  Effect.forEach(
    Object.entries(settings.channels),
    ([channel, { folder }]) =>
      Effect.filterOrFail(
        Effect.promise(() =>
          stat(folder).then(
            (found) => found.isDirectory(),
            () => false
          )
        ),
        (isFolder) => isFolder,
        () => usage(`channels.${channel}.folder: ${oneLine(folder, 400)} is not a folder`)
      ),
    { discard: true }
  )

const checked = (settings: Settings) =>
  Effect.gen(function* () {
    const output = yield* Output
    yield* (yield* Discord).open
    const findings = yield* check(settings)
    yield* output.write(findings.map(({ channel, problem }) => `${channel}: ${problem ?? "ok"}\n`).join(""))
    const wrong = findings.filter(({ problem }) => problem !== undefined)
    if (wrong.length > 0) {
      return yield* new DiscordIncomplete({
        message: `the bot cannot work in ${wrong.length} of ${findings.length} channels`
      })
    }
  })

/** The sessions of this process's own runtime, served on a loopback address. */
const own = (filename: string, asks: Asks.Asks) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const token = yield* AccessToken.fresh
      const { url } = yield* HttpServing.serve({ token, version: DAYBOOK_VERSION, asks, host: "127.0.0.1", port: 0 })
      return bookLayer({ url, token: Redacted.make(token) })
    })
  ).pipe(
    Layer.provideMerge(Host.layer(filename, { servers: true, background: true, asker: asks.layer, answered: true }))
  )

/** Runs until the signal, then lets the post in hand be finished. */
const until = (bot: Parameters<typeof serve>[0], signal: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const output = yield* Output
    const ready = Effect.catchTag(output.write("ready\n"), "OutputClosed", () => Effect.void)
    yield* Effect.raceFirst(serve(bot, ready), signal)
  })

/** What ran in this process ends with it. */
const endRuns = Effect.flatMap(Sessions, (sessions) =>
  Effect.flatMap(sessions.active, (active) =>
    Effect.forEach(active, (id) => sessions.interrupt(id), { concurrency: 16, discard: true })
  )
)

/** Runs the bot until a signal. */
export const run = Effect.fn("Command.discord")(function* (request: Request) {
  const token = process.env["DISCORD_TOKEN"] ?? ""
  if (token === "") return yield* usage("set DISCORD_TOKEN to the bot's token")
  const settings = yield* settingsOf(request.config)
  const server = yield* Remote
  // A server may have folders that this machine does not have.
  if (server === undefined) yield* withFolders(settings)
  const api = process.env["DISCORD_API"]
  const bot = {
    settings,
    token: Redacted.make(token),
    outbox: request.outbox ?? join(dataFolder(process.env, homedir()), "discord.sqlite"),
    api,
    secrets: secretsOf(process.env)
  }
  if (request.check)
    return yield* Effect.provide(checked(settings), discordLayer({ token: bot.token, api, waits: false }))
  const logged = ServerLog.layer(request.logFormat, request.logLevel)
  yield* Effect.scoped(
    Effect.gen(function* () {
      const signal = yield* Signal.first
      yield* Watchdog.begin()
      if (server !== undefined) {
        const book = bookLayer({ url: server.url, token: Redacted.make(server.token) })
        return yield* Effect.provide(until(bot, signal), book)
      }
      const filename = yield* DatabasePath.writable
      const asks = yield* ClientAsks.make
      // What dead processes left is taken up until the signal, and ends before the runs do.
      const serving = Effect.scoped(Effect.zipRight(HttpServing.recover, until(bot, signal)))
      yield* Effect.provide(Effect.zipRight(serving, endRuns), own(filename, asks))
    })
  ).pipe(withTelemetry, Effect.provide(logged))
})
