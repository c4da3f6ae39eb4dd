/**
 * Compares what the threads of a guild show with what the sessions' logs say: every settled answer exactly once, whole and in
 * order; every message of a member admitted once.
 */
import { assert } from "@effect/vitest"
import { Array, Effect } from "effect"
import type { SessionEvent } from "../../../packages/log/src/events/SessionEvents.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { messageOf } from "../../../packages/discord/src/domain/Names.ts"
import { readAll } from "../../support/Logs.ts"
import { type Guild, threads } from "./Guild.ts"
import { type Channel, type Interaction, type Message, visible } from "./World.ts"

/** The lines of texts that say something: without blank ones and fences. */
const linesOf = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.flatMap((text) => text.split("\n")).filter((line) => line.startsWith("«"))

/** The events of each session, by the thread that shows it. */
const logs = ({ runtime }: Guild) =>
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

/** A command of a member that asks with a number. */
export interface Commanded {
  readonly interaction: Interaction
  readonly number: number
}

const numbersIn = (texts: ReadonlyArray<string>): ReadonlyArray<number> =>
  texts.flatMap((text) => [...text.matchAll(/ask (\d+) [a-z]/g)].map(([, number]) => Number(number)))

/** A message of a member in the place of a session. Each text that it had asks with a number of its own. */
interface Said {
  readonly id: string
  readonly thread: string
  readonly numbers: ReadonlyArray<number>
  readonly deleted: boolean
}

/** What members said, in order. */
const said = ({ ann, world }: Guild): ReadonlyArray<Said> =>
  [...world.channels.values()].flatMap(({ id: channel, messages, thread }) =>
    messages
      .filter(({ author }) => author.id === ann.id)
      .map(({ deleted, id, revisions }) => {
        return { id, deleted, numbers: numbersIn(revisions), thread: thread === undefined ? id : channel }
      })
  )

/** The messages of the bot that begin threads for `/ask`, by number. */
const begun = (guild: Guild): ReadonlyMap<number, ReadonlyArray<Message>> => {
  const found = new Map<number, ReadonlyArray<Message>>()
  for (const message of visible(guild.discord.general)) {
    const [number] = message.author.id === guild.world.bot.id ? numbersIn([message.content]) : []
    if (number !== undefined) found.set(number, [...(found.get(number) ?? []), message])
  }
  return found
}

interface Admission {
  /** The message; undefined for that of a command. */
  readonly message: string | undefined
  readonly number: number
  readonly isPromoted: boolean
}

/** The prompts of a log, in the order of their admission. */
const admissions = (events: ReadonlyArray<SessionEvent>): ReadonlyArray<Admission> => {
  const promoted = new Set(
    events.flatMap((event) => (event.type === "session.next.prompt.promoted" ? [event.data.messageID] : []))
  )
  return events.flatMap((event) =>
    event.type === "session.next.prompt.admitted"
      ? numbersIn([event.data.prompt.text]).map((number) => ({
          message: messageOf(event.data.messageID),
          number,
          isPromoted: promoted.has(event.data.messageID)
        }))
      : []
  )
}

const same = (one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>) =>
  JSON.stringify(one) === JSON.stringify(other)

/** What is wrong with the messages of members: each is run once, with a text that it had; a deleted one at most once. */
const wrongMessages = (
  guild: Guild,
  found: ReadonlyMap<string, ReadonlyArray<SessionEvent>>
): ReadonlyArray<string> => {
  const wrong: globalThis.Array<string> = []
  for (const [thread, messages] of Object.entries(Array.groupBy(said(guild), ({ thread }) => thread))) {
    const admitted = admissions(found.get(thread) ?? [])
    for (const { deleted, id, numbers } of messages) {
      const run = admitted.filter(({ isPromoted, message }) => isPromoted && message === id)
      const isOnce = run.length === 1 || (deleted && run.length === 0)
      if (!isOnce || run.some(({ number }) => !numbers.includes(number)))
        wrong.push(`${id} in ${thread} with ${numbers.join(", ")} ran as ${run.map(({ number }) => number).join(", ")}`)
    }
    const first = new Set(admitted.flatMap(({ message }) => message ?? []))
    const expected = messages.filter(({ id }) => first.has(id)).map(({ id }) => id)
    const order = [...first].filter((id) => expected.includes(id))
    if (!same(order, expected)) wrong.push(`messages of ${thread} in the order ${order.join(", ")}`)
  }
  return wrong
}

/** What is wrong with the commands: each runs at most once, and once if it was answered. */
const wrongCommands = (
  guild: Guild,
  found: ReadonlyMap<string, ReadonlyArray<SessionEvent>>,
  commanded: ReadonlyArray<Commanded>
): ReadonlyArray<string> => {
  const run = [...found.values()].flatMap(admissions).filter(({ isPromoted }) => isPromoted)
  const beginnings = begun(guild)
  return commanded.flatMap(({ interaction, number }) => {
    const times = run.filter((one) => one.number === number).length
    const isSaid = interaction.original !== undefined || beginnings.has(number)
    return times === 1 || (times === 0 && !isSaid) ? [] : [`command ${number} ran ${times} times`]
  })
}

