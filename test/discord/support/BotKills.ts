/**
 * Method: a bot process serves members who ask in threads, while requests lose their replies, fail or come late, and events are
 * delivered twice. It is killed with `kill -9` at a random instant, repeatedly; members also write while it is away. In one
 * variant the server's clock moves beyond the nonce window between a kill and the restart. After the last restart the faults
 * end, and everything must be published once, and admitted once (`Published.ts`).
 */
import { Effect, Option, Random, Schedule } from "effect"
import * as BotProcess from "./BotProcess.ts"
import type { Fault, Rates } from "./Faults.ts"
import * as Guild from "./Guild.ts"
import * as Loopback from "./Loopback.ts"
import * as People from "./People.ts"
import * as Published from "./Published.ts"
import * as Talker from "./Talker.ts"
import { visible } from "./World.ts"

export interface Plan {
  readonly kills: number
  readonly seed: number
  /** By how much the server's clock moves between a kill and the restart. */
  readonly shift?: number
  readonly kinds?: ReadonlyArray<Talker.Kind>
}

const rates: Rates = {
  lost: 60,
  failedAfter: 30,
  refused: 30,
  failed: 30,
  late: 100,
  limited: 3,
  redelivered: 100,
  rewound: 500
}

const firstThreads = 4

/** What members asked, by thread and in order. */
class Asked {
  readonly byThread = new Map<string, Array<number>>()
  #last = 0

