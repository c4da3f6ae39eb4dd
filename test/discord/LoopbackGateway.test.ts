/** The gateway of the loopback Discord, as the real discord.js client meets it. */
import { assert, describe, it } from "@effect/vitest"
import { Events, GatewayIntentBits, PermissionFlagsBits } from "discord.js"
import { Effect } from "effect"
import * as Bot from "./support/Bot.ts"
import * as Faults from "./support/Faults.ts"
import * as Loopback from "./support/Loopback.ts"
import * as People from "./support/People.ts"

const { Guilds, GuildMembers, GuildMessages } = GatewayIntentBits

/** Every text that the client receives, in order. */
const heard = ({ client }: Bot.Bot): ReadonlyArray<string> => {
  const texts: Array<string> = []
  client.on(Events.MessageCreate, ({ content }) => void texts.push(content))
  return texts
}

/** The number of every creation of a message that the gateway sends. */
const creations = ({ client }: Bot.Bot): ReadonlyArray<number> => {
  const numbers: Array<number> = []
  client.on(Events.Raw, (frame: { readonly t: string; readonly s: number }) => {
    if (frame.t === "MESSAGE_CREATE") numbers.push(frame.s)
  })
  return numbers
}

describe("sessions", () => {
  it.scoped("a client becomes ready with the guild, its channels, and the threads that are active", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      People.makeChannel(discord.world, "other")
      const { client } = yield* Bot.login(discord)
      assert.strictEqual(client.user.id, discord.world.bot.id)
      assert.deepStrictEqual(
        client.channels.cache.map((channel) => ("name" in channel ? channel.name : undefined)),
        ["general", "other"]
      )
    })
  )

  it.scoped("a member's messages, edits and deletions reach the client in order", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general, world } = discord
      const { client } = yield* Bot.login(discord)
      const ann = People.join(world, "ann")
      const log: Array<string> = []
      client.on(Events.MessageCreate, ({ author, content }) => void log.push(`${author.username}: ${content}`))
      client.on(Events.MessageUpdate, (_, { content }) => void log.push(`now: ${content}`))
      const message = People.say(world, ann, general, "helo")
      People.edit(world, general, message, "hello")
      yield* Bot.during(client, Events.MessageDelete, () => People.remove(world, general, message))
      assert.deepStrictEqual(log, ["ann: helo", "now: hello"])
    })
  )

  it.scoped(
    "without an intent its events are not sent, and without message content a text is empty unless it mentions the bot",
    () =>
      Effect.gen(function* () {
        const discord = yield* Loopback.make()
        const { general, world } = discord
        const plain = yield* Bot.login(discord, { intents: [Guilds, GuildMessages] })
        const deaf = yield* Bot.login(discord, { intents: [Guilds] })
        const [texts, none] = [heard(plain), heard(deaf)]
        const ann = People.join(world, "ann")
        People.say(world, ann, general, "hidden")
        yield* Bot.during(plain.client, Events.ThreadCreate, () => {
          const message = People.say(world, ann, general, `<@${world.bot.id}> open`)
          People.openThread(world, ann, general, message, "thread")
        })
        yield* Bot.during(deaf.client, Events.ThreadCreate, () => {
          People.openThread(world, ann, general, People.say(world, ann, general, "x"), "thread")
        })
        assert.deepStrictEqual(texts.slice(0, 2), ["", `<@${world.bot.id}> open`])
        assert.deepStrictEqual(none, [])
      })
  )

  it.scoped("an intent that the application may not use, and a wrong token, close the connection", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      discord.world.gateway.intents &= ~GuildMembers
      const client = yield* Bot.make(discord, { intents: [Guilds, GuildMembers] })
      const refused = yield* Effect.flip(Bot.call(() => client.login(discord.world.settings.token)))
      assert.match(String(refused), /disallowed intents/i)
      assert.deepStrictEqual(
        discord.world.closed.filter(({ by }) => by === "server"),
        [{ by: "server", code: 4014 }]
      )
      const stranger = yield* Bot.make(discord)
      assert.match(String(yield* Effect.flip(Bot.call(() => stranger.login("a.wrong.token")))), /token/i)
    })
  )

  it.scoped("heartbeats are answered; a connection without answers is left, and its session resumed", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make({ heartbeat: 60 })
      const { client } = yield* Bot.login(discord)
      yield* discord.when("two heartbeats", ({ gateway }) => gateway.heartbeats >= 2)
      assert.deepStrictEqual(discord.world.closed, [])
      discord.world.gateway.acknowledges = false
      yield* Bot.during(client, Events.ShardResume, () => {
        discord.world.watchers.add(() => {
          if (discord.world.closed.length > 0) discord.world.gateway.acknowledges = true
        })
      })
      assert.strictEqual(discord.world.sessions.size, 1)
    })
  )
})

