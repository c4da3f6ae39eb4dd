/** REST of the loopback Discord, as the real discord.js client meets it. */
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "@effect/platform-node/Undici"
import { assert, describe, it } from "@effect/vitest"
import { Routes } from "discord.js"
import { Effect, FastCheck, Struct } from "effect"
import { cases } from "../support/Cases.ts"
import * as Bot from "./support/Bot.ts"
import type { Fault } from "./support/Faults.ts"
import * as Faults from "./support/Faults.ts"
import * as Loopback from "./support/Loopback.ts"
import * as People from "./support/People.ts"
import { visible, type World } from "./support/World.ts"

const quick = { limitOf: Loopback.fasterLimits(50) }

/** The next creation of a message meets a fault. */
const faultOfPost = (world: World, fault: Fault, times = 1) =>
  world.faults.scripted.push({ method: "POST", path: /\/messages$/, fault, times })

const contents = ({ general }: Loopback.Loopback) => visible(general).map(({ content }) => content)

describe("messages", () => {
  it.scoped("a message with a nonce that is enforced exists once within the nonce window of the server's clock", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord)
      const send = Bot.call(() => general.send({ content: "one", nonce: "evt-1", enforceNonce: true }))
      const first = yield* send
      discord.moveClock(discord.world.settings.nonceWindow - 1_000)
      assert.strictEqual((yield* send).id, first.id)
      discord.moveClock(2_000)
      assert.notStrictEqual((yield* send).id, first.id)
      assert.deepStrictEqual(contents(discord), ["one", "one"])
    })
  )

  it.scoped("a nonce that is not enforced prevents nothing, and history tells no nonce", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { client, general } = yield* Bot.login(discord)
      const send = Bot.call(() => general.send({ content: "one", nonce: "evt-1" }))
      const first = yield* send
      const second = yield* send
      assert.strictEqual(first.nonce, "evt-1")
      assert.notStrictEqual(second.id, first.id)
      const history = yield* Bot.call(() => client.rest.get(Routes.channelMessages(general.id)))
      assert.notInclude(JSON.stringify(history), "nonce")
      assert.deepStrictEqual(contents(discord), ["one", "one"])
    })
  )

  it.scoped("Discord trims a text, refuses one that is empty or over 2,000 characters, and keeps what it had", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make(quick)
      const { general } = yield* Bot.login(discord)
      const message = yield* Bot.call(() => general.send("\n  text \n"))
      assert.strictEqual(message.content, "text")
      assert.strictEqual(yield* Bot.refusal(() => general.send("x".repeat(2_001))), 50035)
      assert.strictEqual(yield* Bot.refusal(() => general.send(" \n ")), 50006)
      assert.strictEqual(yield* Bot.refusal(() => message.edit("x".repeat(2_001))), 50035)
      assert.strictEqual(yield* Bot.refusal(() => general.send({ content: "a", nonce: "n".repeat(26) })), 50035)
      yield* Bot.call(() => message.edit("x".repeat(2_000)))
      assert.deepStrictEqual(contents(discord), ["x".repeat(2_000)])
    })
  )

  it.scoped("a message notifies those that its text names and `allowed_mentions` permits", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { world } = discord
      const { general } = yield* Bot.login(discord)
      const [ann, bob] = [People.join(world, "ann"), People.join(world, "bob")]
      const role = People.makeRole(world, "staff")
      const content = `@everyone <@${ann.id}> <@${bob.id}> <@&${role}>`
      yield* Bot.call(() => general.send(content))
      yield* Bot.call(() => general.send({ content, allowedMentions: { parse: [] } }))
      yield* Bot.call(() => general.send({ content, allowedMentions: { users: [ann.id] } }))
      assert.deepStrictEqual(
        discord.general.messages.map(({ pings }) => pings),
        [
          { everyone: true, users: [ann.id, bob.id], roles: [role] },
          { everyone: false, users: [], roles: [] },
          { everyone: false, users: [ann.id], roles: [] }
        ]
      )
    })
  )

  it.scoped("a file goes as a part of a form, and its address serves its bytes", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord)
      const message = yield* Bot.call(() =>
        general.send({ content: "with a file", files: [{ attachment: Buffer.from("ä\n"), name: "answer.md" }] })
      )
      const [file] = [...message.attachments.values()]
      assert.strictEqual(file?.name, "answer.md")
      const bytes = yield* Effect.promise(async () => (await fetch(file?.url ?? "")).text())
      assert.strictEqual(bytes, "ä\n")
      const edited = yield* Bot.call(() => message.edit({ content: "without", attachments: [] }))
      assert.strictEqual(edited.attachments.size, 0)
    })
  )

  it.scoped("DI-69: a file arrives where another version of undici handles the process's requests", () =>
    Effect.gen(function* () {
      const before = getGlobalDispatcher()
      const other = new Agent()
      yield* Effect.acquireRelease(
        Effect.sync(() => setGlobalDispatcher(other)),
        () =>
          Effect.promise(() => {
            setGlobalDispatcher(before)
            return other.close()
          })
      )
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord)
      const message = yield* Bot.call(() =>
        general.send({ content: "with a file", files: [{ attachment: Buffer.from("ä\n"), name: "answer.md" }] })
      )
      assert.deepStrictEqual(
        [...message.attachments.values()].map(({ name, size }) => [name, size]),
        [["answer.md", 3]]
      )
    })
  )

  it.scoped("history lists what is before, after or around a message, newest first", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make({ global: { limit: 100_000, window: 1 } })
      const { general } = yield* Bot.login(discord)
      const ann = People.join(discord.world, "ann")
      const ids = Array.from({ length: 30 }, (_, n) => People.say(discord.world, ann, discord.general, `${n}`).id)
      const fetched = (query: { before?: string; after?: string; around?: string; limit: number }) =>
        Effect.runPromise(Bot.call(() => general.messages.fetch({ ...query, cache: false }))).then((found) =>
          [...found.values()].map(({ content }) => Number(content))
        )
      const downFrom = (numbers: ReadonlyArray<number>) => [...numbers].sort((a, b) => b - a)
      const all = ids.map((_, n) => n)
      yield* Effect.promise(() =>
        FastCheck.assert(
          FastCheck.asyncProperty(FastCheck.nat(29), FastCheck.integer({ min: 2, max: 40 }), async (n, limit) => {
            const id = ids[n] ?? ""
            assert.deepStrictEqual(await fetched({ before: id, limit }), downFrom(all.slice(0, n).slice(-limit)))
            assert.deepStrictEqual(await fetched({ after: id, limit }), downFrom(all.slice(n + 1, n + 1 + limit)))
            const half = Math.floor(limit / 2)
            const near = all.filter((other) => other >= n - half && other <= n + half)
            assert.deepStrictEqual(await fetched({ around: id, limit }), downFrom(near))
          }),
          { numRuns: cases(8) }
        )
      )
    })
  )

  it.scoped("a reaction is there once, and its event tells who gave it", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { client, general } = yield* Bot.login(discord)
      const ann = People.join(discord.world, "ann")
      const message = yield* Bot.call(() => general.send("react"))
      const own = yield* Bot.call(() => message.react("✅"))
      yield* Bot.call(() => message.react("✅"))
      const stored = discord.general.messages[0]
      assert.deepStrictEqual([...(stored?.reactions.get("✅") ?? [])], [client.user.id])
      const [, user] = yield* Bot.during(client, "messageReactionAdd", () => {
        if (stored !== undefined) People.react(discord.world, ann, stored, "✅")
      })
      assert.strictEqual(user.id, ann.id)
      yield* Bot.call(() => own.users.remove())
      assert.deepStrictEqual([...(stored?.reactions.get("✅") ?? [])], [ann.id])
    })
  )
})

