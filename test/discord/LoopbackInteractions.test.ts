/** Commands, buttons and menus of the loopback Discord, as the real discord.js client meets them. */
import { assert, it } from "@effect/vitest"
import {
  ActionRowBuilder,
  ButtonBuilder,
  ButtonStyle,
  type ChatInputCommandInteraction,
  Events,
  MessageFlags,
  StringSelectMenuBuilder
} from "discord.js"
import { Effect, Struct } from "effect"
import * as Bot from "./support/Bot.ts"
import * as Loopback from "./support/Loopback.ts"
import * as People from "./support/People.ts"
import { type Channel, visible } from "./support/World.ts"

const texts = (channel: Channel) => visible(channel).map(({ content }) => content)

/** The client's interaction for a command that a member gives. */
const command = Effect.fnUntraced(function* ({ general, world }: Loopback.Loopback, { client }: Bot.Bot, options = {}) {
  const ann = People.join(world, "ann")
  const [interaction] = yield* Bot.during(
    client,
    Events.InteractionCreate,
    () => void People.slash(world, ann, general, "ask", options)
  )
  return interaction.isChatInputCommand() ? interaction : assert.fail("a command")
})

const deferred = (interaction: ChatInputCommandInteraction) => Bot.call(() => interaction.deferReply())

it.scoped("commands are registered as a whole, and a member gives one with its options", () =>
  Effect.gen(function* () {
    const discord = yield* Loopback.make()
    const bot = yield* Bot.login(discord)
    yield* Bot.call(() => bot.client.application.commands.set([{ name: "ask", description: "Ask something" }]))
    assert.deepStrictEqual(discord.world.commands.map(Struct.get("name")), ["ask"])
    const interaction = yield* command(discord, bot, { text: "what?", count: 2 })
    assert.strictEqual(interaction.options.getString("text"), "what?")
    assert.strictEqual(interaction.options.getInteger("count"), 2)
    assert.strictEqual(interaction.user.username, "ann")
    yield* Bot.call(() => interaction.reply("answer"))
    assert.deepStrictEqual(texts(discord.general), ["answer"])
    const [reply] = [...(yield* Bot.call(() => bot.general.messages.fetch({ limit: 1, cache: false }))).values()]
    assert.strictEqual(reply?.interactionMetadata?.id, interaction.id)
    assert.strictEqual(reply?.webhookId, bot.client.application.id)
  })
)

it.scoped("a deferred answer becomes the original reply; ephemeral follow-ups are not in the channel", () =>
  Effect.gen(function* () {
    const discord = yield* Loopback.make()
    const interaction = yield* command(discord, yield* Bot.login(discord))
    yield* deferred(interaction)
    assert.deepStrictEqual(texts(discord.general), [])
    yield* Bot.call(() => interaction.editReply("first"))
    yield* Bot.call(() => interaction.editReply("second"))
    yield* Bot.call(() => interaction.followUp({ content: "for you", flags: MessageFlags.Ephemeral }))
    assert.deepStrictEqual(texts(discord.general), ["second"])
    const [stored] = discord.world.interactions.values()
    assert.deepStrictEqual(stored?.followUps.map(Struct.get("content")), ["for you"])
  })
)

it.scoped("an interaction is answered once, within three seconds of the server's clock", () =>
  Effect.gen(function* () {
    const discord = yield* Loopback.make()
    const bot = yield* Bot.login(discord)
    const once = yield* command(discord, bot)
    discord.world.faults.scripted.push({
      method: "POST",
      path: /\/callback$/,
      fault: { kind: "failedAfter", status: 502 }
    })
    assert.strictEqual(yield* Bot.refusal(() => once.reply("one")), 40060)
    const late = yield* command(discord, bot)
    discord.moveClock(3_001)
    assert.strictEqual(yield* Bot.refusal(() => late.reply("two")), 10062)
    assert.deepStrictEqual(texts(discord.general), ["one"])
  })
)

it.scoped("a token serves for fifteen minutes of the server's clock", () =>
  Effect.gen(function* () {
    const discord = yield* Loopback.make()
    const interaction = yield* command(discord, yield* Bot.login(discord))
    yield* deferred(interaction)
    discord.moveClock(14 * 60_000)
    yield* Bot.call(() => interaction.editReply("in time"))
    discord.moveClock(60_001)
    assert.strictEqual(yield* Bot.refusal(() => interaction.editReply("late")), 50027)
    assert.deepStrictEqual(texts(discord.general), ["in time"])
  })
)

it.scoped("a member presses a button or chooses from a menu, and the message is updated", () =>
  Effect.gen(function* () {
    const discord = yield* Loopback.make()
    const { general, world } = discord
    const bot = yield* Bot.login(discord)
    const button = new ButtonBuilder().setCustomId("yes").setLabel("Yes").setStyle(ButtonStyle.Success)
    const menu = new StringSelectMenuBuilder().setCustomId("pick").addOptions({ label: "A", value: "a" })
    const components = [
      new ActionRowBuilder<ButtonBuilder>().addComponents(button),
      new ActionRowBuilder<StringSelectMenuBuilder>().addComponents(menu)
    ]
    yield* Bot.call(() => bot.general.send({ content: "sure?", components }))
    const message = general.messages[0] ?? assert.fail("a message")
    assert.deepStrictEqual(People.controls(message), ["yes", "pick"])
    const ann = People.join(world, "ann")
    const [chosen] = yield* Bot.during(
      bot.client,
      Events.InteractionCreate,
      () => void People.press(world, ann, general, message, "pick", ["a"])
    )
    if (!chosen.isStringSelectMenu()) assert.fail("a menu")
    else {
      assert.deepStrictEqual(chosen.values, ["a"])
      yield* Bot.call(() => chosen.deferUpdate())
    }
    const [pressed] = yield* Bot.during(
      bot.client,
      Events.InteractionCreate,
      () => void People.press(world, ann, general, message, "yes")
    )
    if (!pressed.isButton()) assert.fail("a button")
    else yield* Bot.call(() => pressed.update({ content: "yes", components: [] }))
    assert.deepStrictEqual(texts(general), ["yes"])
    assert.deepStrictEqual(People.controls(message), [])
  })
)

it.scoped("components that break Discord's form are refused", () =>
  Effect.gen(function* () {
    const discord = yield* Loopback.make({ limitOf: Loopback.fasterLimits(50) })
    const { general } = yield* Bot.login(discord)
    const button = (id: string) => ({ type: 2 as const, style: 1 as const, custom_id: id, label: "x" })
    const send = (...ids: ReadonlyArray<string>) =>
      Bot.refusal(() => general.send({ content: "x", components: [{ type: 1, components: ids.map(button) }] }))
    assert.strictEqual(yield* send("a", "a"), 50035)
    assert.strictEqual(yield* send("a".repeat(101)), 50035)
    assert.strictEqual(yield* send("a", "b", "c", "d", "e", "f"), 50035)
    assert.deepStrictEqual(texts(discord.general), [])
  })
)