describe("resume", () => {
  it.scoped("after a broken connection the client resumes and gets the events in between once, in order", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general, world } = discord
      const bot = yield* Bot.login(discord)
      const texts = heard(bot)
      const ann = People.join(world, "ann")
      const say = (text: string) => void People.say(world, ann, general, text)
      yield* Bot.during(bot.client, Events.MessageCreate, () => say("before"))
      discord.gateway.drop()
      say("between 1")
      say("between 2")
      yield* Bot.next(bot.client, Events.ShardResume)
      yield* Bot.during(bot.client, Events.MessageCreate, () => say("after"))
      assert.deepStrictEqual(texts, ["before", "between 1", "between 2", "after"])
      assert.strictEqual(world.sessions.size, 1)
    })
  )

  it.scoped("a resume that starts too early delivers events again; discord.js drops a message that it has cached", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make({}, Faults.makePlan(3, { rewound: 1_000 }))
      const { general, world } = discord
      const bot = yield* Bot.login(discord)
      const [texts, created] = [heard(bot), creations(bot)]
      const ann = People.join(world, "ann")
      yield* Bot.during(bot.client, Events.MessageCreate, () => void People.say(world, ann, general, "one"))
      discord.gateway.drop(4_000)
      yield* Bot.next(bot.client, Events.ShardResume)
      assert.lengthOf(created, 2)
      assert.strictEqual(created[0], created[1])
      assert.deepStrictEqual(texts, ["one"])
    })
  )

  it.scoped("an event that is delivered twice has two numbers", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make({}, Faults.makePlan(3, { redelivered: 1_000 }))
      const { general, world } = discord
      const bot = yield* Bot.login(discord)
      const created = creations(bot)
      const message = People.say(world, People.join(world, "ann"), general, "one")
      yield* Bot.during(bot.client, Events.MessageDelete, () => People.remove(world, general, message))
      assert.lengthOf(created, 2)
      assert.strictEqual((created[0] ?? 0) + 1, created[1])
    })
  )

  it.scoped("a session that is invalid ends; the client identifies anew and misses the events in between", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general, world } = discord
      const bot = yield* Bot.login(discord)
      const texts = heard(bot)
      const ann = People.join(world, "ann")
      const [first] = world.sessions.keys()
      world.gateway.resumes = false
      discord.gateway.drop(4_000)
      People.say(world, ann, general, "missed")
      yield* Bot.next(bot.client, Events.ShardReady)
      yield* Bot.during(bot.client, Events.MessageCreate, () => void People.say(world, ann, general, "heard"))
      assert.deepStrictEqual(texts, ["heard"])
      assert.isTrue([...world.sessions.keys()].some((id) => id !== first))
    })
  )
})

describe("channels", () => {
  it.scoped("what the bot does not see, may not do or does not find has Discord's codes", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make({ limitOf: Loopback.fasterLimits(50) })
      const { world } = discord
      const { client, general } = yield* Bot.login(discord)
      const message = yield* Bot.call(() => general.send("one"))
      assert.strictEqual(yield* Bot.refusal(() => general.messages.fetch("123456789012345678")), 10008)
      assert.strictEqual(yield* Bot.refusal(() => client.channels.fetch("123456789012345678")), 10003)
      People.overwrite(world, discord.general, { deny: PermissionFlagsBits.SendMessages })
      assert.strictEqual(yield* Bot.refusal(() => general.send("two")), 50013)
      People.overwrite(world, discord.general, { deny: PermissionFlagsBits.ViewChannel })
      assert.strictEqual(yield* Bot.refusal(() => message.edit("two")), 50001)
      People.overwrite(world, discord.general, {})
      People.remove(world, discord.general, discord.general.messages[0] ?? assert.fail("a message"))
      assert.strictEqual(yield* Bot.refusal(() => message.edit("two")), 10008)
    })
  )

  it.scoped("a thread from a message has its id and is made once; after a lost reply its id finds it", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord)
      const message = yield* Bot.call(() => general.send("start"))
      discord.world.faults.scripted.push({ method: "POST", path: /\/threads$/, fault: { kind: "lost" } })
      const open = () => message.startThread({ name: "answer" })
      assert.instanceOf(yield* Effect.flip(Bot.call(open)), Error)
      assert.strictEqual(yield* Bot.refusal(open), 160004)
      const thread = yield* Bot.call(() => general.threads.fetch(message.id))
      assert.strictEqual(thread?.id, message.id)
    })
  )

  it.scoped("an archived thread refuses edits and reactions; a message opens it, unless it is locked", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make({ limitOf: Loopback.fasterLimits(50) })
      const { world } = discord
      const { client, general } = yield* Bot.login(discord)
      const thread = yield* Bot.call(() => general.threads.create({ name: "talk", type: 11 }))
      const message = yield* Bot.call(() => thread.send("one"))
      const stored = world.channels.get(thread.id) ?? assert.fail("the thread is stored")
      yield* Bot.during(client, Events.ThreadUpdate, () => People.archive(world, stored))
      assert.strictEqual(yield* Bot.refusal(() => message.edit("two")), 50083)
      assert.strictEqual(yield* Bot.refusal(() => message.react("✅")), 50083)
      yield* Bot.call(() => thread.send("three"))
      assert.isFalse(stored.thread?.archived)
      People.archive(world, stored, true)
      assert.strictEqual(yield* Bot.refusal(() => thread.send("four")), 160005)
      yield* Bot.during(client, Events.ThreadDelete, () => People.removeChannel(world, stored))
      assert.strictEqual(yield* Bot.refusal(() => thread.send("five")), 10003)
    })
  )
})
