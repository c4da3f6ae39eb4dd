/** The bot as a process of its own, with many threads at once. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as BotProcess from "./support/BotProcess.ts"
import * as Guild from "./support/Guild.ts"
import * as Loopback from "./support/Loopback.ts"
import * as People from "./support/People.ts"
import * as Published from "./support/Published.ts"
import * as Talker from "./support/Talker.ts"

/** Mentions the bot with a question; its thread has the id of the message. */
const ask = ({ ann, discord, world }: Guild.Guild, number: number, kind: Talker.Kind) =>
  People.say(world, ann, discord.general, `<@${world.bot.id}> ${Talker.promptOf(number, kind)}`).id

it.scopedLive(
  "DI-60: fifty threads at once stay within the limits of Discord, whole and in order",
  () =>
    Effect.gen(function* () {
      // The limits of a channel, ten times faster; that of all requests is Discord's.
      const guild = yield* Guild.make({ haste: 1, pace: 20, settings: { limitOf: Loopback.fasterLimits(10) } })
      const { discord, world } = guild
      yield* BotProcess.start(yield* BotProcess.program, guild.order)
      yield* discord.when("the bot at the gateway", ({ sessions }) => sessions.size > 0)
      for (let number = 1; number <= 50; number += 1) ask(guild, number, number % 2 === 0 ? "long" : "short")
      yield* discord.when(
        () => `answers to be shown: ${Published.missing(guild).join("; ")}`,
        () => Guild.threads(guild).length === 50 && Published.missing(guild).length === 0
      )
      assert.deepStrictEqual(world.limited, [])
      yield* Published.check(guild)
    }),
  180_000
)
