/** A text with every hazard of Discord's Markdown. Spec: DI-20..DI-25 in specs/discord.md. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { publishable } from "../../packages/discord/src/post/Text.ts"
import { says } from "../support/ScriptedModel.ts"
import * as People from "./support/People.ts"
import * as Served from "./support/ServedBot.ts"
import { type Message, visible } from "./support/World.ts"

const slow = 120_000

/** What would notify members, end a block early, hide a text, or be drawn as something else. */
const hazards = (ids: { readonly user: string; readonly role: string; readonly channel: string }): string =>
  [
    `@everyone @here <@${ids.user}> <@!${ids.user}> <@&${ids.role}> <#${ids.channel}> <t:1700000000:R> <:smile:1> </ask:1>`,
    "# Heading\n## Smaller\n-# small\n> quoted\n>>> quoted to the end?",
    "**open *nested __under ~~struck ||hidden|| \\*escaped\\* _a_ snake_case_name 2*3*4",
    "`one` ``two ` ticks`` ``` three ticks in a line ``` and one ` alone",
    "```ts\nconst fence = `\n```",
    "````md\nA block in a block:\n```js\nrun(`@everyone`)\n```\nand its end\n````",
    "~~~python\nprint('''```''')\n~~~",
    "   ```indented\n   code\n   ```",
    "`````\n````\n```\n``\n````\n`````",
    "- list\n  - deeper\n    1. numbered\n* * *\n---\n| a | b |\n|---|---|\n| `c` | **d** |",
    "[masked](https://example.com/@everyone) <https://example.com> https://example.com/a_b_c www.example.com",
    "<b>html</b> &amp; <!-- comment --> $x_1^2$ \\( y \\)",
    "right to left: \u202eabc\u202c שלום, joined: 👩‍👩‍👧‍👦🇩🇪e\u0301, alone: \ud83d and \ude00, zero: \u200b\u2060\ufeff",
    "controls: \u0000\u0007\u001b[31mred\u001b[0m\u2028\u2029 tab:\t. carriage\r\nreturn",
    `long: ${"x".repeat(2_300)}`,
    `ticks: ${"`".repeat(40)} tildes: ${"~".repeat(40)}`,
    "```\nA block that is never closed, with @everyone"
  ].join("\n\n")

/** The text without spaces, the characters of fences, and the invisible one that parts them: what must be complete. */
const essence = (text: string): string => text.replaceAll(/[\s\u200b`~]/g, "")

const fencesOf = (text: string): number => text.split("```").length - 1

/** The answer of the bot to a text of the model, once it is settled. */
const published = (make: (ids: Parameters<typeof hazards>[0]) => string) =>
  Effect.gen(function* () {
    const at = yield* Served.setting
    const { ann, general, model, world } = at
    const text = make({ user: ann.id, role: People.makeRole(world, "all"), channel: general.id })
    yield* model.answer(says(text))
    const thread = yield* Served.threadOf(at, People.say(world, ann, general, `<@${world.bot.id}> Go`))
    yield* Served.settled(at, thread)
    const shown = essence(publishable(text, []))
    const isShown = (messages: ReadonlyArray<Message>) =>
      messages.some(({ attachments }) => attachments.length > 0) ||
      essence(messages.map(({ content }) => content).join("\n")) === shown
    yield* at.discord.when("the whole answer", () => thread !== undefined && isShown(visible(thread)))
    const messages = thread === undefined ? [] : visible(thread)
    for (const { content, pings } of messages) {
      assert.deepStrictEqual(pings, { everyone: false, users: [], roles: [] })
      assert.isAtMost(content.length, 2_000)
      assert.strictEqual(fencesOf(content) % 2, 0, content)
    }
    return { messages, text }
  })

describe("a text with every hazard of Markdown", () => {
  Served.law(
    "DI-20..DI-25: as messages it is complete and in order, each block is closed, and nobody is notified",
    () =>
      Effect.gen(function* () {
        const { messages } = yield* published((ids) => `${hazards(ids)}\n\`\`\`\n\n${hazards(ids)}`)
        assert.isAbove(messages.length, 3)
        assert.isTrue(messages.every(({ attachments }) => attachments.length === 0))
      }),
    slow
  )

  Served.law(
    "DI-20..DI-25: of 30,000 characters it is a file, complete, with its beginning above, and nobody is notified",
    () =>
      Effect.gen(function* () {
        const { messages, text } = yield* published((ids) => `${hazards(ids)}\n`.repeat(10).slice(0, 30_000))
        assert.lengthOf(text, 30_000)
        const [beginning, whole, ...others] = messages
        assert.lengthOf(others, 0)
        const bytes = whole?.attachments[0]?.bytes ?? new Uint8Array()
        assert.strictEqual(Buffer.from(bytes).toString(), publishable(text, []))
        assert.isTrue(essence(publishable(text, [])).startsWith(essence(beginning?.content ?? "-")))
      }),
    slow
  )
})