  /** Asks the next question; `say` returns the id of its thread. */
  ask(kind: Talker.Kind, say: (text: string) => string): void {
    this.#last += 1
    const thread = say(Talker.promptOf(this.#last, kind))
    this.byThread.set(thread, [...(this.byThread.get(thread) ?? []), this.#last])
  }
}

const anyOf = <A>(all: ReadonlyArray<A>) =>
  Effect.map(Random.nextIntBetween(0, all.length), (index) => all[index] ?? Option.getOrThrow(Option.none()))

const anyPath = /^\/api\/v10\/(?:channels|interactions|webhooks)/

/** Waits until a request arrives whose reply the bot will not see: it is killed then, and does not know what it did. */
const withheld =
  ({ discord, world }: Guild.Guild) =>
  (method: string, path: RegExp, fault: Fault) =>
    Effect.gen(function* () {
      const before = world.asked.length
      const one = { method, path, fault }
      world.faults.scripted.push(one)
      yield* Effect.raceFirst(
        discord.when("the request without a reply", () =>
          world.asked.slice(before).some((asked) => asked.fault === fault.kind && path.test(asked.path))
        ),
        Effect.sleep("4 seconds")
      )
      const index = world.faults.scripted.indexOf(one)
      if (index >= 0) world.faults.scripted.splice(index, 1)
    })

/** The menu of a question. */
const choose = "choose:0"

const create = /\/messages$/

/**
 * The instant of a kill: at any time, while the reply to any request is withheld, or to the creation of a message; or before a
 * creation that Discord executes after the next bot has started. The last one only within the nonce window, which permits it.
 */
const drawnInstant = (guild: Guild.Guild, isShifted: boolean) => {
  const { discord, world } = guild
  const unanswered = withheld(guild)
  const starting = Effect.flatMap(Random.nextIntBetween(0, 1_000), (millis) => Effect.sleep(millis))
  const anyTime = Effect.gen(function* () {
    const requests = world.asked.length + (yield* Random.nextIntBetween(1, 60))
    yield* Effect.raceFirst(
      discord.when("some requests of the bot", () => world.asked.length >= requests),
      Effect.sleep(yield* Random.nextIntBetween(1_000, 3_000))
    )
    yield* Effect.sleep(yield* Random.nextIntBetween(0, 60))
  })
  const anyRequest = Effect.flatMap(anyOf(["POST", "PATCH", "PUT"]), (method) =>
    unanswered(method, anyPath, { kind: "silent" })
  )
  const creation = unanswered("POST", create, { kind: "silent" })
  const lateCreation = unanswered("POST", create, { kind: "late", millis: 2_000 })
  return Effect.flatten(anyOf([starting, anyTime, anyTime, anyRequest, creation, isShifted ? creation : lateCreation]))
}

/** Members and their acts, drawn at random. */
const makeMembers = ({ ann, discord, world, ...guild }: Guild.Guild, kinds: ReadonlyArray<Talker.Kind>) => {
  const asked = new Asked()
  /** Mentions the bot in the channel: a thread opens, with the id of the message. */
  const mention = Effect.map(anyOf(kinds), (kind) =>
    asked.ask(kind, (text) => People.say(world, ann, discord.general, `<@${world.bot.id}> ${text}`).id)
  )
  /** Writes in a thread. */
  const write = Effect.gen(function* () {
    const threads = Guild.threads({ ann, discord, world, ...guild })
    if (threads.length === 0) return
    const [thread, kind] = [yield* anyOf(threads), yield* anyOf(kinds)]
    asked.ask(kind, (text) => People.say(world, ann, thread, text).channelId)
  })
  /** Answers questions that are open, by their menus; now and then twice. */
  const answer = Effect.sync(() => {
    for (const thread of Guild.threads({ ann, discord, world, ...guild }))
      for (const message of visible(thread))
        if (People.controls(message).includes(choose)) People.press(world, ann, thread, message, choose, ["0"])
  })
  const act = Effect.flatMap(Random.nextIntBetween(0, 20), (point) => (point === 0 ? mention : write))
  return { asked: asked.byThread, mention, act, answer }
}

export const survives = ({ kills, kinds = ["short", "short", "long", "reads", "asks"], seed, shift = 0 }: Plan) =>
  Effect.gen(function* () {
    console.log(`seed ${seed}: ${kills} kills`)
    const guild = yield* Guild.make({
      seed,
      settings: { limitOf: Loopback.fasterLimits(20), global: { limit: 1_000, window: 1_000 } }
    })
    const { discord, order, world } = guild
    const script = yield* BotProcess.program
    const { act, answer, asked, mention } = makeMembers(guild, kinds)
    yield* Effect.forkScoped(Effect.schedule(answer, Schedule.spaced("250 millis")))
    const everythingShown = discord.when(
      () => `answers to be shown: ${Published.missing(guild, asked).join("; ")}`,
      () => Published.missing(guild, asked).length === 0
    )
    const instant = drawnInstant(guild, shift > 0)
    const acts = Effect.flatMap(Random.nextIntBetween(0, 2), (count) => Effect.replicateEffect(act, count))

    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* BotProcess.start(script, order)
        yield* discord.when("the bot to read the channel", () =>
          world.asked.some(({ path, status }) => path.endsWith(`/channels/${discord.general.id}`) && status === 200)
        )
        yield* Effect.replicateEffect(mention, firstThreads)
        yield* everythingShown
      })
    )
    world.faults.rates = rates
    for (let count = 0; count < kills; count += 1) {
      yield* acts
      yield* Effect.scoped(
        Effect.gen(function* () {
          const bot = yield* BotProcess.start(script, order)
          yield* acts
          yield* instant
          if (yield* Random.nextBoolean) discord.gateway.drop(4_000)
          yield* acts
          yield* bot.kill
        })
      )
      // What the bot sent before its end arrives within moments, not after minutes.
      yield* discord.when("the connections of the bot to close", () => world.connections.size === 0)
      if (shift > 0) discord.moveClock(shift)
    }
    world.faults.rates = {}
    yield* Effect.scoped(
      Effect.gen(function* () {
        const bot = yield* BotProcess.start(script, order)
        yield* everythingShown
        yield* bot.stop
      })
    )
    yield* Effect.scoped(
      Effect.gen(function* () {
        const bot = yield* BotProcess.start(script, order)
        yield* Effect.replicateEffect(act, 3)
        yield* everythingShown
        yield* bot.stop
      })
    )
    yield* Published.check(guild, asked)
  }).pipe(Effect.withRandom(Random.make(seed)), Effect.scoped)
