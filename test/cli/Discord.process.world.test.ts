/** `daybook discord` as a process, in the loopback Discord. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { GatewayIntentBits, PermissionFlagsBits } from "discord.js"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Loopback from "../discord/support/Loopback.ts"
import * as People from "../discord/support/People.ts"
import { type Settings, visible, type World } from "../discord/support/World.ts"
import { build } from "./support/Bundle.ts"
import * as ModelServer from "./support/ModelServer.ts"
import { type Place, place } from "./support/Process.ts"

beforeAll(() => void build())

/** A Discord, and a folder with the bot's settings. */
const settingWith = Effect.fnUntraced(function* (given: Partial<Settings>) {
  const discord = yield* Loopback.make({ limitOf: Loopback.fasterLimits(50), ...given })
  const here = yield* place
  const settings = (extra = "") => {
    const text = `channels:\n  "${discord.general.id}":\n    folder: ${here.root}\n    ask: { everyone: true }\n${extra}`
    writeFileSync(join(here.root, "discord.yaml"), text)
  }
  settings()
  const env = { DISCORD_TOKEN: discord.world.settings.token, DISCORD_API: discord.api }
  const words = ["discord", "--config", join(here.root, "discord.yaml")]
  return { discord, here, env, words, settings }
})

const setting = settingWith({})

/** The end of the offline model's answer to a greeting. */
const answerEnd = "README.md."

/** What a thread shows; nothing while it is not open. */
const textsOf = (world: World, thread: string): ReadonlyArray<string> => {
  const channel = world.channels.get(thread)
  return channel === undefined ? [] : visible(channel).map(({ content }) => content)
}

const started = Effect.fnUntraced(function* (here: Place, words: ReadonlyArray<string>, env: Record<string, string>) {
  const bot = yield* here.start(words, { env })
  yield* bot.until("stdout", (text) => text.includes("ready\n"))
  return bot
})

/** The setting of a bot whose model answers when the test allows it. */
const heldBot = Effect.gen(function* () {
  const model = yield* ModelServer.make
  const { discord, env, here, words } = yield* setting
  const { world } = discord
  const using = { ...env, DAYBOOK_BASE_URL: model.url, DAYBOOK_MODEL: "openai-compatible/held", DAYBOOK_NAMING: "off" }
  return { model, discord, world, here, words, env: using, ann: People.join(world, "ann") }
})

/** A thread that a message of a person opens. */
const opened = ({ ann, discord, world }: Omit<Effect.Effect.Success<typeof heldBot>, "model">) =>
  Effect.gen(function* () {
    const message = People.say(world, ann, discord.general, `<@${world.bot.id}> the first`)
    yield* discord.when("a thread", () => world.channels.has(message.id))
    return { message, thread: world.channels.get(message.id) ?? assert.fail("there is a thread") }
  })

