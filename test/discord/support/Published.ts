/**
 * Compares what the threads of a guild show with what the sessions' logs say: every settled answer exactly once, whole and in
 * order; every message of a member admitted once.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { readAll } from "../../support/Logs.ts"
import type { Guild } from "./Guild.ts"
import { threads } from "./Guild.ts"
import { type Channel, visible } from "./World.ts"

/** The lines of texts that say something: without blank ones and fences. */
const linesOf = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.flatMap((text) => text.split("\n")).filter((line) => line.startsWith("«"))

/** The events of each session, by the thread that shows it. */
export const logs = ({ runtime }: Guild) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const found = new Map<string, ReadonlyArray<SessionEvent>>()
    for (const { id } of (yield* sessions.list({ limit: 1_000 })).items) {
      const thread = /(\d+)$/.exec(id)?.[1] ?? id
      found.set(thread, yield* readAll(id))
    }
    return found
  }).pipe(Effect.provide(runtime), Effect.orDie)

const settledTexts = (events: ReadonlyArray<SessionEvent>) =>
  events.flatMap((event) => (event.type === "session.next.text.ended" ? [event.data.text] : []))

const ofBot = ({ world }: Guild, thread: Channel) =>
  visible(thread).filter(({ author, type }) => author.id === world.bot.id && type === 0)

/** The texts of the bot's messages. A long text is a file behind a message with its beginning, which it repeats. */
const shownTexts = (guild: Guild, thread: Channel): ReadonlyArray<string> =>
  ofBot(guild, thread).reduce<ReadonlyArray<string>>((texts, { attachments: [file], content }) => {
    if (file === undefined) return [...texts, content]
    const whole = Buffer.from(file.bytes).toString("utf8")
    const beginning = linesOf(texts.slice(-1))
    const isRepeated = beginning.every((line, index) => linesOf([whole])[index] === line)
    return [...(isRepeated ? texts.slice(0, -1) : texts), whole]
  }, [])

/** The lines of answers that a thread shows, in its order. */
export const shownLines = (guild: Guild, thread: Channel): ReadonlyArray<string> => linesOf(shownTexts(guild, thread))

/** The numbers of the asks that a log admitted, in order. */
const admittedAsks = (events: ReadonlyArray<SessionEvent>) =>
  events.flatMap((event) =>
    event.type === "session.next.prompt.admitted"
      ? [...event.data.prompt.text.matchAll(/ask (\d+)/g)].map(([, number]) => Number(number))
      : []
  )

/** Asserts the laws; `asked` holds the numbers of what members asked, by thread, in order. */
export const check = (guild: Guild, asked: ReadonlyMap<string, ReadonlyArray<number>>) =>
  Effect.map(logs(guild), (found) => {
    assert.deepStrictEqual(guild.world.defects, [])
    for (const thread of threads(guild)) {
      const events = found.get(thread.id) ?? []
      assert.deepStrictEqual(shownLines(guild, thread), linesOf(settledTexts(events)), `answers in ${thread.id}`)
      assert.deepStrictEqual(admittedAsks(events), asked.get(thread.id) ?? [], `prompts of ${thread.id}`)
      const calls = events.filter(({ type }) => type === "session.next.tool.called").length
      const notes = ofBot(guild, thread).filter(
        ({ attachments, content }) => attachments.length === 0 && linesOf([content]).length === 0
      )
      const shownCalls = notes.filter(({ content }) => /^(?:🔧|✅|❌|⏹|❓)/u.test(content))
      assert.strictEqual(shownCalls.length, calls, `calls in ${thread.id}`)
      const others = notes.filter((note) => !shownCalls.includes(note) && !note.content.startsWith("-# "))
      assert.deepStrictEqual(
        others.map(({ content }) => content),
        [],
        `other messages in ${thread.id}`
      )
    }
    const total = [...found.values()].flatMap(admittedAsks)
    assert.strictEqual(new Set(total).size, total.length)
  })

/** What members asked and no thread shows to its last line, by thread. */
export const missing = (guild: Guild, asked: ReadonlyMap<string, ReadonlyArray<number>>) =>
  [...asked].flatMap(([id, numbers]) => {
    const thread = guild.world.channels.get(id)
    const ended = new Set(
      (thread === undefined ? [] : shownLines(guild, thread)).flatMap((line) => {
        const [, number, index, count] = /^«(\d+)\.(\d+)\/(\d+)»/.exec(line) ?? []
        return index !== undefined && index === count ? [Number(number)] : []
      })
    )
    const rest = numbers.filter((number) => !ended.has(number))
    return rest.length === 0 ? [] : [`${id}: ${rest.join(", ")}`]
  })
