/**
 * Method: a bot process serves members (`Members.ts`), while requests lose their replies, fail or come late, and events are
 * delivered twice, with chances that the seed gives. It is killed with `kill -9` at a random instant, repeatedly; members also
 * act while it is away. In one variant the server's clock moves beyond the nonce window between a kill and the restart. Now and
 * then, and after the last restart, the faults end: then every waiting prompt must come to say what its message says, and in the
 * end everything must be published once, and admitted once (`Published.ts`).
 */
import { Effect, Random, Schedule } from "effect"
import * as BotProcess from "./BotProcess.ts"
import type { Fault, Rates } from "./Faults.ts"
import * as Guild from "./Guild.ts"
import * as Loopback from "./Loopback.ts"
import * as Members from "./Members.ts"
import * as Published from "./Published.ts"
import * as Talker from "./Talker.ts"

export interface Plan {
  readonly kills: number
  readonly seed: number
  /** By how much the server's clock moves between a kill and the restart. */
  readonly shift?: number
  readonly kinds?: ReadonlyArray<Talker.Kind>
}

/** Chances that a run draws. */
const drawnRates = Effect.gen(function* () {
  const upTo = (most: number) => Random.nextIntBetween(0, most + 1)
  const rates: Rates = {
    lost: yield* upTo(120),
    failedAfter: yield* upTo(60),
    refused: yield* upTo(60),
    failed: yield* upTo(60),
    late: yield* upTo(200),
    limited: yield* upTo(6),
    redelivered: yield* upTo(300),
    rewound: yield* upTo(1_000)
  }
  return rates
})

const firstThreads = 4

/** So many kills come between two looks at the prompts that wait. */
const killsBetween = 25

const anyPath = /^\/api\/v10\/(?:channels|interactions|webhooks)/

/** Waits until the bot is at the gateway, for a while: a slow machine takes long to start it. */
const connected = ({ discord }: Guild.Guild) =>
  Effect.raceFirst(
    discord.when("the bot at the gateway", ({ sessions }) => sessions.size > 0),
    // A bot that cannot connect is killed all the same.
    Effect.sleep("20 seconds")
  )

/** Waits until a request arrives whose reply the bot will not see: it is killed then, and does not know what it did. */
const withheld = (guild: Guild.Guild) => (method: string, path: RegExp, fault: Fault) =>
  Effect.gen(function* () {
    const { discord, world } = guild
    const before = world.asked.length
    const one = { method, path, fault }
    world.faults.scripted.push(one)
    yield* Effect.raceFirst(
      discord.when("the request without a reply", () =>
        world.asked.slice(before).some((asked) => asked.fault === fault.kind && path.test(asked.path))
      ),
      // The fault may never happen: the bot may have nothing to send.
      Effect.zipRight(connected(guild), Effect.sleep("4 seconds"))
    )
    const index = world.faults.scripted.indexOf(one)
    if (index >= 0) world.faults.scripted.splice(index, 1)
  })

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
    yield* connected(guild)
    const requests = world.asked.length + (yield* Random.nextIntBetween(1, 60))
    yield* Effect.raceFirst(
      discord.when("some requests of the bot", () => world.asked.length >= requests),
      Effect.sleep(yield* Random.nextIntBetween(1_000, 3_000))
    )
    yield* Effect.sleep(yield* Random.nextIntBetween(0, 60))
  })
  const anyRequest = Effect.flatMap(Members.anyOf(["POST", "PATCH", "PUT"]), (method) =>
    unanswered(method, anyPath, { kind: "silent" })
  )
  const creation = unanswered("POST", create, { kind: "silent" })
  const lateCreation = unanswered("POST", create, { kind: "late", millis: 2_000 })
  return Effect.flatten(
    Members.anyOf([starting, anyTime, anyTime, anyRequest, creation, isShifted ? creation : lateCreation])
  )
}

/** Waits until every waiting prompt says what its message says. */
const aligned = (guild: Guild.Guild) =>
  Published.stale(guild).pipe(
    Effect.filterOrFail(
      (stale) => stale.length === 0,
      (stale) => new Error(`prompts differ from their messages: ${stale.join("; ")}`)
    ),
    Effect.retry(Schedule.spaced("100 millis").pipe(Schedule.upTo("2 minutes"))),
    Effect.orDie
  )

export const survives = ({
  kills,
  kinds = ["short", "short", "long", "reads", "asks", "writes"],
  seed,
  shift = 0
}: Plan) =>
  Effect.gen(function* () {
    console.log(`seed ${seed}: ${kills} kills`)
    const guild = yield* Guild.make({
      seed,
      settings: { limitOf: Loopback.fasterLimits(20), global: { limit: 1_000, window: 1_000 } }
    })
    const { discord, order, world } = guild
    const script = yield* BotProcess.program
    const { act, answer, commanded, mention, setAnswering } = Members.make(guild, kinds)
    const rates = yield* drawnRates
    console.log(JSON.stringify(rates))
    yield* Effect.forkScoped(Effect.schedule(answer, Schedule.spaced("250 millis")))
    const everythingShown = discord.when(
      () => `answers to be shown: ${Published.missing(guild).join("; ")}`,
      () => Published.missing(guild).length === 0
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
    /** A bot without faults, while nobody answers: prompts wait, and some of their messages change. */
    const quietly = Effect.gen(function* () {
      world.faults.rates = {}
      yield* setAnswering(false)
      const bot = yield* BotProcess.start(script, order)
      yield* acts
      yield* aligned(guild)
      yield* setAnswering(true)
      return bot
    })
    for (let count = 0; count < kills; count += 1) {
      world.faults.rates = rates
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
      // A gateway session of a bot that was killed is never resumed.
      world.sessions.clear()
      if (shift > 0) discord.moveClock(shift)
      if (count % killsBetween === killsBetween - 1) {
        const isLong = count % (2 * killsBetween) === killsBetween - 1
        const end = isLong ? everythingShown : Effect.void
        yield* Effect.scoped(Effect.flatMap(quietly, ({ kill }) => Effect.zipRight(end, kill)))
        console.log(`${count + 1} kills`)
      }
    }
    yield* Effect.scoped(
      Effect.gen(function* () {
        const bot = yield* quietly
        yield* everythingShown
        yield* Published.settled(guild, commanded)
        yield* bot.stop
      })
    )
    yield* Effect.scoped(
      Effect.gen(function* () {
        const bot = yield* BotProcess.start(script, order)
        yield* Effect.replicateEffect(act, 3)
        yield* everythingShown
        yield* Published.settled(guild, commanded)
        yield* bot.stop
      })
    )
    yield* Published.check(guild, commanded)
  }).pipe(Effect.withRandom(Random.make(seed)), Effect.scoped)
