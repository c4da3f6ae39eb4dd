/** Commands, buttons and menus, and who may use them. Spec: DI-40..DI-45, DI-51 in specs/discord.md. */
import { assert, describe } from "@effect/vitest"
import { Clock, Effect, Schema, Stream, TestClock } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Asks from "../../packages/server/src/shared/Asks.ts"
import * as ServedApi from "../server/http/support/ServedApi.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { userTexts } from "../support/Harness.ts"
import * as People from "./support/People.ts"
import * as Served from "./support/ServedBot.ts"
import type { Channel, Interaction, Message, User } from "./support/World.ts"

/** A bot in a channel where `ann` may do everything, `bob` may ask, and `eve` nothing. */
const settingWith = Effect.fnUntraced(function* (around?: Served.Around) {
  const at = yield* Served.place
  const { world } = at.discord
  const [ann, bob, eve] = [People.join(world, "ann"), People.join(world, "bob"), People.join(world, "eve")]
  const given = Served.options(at, { ask: { users: [bob.id] }, administer: { users: [ann.id] } })
  yield* Served.start(at, given, undefined, undefined, around)
  return { ...at, ...at.discord, ann, bob, eve, model: yield* ScriptedModel, sessions: yield* Sessions }
})

const setting = settingWith()

type Setting = Effect.Effect.Success<typeof setting>

const answerOf = ({ discord }: Setting, interaction: Interaction) =>
  Effect.map(
    discord.when("an answer", () => interaction.original !== undefined),
    () => interaction.original
  )

/** Uses a command and returns the text of its answer. */
const use = (
  at: Setting,
  ...[user, channel, name, options]: [
    Parameters<typeof People.slash>[1],
    Parameters<typeof People.slash>[2],
    string,
    Parameters<typeof People.slash>[4]?
  ]
) => Effect.map(answerOf(at, People.slash(at.world, user, channel, name, options)), (answer) => answer?.content ?? "")

/** The message of a channel that begins so, once it is there. */
const appears = Effect.fnUntraced(function* ({ discord }: Setting, channel: Channel, beginning: string) {
  const find = () => channel.messages.find(({ content }) => content.startsWith(beginning))
  yield* discord.when(beginning, () => find() !== undefined)
  return find() ?? (yield* Effect.dieMessage(beginning))
})

/** The name of the button or menu with this action. */
const control = (message: Message, action: string): string =>
  People.controls(message).find((name) => name.startsWith(`${action}|`)) ?? action

const press = (
  { world }: Setting,
  user: User,
  channel: Channel,
  message: Message,
  action: string,
  values?: ReadonlyArray<string>
) => People.press(world, user, channel, message, control(message, action), values)

/** A thread after one answer. */
const threadOf = (at: Setting) =>
  Effect.gen(function* () {
    yield* at.model.answer(says("Hello."))
    const message = People.say(at.world, at.bob, at.general, `<@${at.world.bot.id}> Hi`)
    const thread = yield* Served.threadOf(at, message)
    yield* Served.settled(at, thread)
    yield* at.model.request
    if (thread === undefined) return yield* Effect.dieMessage("there is no thread")
    return thread
  })

/** Asks in a thread for something that a tool needs a permission for; returns the question's message. */
const asking = Effect.fnUntraced(function* (at: Setting) {
  const thread = yield* threadOf(at)
  yield* at.model.answer(calls(callParts("c1", "bash", { command: "echo permitted", description: "Say it" })))
  People.say(at.world, at.bob, thread, "Say it")
  return { thread, question: yield* appears(at, thread, "🔐") }
})

