/**
 * `daybook discord`: runs the bot over a server, or over a runtime of its own that it serves to itself on a loopback address.
 * Spec: CL-310..CL-312 in specs/cli.md, DI-2 in specs/discord.md.
 */
import { readFile, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { Effect, Either, Layer, Redacted } from "effect"
import { showIssues } from "@daybook/core/definition/Yaml"
import { SessionExecution } from "@daybook/core/session/SessionExecution"
import { bookLayer, check, Discord, discordLayer, readSettings, serve, type Settings } from "@daybook/discord"
import { secretsOf } from "@daybook/log/support/Redaction"
import { codeOf } from "@daybook/log/support/SystemError"
import type { Asks } from "@daybook/server"
import * as HttpServing from "@daybook/server/http/HttpServing"
import * as AccessToken from "@daybook/server/http/AccessToken"
import * as Flags from "../arguments/Flags.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import * as ClientAsks from "../host/ClientAsks.ts"
import * as Host from "../host/Host.ts"
import { Remote } from "../host/Remote.ts"
import { told, withTelemetry } from "../host/Runtime.ts"
import { oneLine } from "../render/Plain.ts"
import { DiscordIncomplete, UsageError } from "../support/Errors.ts"
import { dataFolder } from "../support/Paths.ts"
import * as Signal from "../support/Signal.ts"
import * as Watchdog from "../support/Watchdog.ts"
import { Output } from "../terminal/Output.ts"
import * as Logs from "../terminal/Logs.ts"

// The build defines it.
declare const DAYBOOK_VERSION: string

const given = {
  config: Flags.text("config", "FILE", "channels, folders and rights (default: discord.yaml)"),
  outbox: Flags.text("outbox", "FILE", "the bot's own database (default: discord.sqlite in the data folder)"),
  check: Flags.toggle("check", "check token, intents and permissions, and end"),
  trust: Flags.trust,
  logFormat: Flags.choice("log-format", ["text", "json"], "the format of the log on stderr (default: text)"),
  logLevel: Flags.choice(
    "log-level",
    ["debug", "info", "warning", "error", "none"],
    "the lowest level that is logged (default: warning)"
  )
}

const usage = (message: string) => new UsageError({ message })

const settingsOf = (path: string): Effect.Effect<Settings, UsageError> =>
  Effect.gen(function* () {
    const name = oneLine(path, 400)
    const text = yield* Effect.tryPromise({
      try: () => readFile(path, "utf8"),
      catch: (cause) =>
        usage(
          `${name}: it cannot be read (${codeOf(cause)}); it names the channels of the bot (daybook discord --help)`
        )
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

const checked = Effect.fnUntraced(function* (settings: Settings) {
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
const own = (place: DatabasePath.Place, asks: Asks.Asks) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const token = yield* AccessToken.fresh
      const { url } = yield* HttpServing.serve({ token, version: DAYBOOK_VERSION, asks, host: "127.0.0.1", port: 0 })
      return bookLayer({ url, token: Redacted.make(token) })
    })
  ).pipe(Layer.provideMerge(Host.layer(place, { servers: true, background: true, asker: asks.layer, answered: true })))

/** Runs until the signal, then lets the post in hand be finished. */
const until = Effect.fnUntraced(function* (bot: Parameters<typeof serve>[0], signal: Effect.Effect<void>) {
  const output = yield* Output
  const ready = Effect.catchTag(output.write("ready\n"), "OutputClosed", () => Effect.void)
  yield* Effect.raceFirst(serve(bot, ready), signal)
})

/** What ran in this process ends with it. */
const endRuns = Effect.flatMap(SessionExecution, ({ stop }) => stop())

const run = Effect.fn("Command.discord")(function* (request: FieldValues<typeof given>) {
  const token = process.env["DISCORD_TOKEN"] ?? ""
  if (token === "") return yield* usage("set DISCORD_TOKEN to the bot's token")
  const settings = yield* settingsOf(request.config ?? "discord.yaml")
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
  const logged = Logs.layer(request.logFormat ?? "text", request.logLevel ?? "warning")
  yield* Effect.scoped(
    Effect.gen(function* () {
      const signal = yield* Signal.first
      yield* Watchdog.begin()
      if (server !== undefined) {
        const book = bookLayer({ url: server.url, token: Redacted.make(server.token) })
        return yield* Effect.provide(until(bot, signal), book)
      }
      const place = yield* DatabasePath.writable
      const asks = yield* ClientAsks.make
      // What dead processes left is taken up until the signal, and ends before the runs do.
      const serving = Effect.scoped(Effect.zipRight(HttpServing.recover, until(bot, signal)))
      yield* Effect.provide(Effect.zipRight(serving, endRuns), own(place, asks))
    })
  ).pipe(withTelemetry, Effect.provide(logged))
})

export const discord = verb({
  name: "discord",
  summary: "run the Discord bot",
  words: "",
  details: [
    "The bot publishes what sessions say, each answer once, and admits messages as prompts. A message that mentions it, or " +
      "/ask, opens a thread, which is a session in the channel's folder. DISCORD_TOKEN is its token.",
    "The file names the channels, and for each the folder, agent, model, budget, and who may ask, approve and administer. " +
      "specs/discord.md and the README of packages/discord describe it.",
    "With --server before the verb, sessions are those of that server, whose token needs the scope admin. Alone, it runs " +
      "them itself, on this machine's database. One bot uses an outbox: keep its file, which knows what is posted.",
    "Ctrl-C stops it: the post in hand is finished. It prints ready when Discord knows it."
  ],
  given,
  examples: [
    ["DISCORD_TOKEN=... daybook discord --check", "says what is missing before the bot starts"],
    ["DISCORD_TOKEN=... daybook discord --config discord.yaml", "runs the bot and its sessions"],
    ["DISCORD_TOKEN=... daybook --server http://127.0.0.1:4310 discord", "runs the bot for the sessions of a server"]
  ],
  overServer: true,
  run: (request) => run(request).pipe(told(request.trust))
})
