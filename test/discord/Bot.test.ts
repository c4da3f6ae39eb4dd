/** The bot in the loopback Discord: threads, prompts and answers. Spec: specs/discord.md. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { userTexts } from "../support/Harness.ts"
import { says, ScriptedModel } from "../support/ScriptedModel.ts"
import * as People from "./support/People.ts"
import * as Served from "./support/ServedBot.ts"

describe("the bot", () => {
  Served.law("DI-1: a message that mentions the bot opens a thread, which is a session; its text is the prompt", () =>
    Effect.gen(function* () {
      const at = yield* Served.place
      const { world, general } = at.discord
      const model = yield* ScriptedModel
      yield* Served.start(at)
      const ann = People.join(world, "ann")
      yield* model.answer(says("Good morning."))
      const message = People.say(world, ann, general, `<@${world.bot.id}> Hello?`)
      const thread = yield* Served.threadOf(at, message)
      yield* Served.shows(at, thread, ["Good morning."])
      assert.deepStrictEqual(userTexts(yield* model.request), ["Hello?"])
      const session = yield* (yield* Sessions).get(Served.sessionIn(message))
      assert.strictEqual(session.location.directory, at.folder)
      // A message in the thread is the next prompt.
      yield* model.answer(says("Yes."))
      if (thread === undefined) return assert.fail("there is no thread")
      People.say(world, ann, thread, "And you?")
      yield* Served.shows(at, thread, ["Good morning.", "And you?", "Yes."])
      assert.deepStrictEqual(userTexts(yield* model.request), ["Hello?", "And you?"])
    })
  )
})