describe("faults", () => {
  it.scoped("a 429 is waited for, and the client then sends again", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord)
      faultOfPost(discord.world, { kind: "limited", seconds: 0.05 })
      yield* Bot.call(() => general.send("one"))
      assert.deepStrictEqual(contents(discord), ["one"])
      assert.deepStrictEqual(
        discord.world.asked.filter(({ method }) => method === "POST").map(({ status }) => status),
        [429, 200]
      )
    })
  )

  it.scoped("a 5xx is repeated three times without a pause, and then reported", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord)
      faultOfPost(discord.world, { kind: "failed", status: 503 }, 4)
      const error = yield* Effect.flip(Bot.call(() => general.send("one")))
      assert.include(error, { status: 503 })
      yield* Bot.call(() => general.send("two"))
      assert.deepStrictEqual(contents(discord), ["two"])
      assert.lengthOf(
        discord.world.asked.filter(({ status }) => status === 503),
        4
      )
    })
  )

  it.scoped("a 5xx after the message exists makes a second one, unless the nonce is enforced", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord)
      faultOfPost(discord.world, { kind: "failedAfter", status: 502 })
      yield* Bot.call(() => general.send("twice"))
      faultOfPost(discord.world, { kind: "failedAfter", status: 502 })
      yield* Bot.call(() => general.send({ content: "once", nonce: "evt-1", enforceNonce: true }))
      assert.deepStrictEqual(contents(discord), ["twice", "twice", "once"])
    })
  )

  it.scoped("a lost reply is an error that the client does not retry; the same nonce then finds the message", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord)
      const send = Bot.call(() => general.send({ content: "one", nonce: "evt-1", enforceNonce: true }))
      faultOfPost(discord.world, { kind: "lost" })
      assert.instanceOf(yield* Effect.flip(send), Error)
      assert.deepStrictEqual(contents(discord), ["one"])
      const again = yield* send
      assert.strictEqual(again.id, discord.general.messages[0]?.id)
      assert.deepStrictEqual(contents(discord), ["one"])
    })
  )

  it.scoped("a reply that never comes ends at the client's time limit, and the client repeats the request", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const { general } = yield* Bot.login(discord, { rest: { timeout: 300 } })
      faultOfPost(discord.world, { kind: "silent" })
      yield* Bot.call(() => general.send({ content: "one", nonce: "evt-1", enforceNonce: true }))
      assert.deepStrictEqual(contents(discord), ["one"])
      const posts = discord.world.asked.filter(({ method }) => method === "POST")
      assert.deepStrictEqual(posts.map(Struct.get("status")), [0, 200])
    })
  )

  it.prop("a seed gives the same faults again", [FastCheck.integer(), Faults.ratesArbitrary], ([seed, rates]) => {
    const faults = () => {
      const plan = Faults.makePlan(seed, rates)
      return Array.from({ length: 50 }, () => [plan.ofRequest("GET", "/"), plan.deliveries("MESSAGE_CREATE")])
    }
    assert.deepStrictEqual(faults(), faults())
  })
})

