/** `daybook discord`: runs the Discord bot. Spec: CL-310..CL-312 in specs/cli.md, specs/discord.md. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import { told } from "../host/Runtime.ts"

const config = Flags.text("config", "FILE", "channels, folders and rights (default: discord.yaml)")
const outbox = Flags.text("outbox", "FILE", "the bot's own database (default: discord.sqlite in the data folder)")
const check = Flags.toggle("check", "check token, intents and permissions, and end")
const logFormat = Flags.choice("log-format", ["text", "json"], "the format of the log on stderr (default: text)")
const logLevels = ["debug", "info", "warning", "error", "none"] as const
const logLevel = Flags.choice("log-level", logLevels, "the lowest level that is logged (default: warning)")

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
  given: { config, outbox, check, trust: Flags.trust, logFormat, logLevel },
  examples: [
    ["DISCORD_TOKEN=... daybook discord --check", "says what is missing before the bot starts"],
    ["DISCORD_TOKEN=... daybook discord --config discord.yaml", "runs the bot and its sessions"],
    ["DISCORD_TOKEN=... daybook --server http://127.0.0.1:4310 discord", "runs the bot for the sessions of a server"]
  ],
  overServer: true,
  run: (given) =>
    Effect.gen(function* () {
      const { run } = yield* Effect.promise(() => import("../host/DiscordWork.ts"))
      yield* run({
        config: given.config ?? "discord.yaml",
        outbox: given.outbox,
        check: given.check,
        logFormat: given.logFormat ?? "text",
        logLevel: given.logLevel ?? "warning"
      })
    }).pipe(told(given.trust))
})
