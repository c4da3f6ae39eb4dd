/**
 * Interactions and their tokens. An interaction must be answered once within 3 seconds, and its token serves the original reply
 * and follow-ups for 15 minutes, by the server's clock. Ephemeral replies are not in the channel.
 */
import { MessageFlags } from "discord.js"
import { Effect } from "effect"
import * as Bodies from "./Bodies.ts"
import { dispatchMessage } from "./Dispatching.ts"
import * as Messages from "./Messages.ts"
import * as Refusal from "./Refusal.ts"
import { type Channel, type Interaction, type Message, now, type World } from "./World.ts"

const timeToAnswer = 3_000
const timeOfToken = 15 * 60_000

const isEphemeral = (body: { readonly flags?: number | null | undefined }) =>
  ((body.flags ?? 0) & MessageFlags.Ephemeral) !== 0

const channelOf = (world: World, { channelId }: Interaction): Effect.Effect<Channel, Refusal.Refusal> => {
  const channel = world.channels.get(channelId)
  return channel === undefined || channel.deleted ? Refusal.unknownChannel() : Effect.succeed(channel)
}

const place = (world: World, channel: Channel, message: Message): Message =>
  (message.flags & MessageFlags.Ephemeral) === 0 ? Messages.post(world, channel, message) : message

/** Makes the original reply. */
const reply = Effect.fnUntraced(function* (
  world: World,
  interaction: Interaction,
  body: Bodies.MessageBody,
  files: ReadonlyArray<Messages.File>
) {
  const channel = yield* channelOf(world, interaction)
  yield* Messages.checkContent(body, files)
  const flags = (body.flags ?? 0) | (interaction.ephemeral ? MessageFlags.Ephemeral : 0)
  const type = interaction.source === undefined ? 20 : 19
  const made = Messages.draft(world, channel, {
    author: world.bot,
    body: { ...body, flags },
    files,
    type,
    answerTo: interaction
  })
  interaction.original = place(world, channel, made)
  interaction.answer = "answered"
  return interaction.original
})

const update = (
  world: World,
  channel: Channel,
  message: Message,
  body: Bodies.MessageBody,
  files: ReadonlyArray<Messages.File>
) => {
  Messages.change(world, message, body, files)
  if ((message.flags & MessageFlags.Ephemeral) === 0) dispatchMessage(world, "MESSAGE_UPDATE", channel, message)
  return message
}

/** Answers an interaction; the message that the answer made or changed, if any. */
export const callback = Effect.fnUntraced(function* (
  world: World,
  id: string,
  token: string,
  { data, type }: typeof Bodies.CallbackBody.Type,
  files: ReadonlyArray<Messages.File>
) {
  const interaction = world.interactions.get(token)
  if (interaction?.id !== id) return yield* Refusal.unknownInteraction()
  if (interaction.answer !== "none") return yield* Refusal.alreadyAcknowledged()
  if (now(world) - interaction.createdAt > timeToAnswer) return yield* Refusal.unknownInteraction()
  if (type === 8 || type === 9) {
    interaction.answer = "modal"
    return undefined
  }
  const body = yield* Bodies.decode(Bodies.MessageBody)(data)
  interaction.ephemeral = isEphemeral(body)
  if (type === 4) return yield* reply(world, interaction, body, files)
  if (type === 5) {
    interaction.answer = "deferred"
    return undefined
  }
  if (interaction.source === undefined) return yield* Refusal.invalidForm("type", "There is no message to update.")
  interaction.ephemeral = (interaction.source.flags & MessageFlags.Ephemeral) !== 0
  interaction.original = interaction.source
  interaction.answer = "answered"
  if (type === 6) return interaction.source
  return update(world, yield* channelOf(world, interaction), interaction.source, body, files)
})

/** The interaction of a token that still serves. */
const live = (world: World, token: string): Effect.Effect<Interaction, Refusal.Refusal> => {
  const interaction = world.interactions.get(token)
  if (interaction === undefined || interaction.answer === "none") return Refusal.unknownWebhook()
  return now(world) - interaction.createdAt > timeOfToken ? Refusal.expiredToken() : Effect.succeed(interaction)
}

/** The message that `id` names: `@original` or a follow-up. */
const found = Effect.fnUntraced(function* (world: World, token: string, id: string) {
  const interaction = yield* live(world, token)
  const message =
    id === "@original" ? interaction.original : interaction.followUps.find((followUp) => followUp.id === id)
  if (message === undefined || message.deleted) return yield* Refusal.unknownMessage()
  return message
})

export const get = found

export const edit = Effect.fnUntraced(function* (
  world: World,
  token: string,
  id: string,
  body: Bodies.MessageBody,
  files: ReadonlyArray<Messages.File>
) {
  const interaction = yield* live(world, token)
  if (id === "@original" && interaction.answer === "deferred") return yield* reply(world, interaction, body, files)
  const message = yield* found(world, token, id)
  if (body.content != null) yield* Messages.checkContent(body, files)
  return update(world, yield* channelOf(world, interaction), message, body, files)
})

export const remove = Effect.fnUntraced(function* (world: World, token: string, id: string) {
  const message = yield* found(world, token, id)
  Messages.remove(world, yield* channelOf(world, yield* live(world, token)), message)
})

/** A follow-up. The first one after a deferred answer takes the place of the original reply. */
export const followUp = Effect.fnUntraced(function* (
  world: World,
  token: string,
  body: Bodies.MessageBody,
  files: ReadonlyArray<Messages.File>
) {
  const interaction = yield* live(world, token)
  if (interaction.answer === "deferred") return yield* reply(world, interaction, body, files)
  yield* Messages.checkContent(body, files)
  const channel = yield* channelOf(world, interaction)
  const message = place(
    world,
    channel,
    Messages.draft(world, channel, { author: world.bot, body, files, type: 20, answerTo: interaction })
  )
  interaction.followUps.push(message)
  return message
})
