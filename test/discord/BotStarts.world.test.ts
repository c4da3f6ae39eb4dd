/** The bot as a process of its own: it starts while Discord fails, and ends where it cannot work. */
import { assert, it } from "@effect/vitest"
import { GatewayIntentBits } from "discord.js"
import { Effect } from "effect"
import * as Outbox from "../../packages/discord/src/outbox/Outbox.ts"
import * as BotProcess from "./support/BotProcess.ts"
import type { Fault } from "./support/Faults.ts"
import * as Guild from "./support/Guild.ts"
import * as Loopback from "./support/Loopback.ts"
import * as People from "./support/People.ts"
import * as Published from "./support/Published.ts"
import { promptOf } from "./support/Talker.ts"

/** A slow machine takes long to start a process. */
const slow = 120_000

const faults: ReadonlyArray<Fault> = [{ kind: "failed", status: 502 }, { kind: "lost" }, { kind: "refused" }]

it.scopedLive(
  "DI-60: a bot that starts while Discord fails or is away waits, and then works",
  () =>
    Effect.gen(function* () {
      const guild = yield* Guild.make({ settings: { limitOf: Loopback.fasterLimits(20) } })
      const { ann, discord, order, world } = guild
      for (const path of [/\/users\/@me$/, /\/gateway\/bot$/])
        world.faults.scripted.push(...faults.map((fault) => ({ method: "GET", path, fault })))
      yield* BotProcess.start(yield* BotProcess.program, order)
      yield* discord.when("the bot at the gateway", ({ sessions }) => sessions.size > 0)
      People.say(world, ann, discord.general, `<@${world.bot.id}> ${promptOf(1, "long")}`)
      yield* discord.when("the answer", () => Published.missing(guild).length === 0)
      yield* Published.check(guild)
      assert.deepStrictEqual(world.faults.scripted, [])
    }),
  slow
)

it.scopedLive(
  "DI-64: a token that Discord refuses, and an intent that it does not grant, end the bot with an error",
  () =>
    Effect.gen(function* () {
      const { discord, order, world } = yield* Guild.make()
      const script = yield* BotProcess.program
      const stranger = yield* BotProcess.start(script, { ...order, token: "a.wrong.token" })
      assert.strictEqual(yield* stranger.ended, 1)
      world.gateway.intents &= ~GatewayIntentBits.MessageContent
      const bot = yield* BotProcess.start(script, order)
      assert.strictEqual(yield* bot.ended, 1)
      assert.deepInclude(world.closed, { by: "server", code: 4014 })
      assert.strictEqual(discord.gateway.connections(), 0)
    }),
  slow
)

/** A bot at the gateway; `life` runs while it does, and then it is killed. */
const during = <A, E, R>({ discord, order }: Guild.Guild, life: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* BotProcess.start(yield* BotProcess.program, order)
      yield* discord.when("the bot at the gateway", ({ sessions }) =>
        [...sessions.values()].some(({ send }) => send !== undefined)
      )
      return yield* life
    })
  )

const quick: Guild.Options = { settings: { limitOf: Loopback.fasterLimits(20) } }

it.scopedLive(
  "DI-32: a bot that did not learn that it opened a thread reads what was written there before later messages",
  () =>
    Effect.gen(function* () {
      const guild = yield* Guild.make(quick)
      const { ann, discord, world } = guild
      world.faults.scripted.push({ method: "POST", path: /\/threads$/, fault: { kind: "silent" } })
      const opened = Effect.gen(function* () {
        const { id } = People.say(world, ann, discord.general, `<@${world.bot.id}> ${promptOf(1, "short")}`)
        yield* discord.when("the thread", ({ channels }) => channels.has(id))
        return world.channels.get(id) ?? assert.fail("there is a thread")
      })
      const thread = yield* during(guild, opened)
      People.say(world, ann, thread, promptOf(2, "short"))
      const shown = discord.when("the answers", () => Published.missing(guild).length === 0)
      const later = Effect.zipRight(
        Effect.sync(() => People.say(world, ann, thread, promptOf(3, "short"))),
        shown
      )
      yield* during(guild, later)
      yield* Published.check(guild)
    }),
  slow
)

it.scopedLive(
  "DI-31: a bot that ended between opening a thread and its first prompt admits that one first",
  () =>
    Effect.gen(function* () {
      const guild = yield* Guild.make(quick)
      const { ann, discord, order, world } = guild
      world.faults.scripted.push({ method: "POST", path: /\/threads$/, fault: { kind: "silent" } })
      const opened = Effect.gen(function* () {
        const { id } = People.say(world, ann, discord.general, `<@${world.bot.id}> ${promptOf(1, "short")}`)
        yield* discord.when("the thread", ({ channels }) => channels.has(id))
        return world.channels.get(id) ?? assert.fail("there is a thread")
      })
      const thread = yield* during(guild, opened)
      // The step that it would have done next.
      yield* Effect.scoped(
        Effect.flatMap(Outbox.make({ filename: order.outbox }), ({ addPlace }) =>
          addPlace(thread.id, discord.general.id, thread.id)
        )
      )
      People.say(world, ann, thread, promptOf(2, "short"))
      // The channel is read later than the thread could be.
      world.faults.scripted.push({
        method: "GET",
        path: new RegExp(`/${discord.general.id}/messages`),
        fault: { kind: "refused" }
      })
      yield* during(
        guild,
        discord.when("the answers", () => Published.missing(guild).length === 0)
      )
      yield* Published.check(guild)
    }),
  slow
)

it.scopedLive(
  "DI-32: a thread in which Discord failed before the bot ended is read after it, too",
  () =>
    Effect.gen(function* () {
      const guild = yield* Guild.make(quick)
      const { ann, discord, world } = guild
      const failing = Effect.gen(function* () {
        world.faults.scripted.push({ method: "POST", path: /\/messages$/, fault: { kind: "refused" }, times: 1_000 })
        const { id } = People.say(world, ann, discord.general, `<@${world.bot.id}> ${promptOf(1, "short")}`)
        // The second attempt comes after the bot has noted the failure of the first.
        yield* discord.when("two attempts", () => world.asked.filter(({ fault }) => fault === "refused").length > 1)
        return world.channels.get(id) ?? assert.fail("there is a thread")
      })
      const thread = yield* during(guild, failing)
      world.faults.scripted.splice(0)
      People.say(world, ann, thread, promptOf(2, "short"))
      yield* during(
        guild,
        discord.when("the answers", () => Published.missing(guild).length === 0)
      )
      yield* Published.check(guild)
    }),
  slow
)