/** What a thread shows that its log does not say, or otherwise. */
const wrongThread = (guild: Guild, thread: Channel, events: ReadonlyArray<SessionEvent>): ReadonlyArray<string> => {
  const called = events.flatMap((event) => (event.type === "session.next.tool.called" ? [event.data.tool] : []))
  const notes = ofBot(guild, thread).filter(
    ({ attachments, content }) => attachments.length === 0 && linesOf([content]).length === 0
  )
  const count = (kind: RegExp) => notes.filter(({ content }) => kind.test(content)).length
  const others = notes.filter(({ content }) => !/^(?:🔧|✅|❌(?! Failed)|⏹|❓|🔐|-# )/u.test(content))
  return [
    ...(same(shownLines(guild, thread), linesOf(settledTexts(events))) ? [] : [`answers in ${thread.id}`]),
    ...(count(/^(?:🔧|✅|❌(?! Failed)|⏹|❓)/u) === called.length ? [] : [`calls in ${thread.id}`]),
    ...(count(/^🔐/u) === called.filter((tool) => tool === "write").length ? [] : [`permissions in ${thread.id}`]),
    ...others.map(({ content }) => `${thread.id} shows: ${content}`)
  ]
}

/** Everything that is wrong. */
const wrong = (
  guild: Guild,
  found: ReadonlyMap<string, ReadonlyArray<SessionEvent>>,
  commanded: ReadonlyArray<Commanded>
): ReadonlyArray<string> => [
  ...wrongMessages(guild, found),
  ...wrongCommands(guild, found, commanded),
  ...[...begun(guild).values()].flatMap((messages) => messages.slice(1).map(({ content }) => `twice: ${content}`)),
  ...threads(guild).flatMap((thread) => wrongThread(guild, thread, found.get(thread.id) ?? []))
]

/** Waits until all sessions are idle and everything is shown, a while at most: then something is wrong. */
export const settled = (guild: Guild, commanded: ReadonlyArray<Commanded> = []) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* Effect.forEach((yield* sessions.list({ limit: 1_000 })).items, ({ id }) => sessions.wait(id))
    const found = yield* logs(guild)
    const isRight = guild.discord.when(
      () => wrong(guild, found, commanded).join("; "),
      () => wrong(guild, found, commanded).length === 0
    )
    yield* Effect.timeoutOption(isRight, "2 minutes")
  }).pipe(Effect.provide(guild.runtime), Effect.orDie)

/** Asserts the laws. */
export const check = (guild: Guild, commanded: ReadonlyArray<Commanded> = []) =>
  Effect.map(logs(guild), (found) => {
    assert.deepStrictEqual(guild.world.defects, [])
    assert.deepStrictEqual(wrong(guild, found, commanded), [])
    for (const thread of threads(guild))
      assert.deepStrictEqual(shownLines(guild, thread), linesOf(settledTexts(found.get(thread.id) ?? [])))
  })

/** What members asked and no thread shows to its last line, by message. */
export const missing = (guild: Guild): ReadonlyArray<string> => {
  const ended = new Set(
    threads(guild).flatMap((thread) =>
      shownLines(guild, thread).flatMap((line) => {
        const [, number, index, count] = /^«(\d+)\.(\d+)\/(\d+)»/.exec(line) ?? []
        return index !== undefined && index === count ? [Number(number)] : []
      })
    )
  )
  const asked = said(guild).filter(({ deleted }) => !deleted)
  const begins = [...begun(guild)].map(([number, [message]]) => ({ thread: message?.id ?? "", numbers: [number] }))
  return [...asked, ...begins].flatMap(({ numbers, thread }) =>
    numbers.some((number) => ended.has(number)) ? [] : [`${thread}: ${numbers.join(", ")}`]
  )
}

/** Waiting prompts that say something else than their messages. */
export const stale = (guild: Guild) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    const messages = new Map(
      [...guild.world.channels.values()].flatMap((channel) => channel.messages).map((m) => [m.id, m])
    )
    const found: globalThis.Array<string> = []
    for (const { id } of (yield* sessions.list({ limit: 1_000 })).items)
      for (const input of yield* sessions.inbox(id)) {
        const message = messages.get(messageOf(input.id) ?? "")
        if (message?.author.id !== guild.ann.id) continue
        const isSame = !message.deleted && message.content.endsWith(input.prompt.text)
        if (!isSame) found.push(`${input.id}: ${input.prompt.text}`)
      }
    return found
  }).pipe(Effect.provide(guild.runtime), Effect.orDie)
