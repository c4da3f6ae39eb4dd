/** Computes what a member may do in a channel, as Discord does: roles, then the channel's overwrites. */
import { PermissionFlagsBits } from "discord.js"
import { Effect } from "effect"
import * as Refusal from "./Refusal.ts"
import { type Channel, everyone, type World } from "./World.ts"

/** A thread has the overwrites of its parent. */
const overwritesOf = (world: World, channel: Channel) =>
  channel.thread === undefined ? channel.overwrites : (world.channels.get(channel.thread.parentId)?.overwrites ?? [])

/** The permissions of a member in the guild, without those of a channel. */
const guildPermissions = (world: World, userId: string): bigint =>
  [everyone, ...(world.members.get(userId)?.roles ?? [])].reduce(
    (sum, role) => sum | (world.roles.get(role)?.permissions ?? 0n),
    0n
  )

export const permissionsIn = (world: World, channel: Channel, userId: string): bigint => {
  const base = guildPermissions(world, userId)
  if ((base & PermissionFlagsBits.Administrator) !== 0n) return (1n << 53n) - 1n
  const roles = world.members.get(userId)?.roles ?? []
  const overwrites = overwritesOf(world, channel)
  const steps = [
    overwrites.filter(({ id }) => id === everyone),
    overwrites.filter(({ id, type }) => type === 0 && roles.includes(id)),
    overwrites.filter(({ id, type }) => type === 1 && id === userId)
  ]
  return steps.reduce((sum, step) => {
    const denied = step.reduce((all, { deny }) => all | deny, 0n)
    const allowed = step.reduce((all, { allow }) => all | allow, 0n)
    return (sum & ~denied) | allowed
  }, base)
}

/** Refuses what the bot may not do: 50001 if it does not see the channel, else 50013. */
export const requireBot = (world: World, channel: Channel, needed: bigint): Effect.Effect<void, Refusal.Refusal> => {
  const has = permissionsIn(world, channel, world.bot.id)
  if ((has & PermissionFlagsBits.ViewChannel) === 0n) return Refusal.missingAccess()
  return (has & needed) === needed ? Effect.void : Refusal.missingPermissions()
}

/** The channel, if it exists and the bot sees it. */
export const channelOf = (world: World, id: string): Effect.Effect<Channel, Refusal.Refusal> => {
  const channel = world.channels.get(id)
  if (channel === undefined || channel.deleted) return Refusal.unknownChannel()
  return Effect.as(requireBot(world, channel, 0n), channel)
}
