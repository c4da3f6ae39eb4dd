/** What members do: they join, write, edit, delete, react, use commands, and press buttons. Each act is announced as Discord does. */
import { PermissionFlagsBits } from "discord.js"
import { randomUUID } from "node:crypto"
import type { MessageBody } from "./Bodies.ts"
import { dispatch, dispatchMessage } from "./Dispatching.ts"
import * as Messages from "./Messages.ts"
import { permissionsIn } from "./Permissions.ts"
import * as Threads from "./Threads.ts"
import * as Wire from "./Wire.ts"
import { type Channel, type Interaction, type Json, type Message, nextId, now, type User, type World } from "./World.ts"

/** A new member with these roles. */
export const join = (world: World, username: string, roles: ReadonlyArray<string> = []): User => {
  const user: User = { id: nextId(world), username, bot: false }
  world.members.set(user.id, { user, roles })
  return user
}

/** A new role; without permissions it only names its members. */
export const makeRole = (world: World, name: string, permissions = 0n): string => {
  const id = nextId(world)
  world.roles.set(id, { id, name, permissions })
  return id
}

/** A new text channel. Sessions learn it when they identify. */
export const makeChannel = (world: World, name: string): Channel => {
  const channel: Channel = { id: nextId(world), name, overwrites: [], messages: [], deleted: false }
  world.channels.set(channel.id, channel)
  return channel
}

/** Denies or allows the bot permissions in a channel. */
export const overwrite = (world: World, channel: Channel, change: { allow?: bigint; deny?: bigint }): void => {
  const { allow = 0n, deny = 0n } = change
  channel.overwrites = [
    ...channel.overwrites.filter(({ id }) => id !== world.bot.id),
    { id: world.bot.id, type: 1, allow, deny }
  ]
  dispatch(world, "CHANNEL_UPDATE", 1, Wire.channelOf(world, channel))
}

/** Writes a message. */
export const say = (
  world: World,
  author: User,
  channel: Channel,
  content: string,
  more: { readonly files?: ReadonlyArray<Messages.File>; readonly body?: MessageBody } = {}
): Message =>
  Messages.post(
    world,
    channel,
    Messages.draft(world, channel, { author, body: { ...more.body, content }, files: more.files ?? [] })
  )

/** Edits a message. */
export const edit = (world: World, channel: Channel, message: Message, content: string): void => {
  Messages.change(world, message, { content }, [])
  dispatchMessage(world, "MESSAGE_UPDATE", channel, message)
}

export const remove = Messages.remove

/** Opens a thread from a message. */
export const openThread = (world: World, user: User, channel: Channel, message: Message, name: string): Channel => {
  message.threadId = message.id
  return Threads.open(world, channel, { id: message.id, name, ownerId: user.id })
}

/** Archives a thread, and locks it if asked. */
export const archive = (world: World, thread: Channel, locked = false): void =>
  Threads.setArchived(world, thread, true, locked)

/** Deletes a channel or a thread. */
export const removeChannel = Threads.destroy

export const react = (world: World, user: User, message: Message, emoji: string): void =>
  Messages.setReaction(world, message, user.id, emoji, true)

/** Who may use commands and buttons in a channel. */
const mayInteract = (world: World, channel: Channel, user: User) => {
  const needed = PermissionFlagsBits.ViewChannel | PermissionFlagsBits.UseApplicationCommands
  return (permissionsIn(world, channel, user.id) & needed) === needed
}

const interact = (
  world: World,
  user: User,
  channel: Channel,
  { data, source, type }: { readonly type: number; readonly data: Json; readonly source?: Message | undefined }
): Interaction => {
  const interaction: Interaction = {
    id: nextId(world),
    token: randomUUID(),
    createdAt: now(world),
    channelId: channel.id,
    userId: user.id,
    source,
    answer: "none",
    ephemeral: false,
    original: undefined,
    followUps: []
  }
  world.interactions.set(interaction.token, interaction)
  if (mayInteract(world, channel, user))
    dispatch(world, "INTERACTION_CREATE", 0, Wire.interactionOf(world, interaction, channel, type, data))
  return interaction
}

const optionOf = ([name, value]: readonly [string, string | number | boolean]) => ({
  name,
  value,
  type: typeof value === "string" ? 3 : typeof value === "number" ? 4 : 5
})

/** Uses a slash command. */
export const slash = (
  world: World,
  user: User,
  channel: Channel,
  name: string,
  options: Readonly<Record<string, string | number | boolean>> = {}
): Interaction => {
  const id = String(world.commands.find((command) => command["name"] === name)?.["id"] ?? "1")
  const data = { id, name, type: 1, options: Object.entries(options).map(optionOf) }
  return interact(world, user, channel, { type: 2, data })
}

/** Presses a button of a message; with values, chooses from its menu. */
export const press = (
  world: World,
  user: User,
  channel: Channel,
  source: Message,
  customId: string,
  values?: ReadonlyArray<string>
): Interaction => {
  const data =
    values === undefined
      ? { custom_id: customId, component_type: 2 }
      : { custom_id: customId, component_type: 3, values }
  return interact(world, user, channel, { type: 3, data, source })
}

/** The ids of the buttons and menus of a message that are enabled. */
export const controls = (message: Message): ReadonlyArray<string> =>
  message.components.flatMap((row) => {
    const inner = row["components"]
    if (!Array.isArray(inner)) return []
    return inner.flatMap((one: Json) =>
      typeof one["custom_id"] === "string" && one["disabled"] !== true ? [one["custom_id"]] : []
    )
  })

/** Submits the form that answered an interaction. */
export const submit = (
  world: World,
  user: User,
  channel: Channel,
  customId: string,
  fields: Readonly<Record<string, string>>
): Interaction => {
  const rows = Object.entries(fields).map(([id, value]) => ({
    type: 1,
    components: [{ type: 4, custom_id: id, value }]
  }))
  return interact(world, user, channel, { type: 5, data: { custom_id: customId, components: rows } })
}