describe("commands", () => {
  Served.law("DI-40: /ask posts the question, whose message begins the thread", () =>
    Effect.gen(function* () {
      const at = yield* setting
      yield* at.model.answer(says("42"))
      assert.strictEqual(yield* use(at, at.bob, at.general, "ask", { text: "What is 6 times 7?" }), "A thread follows.")
      const question = yield* appears(at, at.general, "**bob** asks: What is 6 times 7?")
      const thread = yield* Served.threadOf(at, question)
      yield* Served.shows(at, thread, ["42"])
      assert.deepStrictEqual(userTexts(yield* at.model.request), ["What is 6 times 7?"])
    })
  )

  Served.law("DI-41: /stop ends the running work, and the thread and the prompt's reaction say so", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const thread = yield* threadOf(at)
      yield* at.model.answer(Stream.never)
      const message = People.say(at.world, at.bob, thread, "Work for ever")
      yield* at.model.request
      assert.strictEqual(yield* use(at, at.bob, thread, "stop"), "Stopped.")
      yield* at.discord.when("a stopped prompt", () => (message.reactions.get("🛑")?.size ?? 0) > 0)
      yield* appears(at, thread, "🛑 Stopped")
    })
  )

  Served.law(
    "DI-41: /queue waits for the running work, /status counts what waits, /budget and /model set and tell",
    () =>
      Effect.gen(function* () {
        const at = yield* setting
        const thread = yield* threadOf(at)
        yield* at.model.answer(Stream.never)
        People.say(at.world, at.bob, thread, "Work")
        yield* at.model.request
        assert.strictEqual(
          yield* use(at, at.bob, thread, "queue", { text: "Then this" }),
          "**bob** asks next: Then this"
        )
        const [waiting] = yield* at.sessions.inbox(Served.sessionIn(thread))
        assert.deepStrictEqual([waiting?.prompt.text, waiting?.delivery], ["Then this", "queue"])
        const status = yield* use(at, at.bob, thread, "status")
        assert.include(status, "**State** running")
        assert.include(status, "**Waiting** 1 prompts, 0 questions, 0 permissions")
        assert.include(yield* use(at, at.ann, thread, "budget", { tokens: 5_000 }), "5,000 tokens")
        assert.deepStrictEqual((yield* at.sessions.get(Served.sessionIn(thread))).budget, { tokens: 5_000 })
        assert.include(yield* use(at, at.ann, thread, "model", { model: "scripted/two" }), "scripted/two")
        assert.strictEqual((yield* at.sessions.get(Served.sessionIn(thread))).model?.id, "two")
      })
  )

  Served.law("DI-41: /summary tells the last answer, and /fork goes on in a new thread that repeats nothing", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const thread = yield* threadOf(at)
      assert.include(yield* use(at, at.bob, thread, "summary"), "**Last answer** Hello.")
      yield* use(at, at.bob, thread, "fork")
      const begun = yield* appears(at, at.general, `**bob** goes on from <#${thread.id}>`)
      const fork = yield* Served.threadOf(at, begun)
      if (fork === undefined) return assert.fail("there is no fork")
      yield* at.model.answer(says("Another way."))
      People.say(at.world, at.bob, fork, "Go on")
      yield* at.discord.when("an answer in the fork", () => Served.texts(fork).includes("Another way."))
      assert.deepStrictEqual(userTexts(yield* at.model.request), ["Hi", "Go on"])
      assert.deepStrictEqual(Served.texts(fork), ["Go on", "Another way."])
    })
  )

  Served.law("DI-51: commands and buttons of a person without the right change nothing", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const { question, thread } = yield* asking(at)
      assert.strictEqual(yield* use(at, at.eve, thread, "stop"), "You may not do this here.")
      assert.strictEqual(yield* use(at, at.bob, thread, "budget", { cost: 1 }), "You may not do this here.")
      const pressed = press(at, at.bob, thread, question, "allow:once")
      assert.strictEqual((yield* answerOf(at, pressed))?.content, "You may not do this here.")
      assert.include(yield* use(at, at.bob, thread, "status"), "1 permissions")
    })
  )
})

