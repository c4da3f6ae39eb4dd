/**
 * Decides who may use a command or press a button, and lets it be done. Each interaction runs on its own: `/stop` does not
 * wait behind messages. Spec: DI-40..DI-45, DI-51 in specs/discord.md.
 */
import { Effect, FiberSet, type Scope } from "effect"
import type { Inbox } from "../inbox/Inbox.ts"
import type { Services } from "../inbox/Admission.ts"
import { may } from "../trust/Rights.ts"
import type { Settings } from "../trust/Settings.ts"
import { Discord } from "../wire/Discord.ts"
import type { Interaction } from "../wire/Packets.ts"
import * as Answering from "./Answering.ts"
import { commands, registered } from "./Commands.ts"
import * as Presses from "./Presses.ts"
import * as Verbs from "./Verbs.ts"

/** Interactions at one time; more wait. */
const mostAtOnce = 32

const notAllowed = "You may not do this here."

export interface Options {
  readonly settings: Settings
  readonly inbox: Inbox
  readonly secrets: ReadonlyArray<string>
  /** A decision and the look at what is decided do not overlap. */
  readonly decisions: Effect.Semaphore
}

/** Tells Discord the commands. */
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
  const placeOf = (channel: string) =>
    Effect.gen(function* () {
      const root = settings.channels[channel]
      if (root !== undefined) return { settings: root, thread: undefined }
      const thread = yield* inbox.thread(channel)
      return thread && { settings: thread.settings, thread }
    })

  const handle = (interaction: Interaction) =>
    Effect.gen(function* () {
      const { channel_id: channel, data, member, type } = interaction
      if (channel === undefined || member === undefined) return
      const person = { id: member.user.id, roles: member.roles }
      const place = yield* placeOf(channel)
      if (place === undefined) return yield* Answering.refuse(discord, interaction, "I do not work in this channel.")
      if (type !== 2) {
        const press = yield* Presses.source(interaction)
        if (press === undefined) return yield* Answering.refuse(discord, interaction, "This button no longer works.")
        if (!may(place.settings, person, Presses.rightOf(press.target))) {
          return yield* Answering.refuse(discord, interaction, notAllowed)
        }
        return yield* Presses.press(interaction, press, person.id, { secrets, decisions })
      }
      const command = commands.find(({ name }) => name === data?.name)
      if (command === undefined) return yield* Answering.refuse(discord, interaction, "There is no such command.")
      if (!may(place.settings, person, command.right)) {
        return yield* Answering.refuse(discord, interaction, notAllowed)
      }
      const { thread } = place
      const inRoot = (): Verbs.Work | undefined => {
        if (command.name === "ask") return Verbs.ask(channel, interaction)
        return command.name === "status" ? Verbs.channelStatus(channel) : undefined
      }
      const work = thread === undefined ? inRoot() : Verbs.inThread(command.name, thread, interaction, secrets)
      if (work === undefined) {
        const where = command.place === "thread" ? "Use it in a thread of mine." : "Use it in a channel."
        return yield* Answering.refuse(discord, interaction, where)
      }
      yield* Answering.begin(discord, interaction, command.name === "queue" ? "everyone" : "person")
      const content = yield* Effect.catchAll(work, (error) =>
        Effect.as(Effect.logWarning(error.message), `⚠️ ${error.message}`)
      )
      yield* Answering.complete(discord, interaction, { content })
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
