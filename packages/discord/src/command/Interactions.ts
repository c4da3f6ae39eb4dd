/**
 * Decides who may use a command or press a button, and lets it be done. Each interaction runs on its own: `/stop` does not
 * wait behind messages. Spec: DI-40..DI-45, DI-51 in specs/discord.md.
 */
import { ApplicationCommandOptionType, InteractionContextType } from "discord.js"
import { Effect, FiberSet, type Scope } from "effect"
import { may, type Right, type Settings } from "../domain/Settings.ts"
import type { Services } from "../inbox/Admission.ts"
import { type Inbox, threadOf } from "../inbox/Inbox.ts"
import { Discord } from "../wire/Discord.ts"
import type { Interaction } from "../wire/Packets.ts"
import * as Permissions from "./Permissions.ts"
import * as SlashCommands from "./SlashCommands.ts"

// The slash commands as Discord knows them, and who may use them.

interface Option {
  readonly name: string
  readonly description: string
  readonly type: ApplicationCommandOptionType
  readonly required?: boolean
  readonly min_value?: number
}

export interface Command {
  readonly name: string
  readonly description: string
  readonly options?: ReadonlyArray<Option>
  /** What a person must be allowed to do. */
  readonly right: Right
  /** Where it works: in channels, or in threads, which are sessions. */
  readonly place: "channel" | "thread" | "both"
}

const text = (description: string): Option => ({
  name: "text",
  description,
  type: ApplicationCommandOptionType.String,
  required: true
})

const commands: ReadonlyArray<Command> = [
  {
    name: "ask",
    description: "Open a thread with a question",
    options: [text("The question")],
    right: "ask",
    place: "channel"
  },
  {
    name: "queue",
    description: "Ask when the running work has ended",
    options: [text("The question")],
    right: "ask",
    place: "thread"
  },
  { name: "stop", description: "Stop the running work", right: "ask", place: "thread" },
  { name: "status", description: "Show what runs, what waits, and what went wrong", right: "ask", place: "both" },
  {
    name: "model",
    description: "Show the model, or use another one",
    options: [{ name: "model", description: "provider/model", type: ApplicationCommandOptionType.String }],
    right: "administer",
    place: "thread"
  },
  {
    name: "budget",
    description: "Show or set what this session may spend",
    options: [
      { name: "cost", description: "US dollars", type: ApplicationCommandOptionType.Number, min_value: 0 },
      { name: "tokens", description: "Tokens", type: ApplicationCommandOptionType.Integer, min_value: 0 }
    ],
    right: "administer",
    place: "thread"
  },
  { name: "summary", description: "Show what this session has done", right: "ask", place: "thread" },
  { name: "fork", description: "Go on in a new thread from here", right: "ask", place: "thread" }
]

const registered = commands.map(({ description, name, options = [] }) => ({
  name,
  description,
  options,
  type: 1,
  contexts: [InteractionContextType.Guild]
}))

const mostAtOnce = 32

const notAllowed = "You may not do this here."

export interface Options {
  readonly settings: Settings
  readonly inbox: Inbox
  readonly secrets: ReadonlyArray<string>
  /** A decision and the look at what is decided do not overlap. */
  readonly decisions: Effect.Semaphore
}

export const register = (application: string) =>
  Effect.flatMap(Discord, (discord) =>
    discord.send({ method: "PUT", route: `/applications/${application}/commands`, body: registered })
  )

/** Handles interactions until the scope closes. */
export const make = Effect.fn("Interactions.make")(function* ({
  decisions,
  inbox,
  secrets,
  settings
}: Options): Effect.fn.Return<(interaction: Interaction) => Effect.Effect<void>, never, Services | Scope.Scope> {
  const discord = yield* Discord
  const fibers = yield* FiberSet.make()
  const fork = yield* FiberSet.runtime(fibers)<Services>()
  const turns = yield* Effect.makeSemaphore(mostAtOnce)

  /** The settings that hold where the interaction happened, and its thread if it is one. */
  const placeOf = Effect.fnUntraced(function* (channel: string) {
    const root = settings.channels[channel]
    if (root !== undefined) return { settings: root, thread: undefined }
    const thread = yield* threadOf(inbox, channel)
    return thread && { settings: thread.settings, thread }
  })

  const handle = Effect.fnUntraced(function* (interaction: Interaction) {
    const { channel_id: channel, data, member, type } = interaction
    if (channel === undefined || member === undefined) return
    const refuse = (why: string) => Permissions.refuseAnswer(discord, interaction, why)
    const person = { id: member.user.id, roles: member.roles }
    const place = yield* placeOf(channel)
    if (place === undefined) return yield* refuse("I do not work in this channel.")
    if (type !== 2) {
      const press = yield* Permissions.source(interaction)
      if (press === undefined) return yield* refuse("This button no longer works.")
      if (!may(place.settings, person, Permissions.rightOf(press.target))) return yield* refuse(notAllowed)
      return yield* Permissions.press(interaction, press, person.id, { secrets, decisions })
    }
    const command = commands.find(({ name }) => name === data?.name)
    if (command === undefined) return yield* refuse("There is no such command.")
    if (!may(place.settings, person, command.right)) return yield* refuse(notAllowed)
    const { thread } = place
    const inRoot = (): SlashCommands.Work | undefined => {
      if (command.name === "ask") return SlashCommands.ask(channel, interaction)
      return command.name === "status" ? SlashCommands.channelStatus(channel) : undefined
    }
    const work = thread === undefined ? inRoot() : SlashCommands.inThread(command.name, thread, interaction, secrets)
    if (work === undefined) {
      return yield* refuse(command.place === "thread" ? "Use it in a thread of mine." : "Use it in a channel.")
    }
    yield* Permissions.beginAnswer(discord, interaction, command.name === "queue" ? "everyone" : "person")
    const content = yield* Effect.catchAll(work, (error) =>
      Effect.as(Effect.logWarning(error.message), `⚠️ ${error.message}`)
    )
    yield* Permissions.completeAnswer(discord, interaction, { content })
  })

  return (interaction) =>
    Effect.sync(() => {
      fork(
        handle(interaction).pipe(
          turns.withPermits(1),
          Effect.catchAll((error) => Effect.logWarning(error.message)),
          Effect.annotateLogs({ interaction: interaction.id })
        )
      )
    })
})
