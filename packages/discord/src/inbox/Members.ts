/** Finds the roles of a message's author: messages that are fetched do not have them. Spec: DI-51 in specs/discord.md. */
import { Effect } from "effect"
import { rights } from "../trust/Rights.ts"
import type { ChannelSettings } from "../trust/Settings.ts"
import { Discord } from "../wire/Discord.ts"
import * as Messages from "../wire/Messages.ts"
import { Member, type Message } from "../wire/Packets.ts"

const usesRoles = (settings: ChannelSettings): boolean =>
  rights.some((right) => (settings[right]?.roles ?? []).length > 0)

/** The roles; none for a person who has left. */
export const rolesOf = (settings: ChannelSettings, { author, channel_id, guild_id, member }: Message) =>
  Effect.gen(function* () {
    if (member !== undefined) return member.roles
    if (!usesRoles(settings)) return []
    const discord = yield* Discord
    const guild = guild_id ?? (yield* Messages.channel(discord, channel_id)).guild_id
    if (guild === undefined) return []
    return yield* discord.request({ method: "GET", route: `/guilds/${guild}/members/${author.id}` }, Member).pipe(
      Effect.map(({ roles }) => roles),
      Effect.catchIf(
        ({ status }) => status === 404,
        () => Effect.succeed([])
      )
    )
  })
