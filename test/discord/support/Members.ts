/**
 * What members do while the bot is killed, drawn at random: they mention it, write, edit, delete, react, use commands, and press
 * menus and buttons, now and then twice. Each text has a number of its own, for `Published.ts`.
 */
import { Effect, Option, Random } from "effect"
import * as Guild from "./Guild.ts"
import * as People from "./People.ts"
import * as Talker from "./Talker.ts"
import type { Commanded } from "./Published.ts"
import { now, visible } from "./World.ts"

export const anyOf = <A>(all: ReadonlyArray<A>) =>
  Effect.map(Random.nextIntBetween(0, all.length), (index) => all[index] ?? Option.getOrThrow(Option.none()))

/** Messages that are edited and deleted are mostly among so many last ones: their prompts may wait. */
const recent = 8

export const make = (guild: Guild.Guild, kinds: ReadonlyArray<Talker.Kind>) => {
  const { ann, discord, world } = guild
  const commanded: Array<Commanded> = []
  let last = 0
  let isAnswering = true
  const next = Effect.map(anyOf(kinds), (kind) => {
    last += 1
    return { number: last, text: Talker.promptOf(last, kind) }
  })

  /** Mentions the bot in the channel: a thread opens, with the id of the message. */
  const mention = Effect.map(
    next,
    ({ text }) => void People.say(world, ann, discord.general, `<@${world.bot.id}> ${text}`)
  )
  const inThread = <A>(act: (thread: ReturnType<typeof Guild.threads>[number]) => Effect.Effect<A>) =>
    Effect.suspend(() => {
      const threads = Guild.threads(guild)
      return threads.length === 0 ? Effect.void : Effect.asVoid(Effect.flatMap(anyOf(threads), act))
    })
  const write = inThread((thread) => Effect.map(next, ({ text }) => void People.say(world, ann, thread, text)))
  const queue = inThread((thread) =>
    Effect.map(next, ({ number, text }) => {
      commanded.push({ number, interaction: People.slash(world, ann, thread, "queue", { text }) })
    })
  )
  const ask = Effect.map(next, ({ number, text }) => {
    commanded.push({ number, interaction: People.slash(world, ann, discord.general, "ask", { text }) })
  })
  const react = inThread((thread) =>
    Effect.gen(function* () {
      const messages = visible(thread)
      if (messages.length > 0) People.react(world, ann, yield* anyOf(messages), "👍")
    })
  )

  const anySaid = Effect.gen(function* () {
    const all = [...world.channels.values()]
      .flatMap((channel) => visible(channel).map((message) => ({ channel, message })))
      .filter(({ message }) => message.author.id === ann.id)
      .toSorted((one, other) => (BigInt(one.message.id) < BigInt(other.message.id) ? -1 : 1))
    const some = (yield* Random.nextIntBetween(0, 10)) === 0 ? all : all.slice(-recent)
    return some.length === 0 ? undefined : yield* anyOf(some)
  })
  const edit = Effect.gen(function* () {
    const said = yield* anySaid
    // Two edits of one time cannot be told apart.
    if (said === undefined || said.message.editedAt === now(world)) return
    const { text } = yield* next
    const { channel, message } = said
    People.edit(world, channel, message, channel === discord.general ? `<@${world.bot.id}> ${text}` : text)
  })
  const remove = Effect.map(anySaid, (said) => said && People.remove(world, said.channel, said.message))

  /** Presses some of the menus and buttons that are open: runs wait meanwhile, and prompts behind them. */
  const answer = Effect.gen(function* () {
    if (!isAnswering) return
    for (const thread of Guild.threads(guild))
      for (const message of visible(thread)) {
        const [control] = People.controls(message).filter((name) => /^(?:choose:0|allow:once)\|/.test(name))
        if (control === undefined || (yield* Random.nextIntBetween(0, 3)) > 0) continue
        const values = control.startsWith("choose") ? ["0"] : undefined
        const times = yield* Random.nextIntBetween(1, 3)
        for (let time = 0; time < times; time += 1) People.press(world, ann, thread, message, control, values)
      }
  })
  /** So many of a hundred acts; the rest writes. */
  const shares: ReadonlyArray<readonly [number, Effect.Effect<unknown>]> = [
    [5, mention],
    [2, ask],
    [5, react],
    [8, queue],
    [15, edit],
    [7, remove]
  ]
  const act = Effect.gen(function* () {
    let point = yield* Random.nextIntBetween(0, 100)
    for (const [share, one] of shares) {
      if (point < share) return yield* one
      point -= share
    }
    return yield* write
  })
  return {
    commanded,
    mention,
    act,
    answer,
    /** While nobody answers, prompts wait. */
    setAnswering: (answering: boolean) => Effect.sync(() => void (isAnswering = answering))
  }
}