describe("discord", () => {
  it.scopedLive(
    "CL-310: alone, it runs the sessions itself, and ends with the signal; started again, it posts nothing twice",
    () =>
      Effect.gen(function* () {
        const { discord, env, here, words } = yield* setting
        const { general, world } = discord
        const first = yield* started(here, words, env)
        const ann = People.join(world, "ann")
        const message = People.say(world, ann, general, `<@${world.bot.id}> Hello`)
        // Posts and reactions do not wait for each other.
        yield* discord.when("an answer", () => {
          const text = textsOf(world, message.id).at(-1) ?? ""
          return text.endsWith(answerEnd) && (message.reactions.get("✅")?.size ?? 0) > 0
        })
        const thread = world.channels.get(message.id)
        if (thread === undefined) return assert.fail("there is no thread")
        const posted = textsOf(world, message.id)
        yield* first.signal("SIGTERM")
        const { code, stderr } = yield* first.ended
        assert.deepStrictEqual([code, stderr], [0, ""])
        yield* started(here, words, env)
        const next = People.say(world, ann, thread, "Again")
        yield* discord.when("a second answer", () => (next.reactions.get("✅")?.size ?? 0) > 0)
        assert.deepStrictEqual(textsOf(world, message.id).slice(0, posted.length), posted)
      })
  )

  it.scopedLive(
    "DI-480: what a kill cut off ends in its thread, and the prompt behind it runs, without a new message",
    () =>
      Effect.gen(function* () {
        const { model, ...at } = yield* heldBot
        const first = yield* started(at.here, at.words, at.env)
        const { message, thread } = yield* opened(at)
        yield* (yield* model.next).text("The first")
        yield* at.discord.when("the beginning of the answer", () => textsOf(at.world, thread.id).length === 1)
        const queued = People.slash(at.world, at.ann, thread, "queue", { text: "the second" })
        yield* at.discord.when("the queued prompt", () => queued.original !== undefined)
        yield* first.signal("SIGKILL")
        yield* first.ended
        yield* started(at.here, at.words, at.env)
        const { body, finish, text } = yield* model.next
        assert.include(JSON.stringify(body.messages), "the second")
        yield* text("The second answer")
        yield* finish()
        yield* at.discord.when(
          "the mark and the answer",
          () =>
            (message.reactions.get("🛑")?.size ?? 0) > 0 && textsOf(at.world, thread.id).at(-1) === "The second answer"
        )
      })
  )

  it.scopedLive("CL-480: without a terminal models get the tool question, and a person in the thread answers it", () =>
    Effect.gen(function* () {
      const { model, ...at } = yield* heldBot
      yield* started(at.here, at.words, at.env)
      const { thread } = yield* opened(at)
      const asking = yield* model.next
      assert.include(asking.body.tools?.map((tool) => tool.function.name) ?? [], "question")
      const options = [{ label: "SQLite" }, { label: "PostgreSQL" }]
      yield* asking.toolCall("q1", "question", { questions: [{ question: "Which database?", options }] })
      yield* asking.finish("tool_calls")
      const card = () => visible(thread).find(({ content }) => content === "❓ Which database?")
      yield* at.discord.when("the question", () => card() !== undefined)
      const asked = card() ?? assert.fail("there is a question")
      const menu = People.controls(asked).find((name) => name.startsWith("choose:")) ?? assert.fail("there is a menu")
      People.press(at.world, at.ann, thread, asked, menu, ["1"])
      assert.include(JSON.stringify((yield* model.next).body.messages), "PostgreSQL")
      yield* at.discord.when("the answer in the thread", () => asked.content === "❓ → PostgreSQL")
    })
  )

  it.scopedLive("CL-311: --check names the channels and what the bot lacks there", () =>
    Effect.gen(function* () {
      const { discord, env, here, words } = yield* setting
      const { general, world } = discord
      const sound = yield* here.run([...words, "--check"], { env })
      assert.deepStrictEqual([sound.code, sound.stdout, sound.stderr], [0, `${general.id}: ok\n`, ""])
      People.overwrite(world, general, {
        deny: PermissionFlagsBits.CreatePublicThreads | PermissionFlagsBits.AddReactions
      })
      const lacking = yield* here.run([...words, "--check"], { env })
      assert.strictEqual(lacking.code, 1)
      assert.strictEqual(lacking.stdout, `${general.id}: the bot lacks: Create Public Threads, Add Reactions\n`)
      const refused = yield* here.run([...words, "--check"], { env: { ...env, DISCORD_TOKEN: "MTIz.wrong.token" } })
      assert.strictEqual(refused.code, 1)
      assert.include(refused.stderr, "401: Unauthorized")
      assert.notInclude(refused.stderr, "MTIz.wrong.token")
    })
  )

  it.scopedLive("CL-311: --check judges a channel when its guild was announced, which is later than READY", () =>
    Effect.gen(function* () {
      const { discord, env, here, words } = yield* settingWith({ heartbeat: 200 })
      discord.world.gateway.announcesAfter = 3
      const late = yield* here.run([...words, "--check"], { env })
      assert.deepStrictEqual([late.code, late.stdout, late.stderr], [0, `${discord.general.id}: ok\n`, ""])
    })
  )

  it.scopedLive("CL-311: --check of a Discord that cannot be reached fails at once", () =>
    Effect.gen(function* () {
      const { env, here, words } = yield* setting
      // Nothing listens on the first port.
      const unreachable = { ...env, DISCORD_API: "http://127.0.0.1:1/api" }
      const { code, stderr } = yield* here.run([...words, "--check"], { env: unreachable })
      assert.strictEqual(code, 1)
      assert.include(stderr, "Discord: it cannot be reached: the connection was refused (ECONNREFUSED)")
    })
  )

  it.scopedLive("CL-311: --check says which intent is not granted, and which channels it does not see", () =>
    Effect.gen(function* () {
      const { discord, env, here, words } = yield* setting
      const { general, world } = discord
      People.overwrite(world, general, { deny: PermissionFlagsBits.ViewChannel })
      const hidden = yield* here.run([...words, "--check"], { env })
      assert.strictEqual(hidden.code, 1)
      assert.match(hidden.stdout, new RegExp(`^${general.id}: Discord: .*\\(50001\\)\n$`))
      People.removeChannel(world, general)
      const gone = yield* here.run([...words, "--check"], { env })
      assert.strictEqual(gone.code, 1)
      assert.match(gone.stdout, new RegExp(`^${general.id}: Discord: .*\\(10003\\)\n$`))
      world.gateway.intents &= ~GatewayIntentBits.MessageContent
      const refused = yield* here.run([...words, "--check"], { env })
      assert.strictEqual(refused.code, 1)
      assert.include(refused.stderr, "Message Content Intent")
    })
  )

  it.scopedLive("CL-312: settings that do not fit are refused with their line", () =>
    Effect.gen(function* () {
      const { env, here, settings, words } = yield* setting
      settings("    aks: { everyone: true }\n")
      const wrong = yield* here.run(words, { env })
      assert.strictEqual(wrong.code, 2)
      assert.include(wrong.stderr, "line 5")
      assert.include(wrong.stderr, 'did you mean "ask"?')
      const { DISCORD_TOKEN: _, ...without } = env
      assert.include((yield* here.run(words, { env: without })).stderr, "DISCORD_TOKEN")
    })
  )
})