describe("limits", () => {
  it.scoped("the client waits for an empty bucket, and the server refuses nothing", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make({ limitOf: Loopback.fasterLimits(25) })
      const { general, waits } = yield* Bot.login(discord)
      const message = yield* Bot.call(() => general.send("0"))
      for (let count = 1; count <= 12; count += 1) yield* Bot.call(() => message.edit(`${count}`))
      assert.isAtLeast(waits(), 1)
      assert.deepStrictEqual(discord.world.limited, [])
      assert.deepStrictEqual(contents(discord), ["12"])
    })
  )

  it.scoped("a request over the limit of its bucket is a 429 that names the bucket; other channels are free", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make()
      const other = People.makeChannel(discord.world, "other")
      const post = (channel: string) =>
        Effect.promise(() =>
          fetch(`${discord.api}/v10/channels/${channel}/messages`, {
            method: "POST",
            headers: { authorization: `Bot ${discord.world.settings.token}`, "content-type": "application/json" },
            body: JSON.stringify({ content: "x" })
          })
        )
      for (let count = 0; count < 5; count += 1) assert.strictEqual((yield* post(discord.general.id)).status, 200)
      const refused = yield* post(discord.general.id)
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(refused.headers.get("x-ratelimit-scope"), "user")
      assert.strictEqual(refused.headers.get("x-ratelimit-remaining"), "0")
      assert.include(yield* Effect.promise(() => refused.json()), { global: false })
      assert.strictEqual((yield* post(other.id)).status, 200)
      discord.moveClock(5_000)
      assert.strictEqual((yield* post(discord.general.id)).status, 200)
      assert.lengthOf(discord.world.limited, 1)
    })
  )

  it.scoped("requests over the limit of all requests are refused with the global mark", () =>
    Effect.gen(function* () {
      const discord = yield* Loopback.make({ global: { limit: 3, window: 60_000 } })
      const get = Effect.promise(() =>
        fetch(`${discord.api}/v10/users/@me`, { headers: { authorization: `Bot ${discord.world.settings.token}` } })
      )
      const replies = yield* Effect.replicateEffect(get, 4)
      assert.deepStrictEqual(replies.map(Struct.get("status")), [200, 200, 200, 429])
      assert.strictEqual(replies[3]?.headers.get("x-ratelimit-global"), "true")
    })
  )
})