describe("buttons", () => {
  Served.law("DI-44: a permission is asked with the whole command, and the button of a person who may decides it", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const { question, thread } = yield* asking(at)
      assert.include(question.content, "echo permitted")
      yield* at.model.answer(says("Said."))
      press(at, at.ann, thread, question, "allow:once")
      yield* at.discord.when("the end", () => Served.texts(thread).includes("Said."))
      yield* at.discord.when("the decision", () => question.content === `🔐 ✅ Allowed once by <@${at.ann.id}>`)
      assert.deepStrictEqual(People.controls(question), [])
      // DI-45: the output is behind the button of the call's line.
      const line = yield* appears(at, thread, "✅ `bash`")
      const pressed = press(at, at.bob, thread, line, "output")
      assert.include((yield* answerOf(at, pressed))?.content ?? "", "permitted")
      assert.isTrue(pressed.ephemeral)
    })
  )

  Served.law("DI-760: the bot does not look between a press and its post", () =>
    Effect.gen(function* () {
      let deciding = false
      const looks: Array<boolean> = []
      const at = yield* settingWith((book) => ({
        ...book,
        permissions: Effect.tap(book.permissions, () => Effect.sync(() => void looks.push(deciding))),
        // Until the next look, if there is one: the bot looks each tenth of a second.
        decide: (...given) =>
          Effect.gen(function* () {
            deciding = true
            yield* book.decide(...given)
            yield* Effect.withClock(Effect.sleep("400 millis"), Clock.make())
            deciding = false
          })
      }))
      const { question, thread } = yield* asking(at)
      yield* at.model.answer(says("Said."))
      press(at, at.ann, thread, question, "allow:once")
      yield* at.discord.when("the decision", () => question.content === `🔐 ✅ Allowed once by <@${at.ann.id}>`)
      assert.notInclude(looks, true)
    })
  )

  Served.law("DI-44: a permission that is declined stops the run", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const { question, thread } = yield* asking(at)
      press(at, at.ann, thread, question, "decline")
      yield* at.discord.when("the decision", () => question.content === `🔐 🛑 Declined by <@${at.ann.id}>`)
      yield* appears(at, thread, "🛑 Stopped")
    })
  )

  Served.law("DI-43: a question is answered by its menu, or by a form", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const thread = yield* threadOf(at)
      const questions = [{ question: "Which colour?", options: [{ label: "Red" }, { label: "Blue" }] }]
      yield* at.model.answer(calls(callParts("q1", "question", { questions })))
      People.say(at.world, at.bob, thread, "Paint")
      const first = yield* appears(at, thread, "❓ Which colour?")
      yield* at.model.answer(calls(callParts("q2", "question", { questions: [{ question: "How large?" }] })))
      press(at, at.bob, thread, first, "choose:0", ["1"])
      yield* at.discord.when("the answer", () => first.content === "❓ → Blue")
      const second = yield* appears(at, thread, "❓ How large?")
      yield* at.model.answer(says("Painted."))
      const form = press(at, at.bob, thread, second, "answer")
      yield* at.discord.when("a form", () => form.answer === "modal")
      People.submit(at.world, at.bob, thread, control(second, "answer").replace("answer|", "answers|"), {
        "0": "Three metres"
      })
      yield* at.discord.when("the second answer", () => second.content === "❓ → Three metres")
      yield* at.discord.when("the end", () => Served.texts(thread).includes("Painted."))
    })
  )

  Served.law("DI-44: a button that is pressed twice decides once, and the second press is told so", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const { question, thread } = yield* asking(at)
      yield* at.model.answer(says("Said."))
      const pressed = ["allow:once", "allow:once"].map((action) => press(at, at.ann, thread, question, action))
      const answers = yield* Effect.forEach(pressed, (one) => answerOf(at, one))
      assert.deepStrictEqual(answers.map((answer) => (answer?.content ?? "").replace(/ waits .*/, "")).toSorted(), [
        "Done.",
        "no call"
      ])
      yield* at.discord.when("the end", () => Served.texts(thread).includes("Said."))
      const decided = Served.texts(thread).filter((text) => text.startsWith("🔐"))
      assert.deepStrictEqual(decided, [`🔐 ✅ Allowed once by <@${at.ann.id}>`])
    })
  )

  Served.law("DI-43: of two choices of one menu the first counts, and the second is told so", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const thread = yield* threadOf(at)
      const questions = [{ question: "Which colour?", options: [{ label: "Red" }, { label: "Blue" }] }]
      yield* at.model.answer(calls(callParts("q1", "question", { questions })))
      People.say(at.world, at.bob, thread, "Paint")
      const question = yield* appears(at, thread, "❓ Which colour?")
      yield* at.model.answer(says("Painted."))
      const chosen = ["0", "1"].map((value) => press(at, at.bob, thread, question, "choose:0", [value]))
      const answers = yield* Effect.forEach(chosen, (one) => answerOf(at, one))
      const first = answers.findIndex((answer) => answer?.content === "Answered.")
      assert.lengthOf(
        answers.filter((answer) => answer?.content === "Answered."),
        1
      )
      yield* at.discord.when("the end", () => Served.texts(thread).includes("Painted."))
      assert.strictEqual(question.content, `❓ → ${["Red", "Blue"][first]}`)
    })
  )

  Served.law(
    "DI-43, DI-44: what another client of the server decides and answers is shown as decided and answered",
    () =>
      Effect.gen(function* () {
        const at = yield* setting
        const { question, thread } = yield* asking(at)
        const session = `/sessions/${Served.sessionIn(thread)}`
        const Open = Schema.Array(Schema.Struct({ ask: Schema.String }))
        const [open] = Schema.decodeUnknownSync(Open)((yield* ServedApi.answer(`${session}/permissions`)).body)
        const questions = [{ question: "Which colour?", options: [{ label: "Red" }, { label: "Blue" }] }]
        yield* at.model.answer(calls(callParts("q1", "question", { questions })))
        yield* ServedApi.post(`${session}/permissions/${open?.ask}`, { decision: "once" })
        yield* at.discord.when("the decision", () => question.content === "🔐 Decided elsewhere, or the call has ended")
        assert.deepStrictEqual(People.controls(question), [])
        const asked = yield* appears(at, thread, "❓ Which colour?")
        const Pending = Schema.Array(Schema.Struct({ messageID: Schema.String, callID: Schema.String }))
        const [pending] = Schema.decodeUnknownSync(Pending)((yield* ServedApi.answer(`${session}/questions`)).body)
        yield* at.model.answer(says("Painted."))
        yield* ServedApi.post(`${session}/questions/${pending?.messageID}/${pending?.callID}/answer`, {
          answers: ["Blue"]
        })
        yield* at.discord.when("the answer", () => asked.content === "❓ → Blue")
        assert.deepStrictEqual(People.controls(asked), [])
        yield* at.discord.when("the end", () => Served.texts(thread).includes("Painted."))
      })
  )

  Served.law("DI-481: a task's questions and permissions are asked in the thread of the session that gave it", () =>
    Effect.gen(function* () {
      const at = yield* setting
      const thread = yield* threadOf(at)
      yield* at.model.answer(calls(callParts("t1", "task", { description: "Paint", prompt: "Paint the house" })))
      const questions = [{ question: "Which colour?", options: [{ label: "Red" }, { label: "Blue" }] }]
      yield* at.model.answer(calls(callParts("q1", "question", { questions })))
      People.say(at.world, at.bob, thread, "Have it painted")
      const question = yield* appears(at, thread, "❓ Which colour?")
      yield* at.model.answer(calls(callParts("c1", "bash", { command: "echo permitted", description: "Paint it" })))
      press(at, at.bob, thread, question, "choose:0", ["1"])
      const permission = yield* appears(at, thread, "🔐")
      yield* at.model.answer(says("The task is done."))
      yield* at.model.answer(says("Painted."))
      press(at, at.ann, thread, permission, "allow:once")
      yield* at.discord.when("the end", () => Served.texts(thread).includes("Painted."))
      assert.deepStrictEqual(
        Served.texts(thread).filter((text) => /^[❓🔐]/u.test(text)),
        ["❓ → Blue", `🔐 ✅ Allowed once by <@${at.ann.id}>`]
      )
      assert.notInclude(Served.texts(thread), "The task is done.")
    })
  )

  // So short that it is over by the time of the bot, too, when the bot looks again.
  const limited = Asks.make({ patience: "1 millis" })
  Served.law(
    "DI-44: a permission with a limit shows the time that is left, and then that nobody decided in time",
    () =>
      Effect.gen(function* () {
        const at = yield* setting
        const { question, thread } = yield* asking(at)
        assert.match(question.content, /\nRefused <t:\d+:R> without a decision\.\n/)
        yield* at.model.answer(says("Then not."))
        yield* TestClock.adjust("1 millis")
        yield* at.discord.when("the end", () => Served.texts(thread).includes("Then not."))
        yield* at.discord.when("the post", () => question.content === "🔐 Not decided here in time")
        assert.deepStrictEqual(People.controls(question), [])
      }),
    undefined,
    {},
    limited
  )
})
