/**
 * Checks that the bot can work before it does: its token, its intents, and its permissions in each channel. Spec: DI-68 in
 * specs/discord.md.
 */
import { PermissionFlagsBits } from "discord.js"
import { Effect } from "effect"
import type { Settings } from "./trust/Settings.ts"
import { Discord } from "./wire/Discord.ts"

/** What the bot needs in a channel. */
const needed = {
  "View Channel": PermissionFlagsBits.ViewChannel,
  "Send Messages": PermissionFlagsBits.SendMessages,
  "Send Messages in Threads": PermissionFlagsBits.SendMessagesInThreads,
  "Create Public Threads": PermissionFlagsBits.CreatePublicThreads,
  "Read Message History": PermissionFlagsBits.ReadMessageHistory,
  "Add Reactions": PermissionFlagsBits.AddReactions,
  "Attach Files": PermissionFlagsBits.AttachFiles
} as const

/** The problem of a channel; undefined if the bot can work there. */
export interface Finding {
  readonly channel: string
  readonly problem: string | undefined
}

/** The findings of all channels. Fails if the token or an intent is refused. The gateway must be open. */
export const check = Effect.fn("Check.check")(function* (settings: Settings) {
  const discord = yield* Discord
  return yield* Effect.forEach(Object.keys(settings.channels), (channel) =>
    Effect.match(discord.permissions(channel), {
      onFailure: ({ message }): Finding => ({ channel, problem: message }),
      onSuccess: (has): Finding => {
        const missing = Object.entries(needed).flatMap(([name, bit]) => ((has & bit) === bit ? [] : [name]))
        return { channel, problem: missing.length === 0 ? undefined : `the bot lacks: ${missing.join(", ")}` }
      }
    })
  )
})
