/**
 * Handles the messages of people: those that the gateway reports, and those that were written while the bot was away. Each
 * channel has a lane: its messages are handled in order, and no channel waits for another. Spec: DI-30..DI-36, DI-51 in
 * specs/discord.md.
 */
import { Deferred, Effect, FiberSet, Schedule } from "effect"
import { sessionOf } from "../domain/Names.ts"
import { type ChannelSettings, may, rights, type Settings } from "../domain/Settings.ts"
import { whenever } from "../live/Book.ts"
import { Sender } from "../live/Sender.ts"
import { type Beginning, Outbox } from "../outbox/Outbox.ts"
import { OutboxFailed } from "../outbox/OutboxFile.ts"
import { Discord } from "../wire/Discord.ts"
import * as Messages from "../wire/Messages.ts"
import { Member, type Message } from "../wire/Packets.ts"
import * as Admission from "./Admission.ts"
import { admit, begin as beginThread, insistently, isHandled, open, type Services, type Thread } from "./Admission.ts"

// Runs work in the order in which it was added, per key; keys are independent.

type Work = Effect.Effect<void, OutboxFailed, Services>

/** Lanes until the scope closes, which waits for the work in hand and drops the rest. */
const makeLanes = Effect.gen(function* () {
  const fibers = yield* FiberSet.make<void, OutboxFailed>()
  const fork = yield* FiberSet.runtime(fibers)<Services>()
  const waiting = new Map<string, Array<Work>>()
  const run = Effect.fnUntraced(function* (key: string) {
    for (let work = waiting.get(key)?.shift(); work !== undefined; work = waiting.get(key)?.shift()) yield* work
    waiting.delete(key)
  })
  return {
    add: (key: string, work: Work): Effect.Effect<void> =>
      Effect.sync(() => {
        const list = waiting.get(key)
        if (list !== undefined) return void list.push(work)
        waiting.set(key, [work])
        fork(run(key))
      }),
    failed: Effect.zipRight(FiberSet.join(fibers), Effect.never)
  }
})

// Finds the roles of a message's author: messages that are fetched do not have them.

const usesRoles = (settings: ChannelSettings): boolean =>
  rights.some((right) => (settings[right]?.roles ?? []).length > 0)

/** The roles; none for a person who has left. */
const rolesOf = Effect.fnUntraced(function* (
  settings: ChannelSettings,
  { author, channel_id, guild_id, member }: Message
) {
  if (member !== undefined) return member.roles
  if (!usesRoles(settings)) return []
  const discord = yield* Discord
  const guild = guild_id ?? (yield* Messages.channel(discord, channel_id)).guild_id
  if (guild === undefined) return []
  return yield* discord.request({ method: "GET", route: `/guilds/${guild}/members/${author.id}` }, Member).pipe(
    Effect.map(({ roles }) => roles),
    Effect.catchIf(
      ({ status }) => status === 404,
      () => Effect.succeed([])
    )
  )
})

/** Messages that are fetched of one channel after the bot was away. */
const mostMissed = 200
/** Threads that are read after the bot was away: the newest ones. */
const mostThreads = 500
/** Channels outside of the settings that are remembered. */
const mostUnknown = 1_000

/** When a channel is read again that refuses to be read. */
const slowly = Schedule.exponential("1 second", 2).pipe(
  Schedule.union(Schedule.spaced("10 minutes")),
  Schedule.jittered
)

type Failure = { readonly _tag: string; readonly message: string; readonly reason?: unknown } | OutboxFailed

/** Whether Discord does not let the channel be read now. */
const isRefusal = (error: { readonly _tag: string; readonly reason?: unknown }): boolean =>
  error._tag === "DiscordError" && error.reason !== "channel-gone" && error.reason !== "unauthorized"

const warned = (channel: string, { message }: { readonly message: string }) =>
  Effect.annotateLogs(Effect.logWarning(message), { channel })

/** Waits for the server and for Discord. What fails for another reason is left, unless the outbox failed. */
const attempted = (channel: string, work: Effect.Effect<void, Failure, Services>) =>
  Effect.catchAll(whenever(insistently(work)), (error) =>
    error instanceof OutboxFailed ? Effect.fail(error) : warned(channel, error)
  )

/** What the lanes of all channels share. */
export const make = Effect.fn("Inbox.make")(function* (settings: Settings) {
  return {
    settings,
    discord: yield* Discord,
    outbox: yield* Outbox,
    sender: yield* Sender,
    lanes: yield* makeLanes,
    /** The parents of channels outside of the settings; undefined for those that are not the bot's. */
    unknown: new Map<string, string | undefined>(),
    /** Channels that refuse to be read. Their messages are left for the reading that follows. */
    behind: new Set<string>()
  }
})

export type Inbox = Effect.Effect.Success<ReturnType<typeof make>>

/** The thread with this id; undefined if it is none of the bot's. */
export const threadOf = ({ outbox, settings }: Inbox, id: string) =>
  Effect.map(outbox.place(id), (place): Thread | undefined => {
    const parent = place?.parent ?? undefined
    const found = parent === undefined ? undefined : settings.channels[parent]
    return parent === undefined || found === undefined ? undefined : { id, parent, settings: found }
  })

// Handles one message.

const mentions = ({ discord }: Inbox, message: Message) =>
  (message.mentions ?? []).some(({ id }) => id === discord.self.id)

const isOfPerson = ({ author, type, webhook_id }: Message) =>
  author.bot !== true && webhook_id === undefined && (type === 0 || type === 19)

const mayAsk = (found: ChannelSettings, message: Message) =>
  Effect.map(insistently(rolesOf(found, message)), (roles) => may(found, { id: message.author.id, roles }, "ask"))

/** Nothing that one message does may end the bot, except that its own database fails. */
const contained = (
  { outbox }: Inbox,
  { channel_id: channel, id }: Message,
  work: Effect.Effect<void, { readonly _tag: string; readonly message: string } | OutboxFailed, Services>
) =>
  Effect.catchAll(work, (error) =>
    error instanceof OutboxFailed
      ? Effect.fail(error)
      : Effect.zipRight(
          Effect.annotateLogs(Effect.logError(error.message), { channel, message: id }),
          outbox.setProblem(channel, error.message)
        )
  )

/**
 * Opens a thread. Its lane waits until the first prompt is admitted. If the thread was open before, the messages that the
 * bot missed there are handled first.
 */
const opening = <E, R>(inbox: Inbox, id: string, open: (wasOpen: Effect.Effect<void>) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const isBegun = yield* Deferred.make<void>()
    let isOpen = false
    const missedThere = Effect.gen(function* () {
      if (isOpen && (yield* inbox.outbox.place(id)) !== undefined) yield* catchUpOn(inbox, id)
    })
    yield* inbox.lanes.add(id, Effect.zipRight(Deferred.await(isBegun), missedThere))
    yield* Effect.ensuring(open(Effect.sync(() => void (isOpen = true))), Deferred.succeed(isBegun, undefined))
  })

/** Handles a message of a channel or thread whose place is known. */
const handle = Effect.fnUntraced(function* (inbox: Inbox, message: Message) {
  const { outbox, settings } = inbox
  const { channel_id: channel, id } = message
  const place = yield* outbox.place(channel)
  if (place === undefined || isHandled(place.last, id)) return
  const root = settings.channels[channel]
  const of = root === undefined ? yield* threadOf(inbox, channel) : undefined
  const found = root ?? of?.settings
  if (found !== undefined && isOfPerson(message) && (of !== undefined || mentions(inbox, message))) {
    const work = Effect.gen(function* () {
      if (!(yield* mayAsk(found, message)))
        return yield* Effect.logDebug(`${message.author.id} may not ask in ${channel}`)
      yield* of === undefined ? opening(inbox, id, (wasOpen) => open(found, message, wasOpen)) : admit(of, message)
      if (place.problem !== null) yield* outbox.setProblem(channel, null)
    })
    yield* contained(inbox, message, work)
  }
  yield* outbox.handled(channel, id)
})

/** The parent of a channel that is in no settings and no place; undefined if it is not one of the bot's. */
const parentOf = Effect.fnUntraced(function* ({ discord, settings, unknown }: Inbox, channel: string) {
  if (unknown.has(channel)) return unknown.get(channel)
  const found = yield* Effect.option(insistently(Messages.channel(discord, channel)))
  const parent = found._tag === "Some" ? (found.value.parent_id ?? undefined) : undefined
  const ours = parent !== undefined && settings.channels[parent] !== undefined ? parent : undefined
  if (unknown.size >= mostUnknown) unknown.clear()
  if (found._tag === "Some") unknown.set(channel, ours)
  return ours
})

/** A message of the bot that it did not write: another program uses its token. */
const ofAnother = Effect.fnUntraced(function* ({ outbox }: Inbox, message: Message) {
  const { channel_id: channel, id, interaction_metadata, type, webhook_id } = message
  if (type !== 0 || interaction_metadata != null || webhook_id !== undefined) return
  if ((yield* outbox.place(channel)) === undefined || (yield* outbox.isExplained(channel, id))) return
  const problem = "another program posts with the bot's token: run one bot for each token"
  yield* Effect.annotateLogs(Effect.logWarning(problem), { channel, message: id })
  yield* outbox.setProblem(channel, problem)
})

/** Handles a message in the lane of its thread, if it is one of the bot's, or a person mentions the bot there. */
const inThread = Effect.fnUntraced(function* (inbox: Inbox, message: Message) {
  const { lanes, outbox } = inbox
  const { channel_id: channel, id } = message
  if ((yield* outbox.place(channel)) !== undefined) return yield* handle(inbox, message)
  const parent = yield* parentOf(inbox, channel)
  if (parent === undefined) return
  const afterParent = Effect.gen(function* () {
    if ((yield* outbox.place(channel)) === undefined) {
      if (!mentions(inbox, message)) return
      // A thread that a person opened: the bot joins where it is mentioned.
      yield* outbox.addPlace(channel, parent, String(BigInt(id) - 1n))
    }
    yield* lanes.add(channel, handle(inbox, message))
  })
  // The thread may be one that its parent's lane is about to open.
  yield* lanes.add(parent, afterParent)
})

export const message = (inbox: Inbox, given: Message): Effect.Effect<void> => {
  const { behind, discord, lanes, settings } = inbox
  const { channel_id: channel } = given
  if (behind.has(channel)) return Effect.void
  if (given.author.id === discord.self.id) return lanes.add(channel, ofAnother(inbox, given))
  return lanes.add(channel, (settings.channels[channel] === undefined ? inThread : handle)(inbox, given))
}

// Reads the messages that were written while the bot was away.

const missed = Effect.fnUntraced(function* (inbox: Inbox, channel: string, last: string) {
  let [place, read] = [last, 0]
  for (;;) {
    const messages = yield* Messages.after(inbox.discord, channel, place)
    const some = messages.slice(0, mostMissed - read)
    yield* Effect.forEach(some, (each) => handle(inbox, each), { discard: true })
    read += some.filter(isOfPerson).length
    place = some.at(-1)?.id ?? place
    if (some.length < messages.length) return { read, isAll: false }
    if (messages.length < 100) return { read, isAll: true }
  }
})

/** Begins to read a channel at its newest message. */
const beginAt = Effect.fnUntraced(function* ({ discord, outbox }: Inbox, channel: string) {
  if ((yield* outbox.place(channel)) !== undefined) return
  const { last_message_id } = yield* Messages.channel(discord, channel)
  yield* outbox.addPlace(channel, null, last_message_id ?? channel)
})

/** What the bot says of the messages that it missed. */
const awayText = (read: number, isAll: boolean): string =>
  isAll
    ? `-# I was away: ${read === 1 ? "one message" : `${read} messages`} from then ${read === 1 ? "is" : "are"} read now.`
    : `⚠️ I was away, and read only ${read} messages from then. Please write the later ones again.`

/** Handles the missed messages of a channel, and posts how many there were. */
const readMissed = Effect.fnUntraced(function* (inbox: Inbox, channel: string) {
  const { behind, discord, outbox, sender } = inbox
  const isAgain = behind.delete(channel)
  const place = yield* outbox.place(channel)
  if (place === undefined) return yield* beginAt(inbox, channel)
  const last = place.last ?? channel
  // Later messages wait: handled before, they would move the place behind those that were missed.
  const { isAll, read } = yield* insistently(missed(inbox, channel, last))
  const of = yield* threadOf(inbox, channel)
  if (of !== undefined) yield* whenever(insistently(Admission.compare(of)))
  if (isAgain) yield* outbox.setProblem(channel, null)
  if (!isAll) {
    const { last_message_id } = yield* insistently(Messages.channel(discord, channel))
    if (last_message_id != null) yield* outbox.handled(channel, last_message_id)
  }
  if (isAll && (place.parent === null || read === 0)) return
  const key = { sessionID: sessionOf(channel), event: `away:${last}`, chunk: 0 }
  yield* outbox.put(channel, { type: "post", key, body: { content: awayText(read, isAll) } })
  yield* sender.wake(channel)
})

/** Handles the missed messages of a channel. Retries while Discord refuses to list them. */
const catchUpOn = (inbox: Inbox, channel: string): Work =>
  readMissed(inbox, channel).pipe(
    Effect.tapErrorTag("DiscordError", (error) => {
      if (!isRefusal(error)) return Effect.void
      inbox.behind.add(channel)
      return Effect.zipRight(inbox.outbox.setProblem(channel, error.message), warned(channel, error))
    }),
    Effect.retry({ schedule: slowly, while: isRefusal }),
    Effect.catchAll((error) => {
      if (error instanceof OutboxFailed) return Effect.fail(error)
      const isGone = error._tag === "DiscordError" && error.reason === "channel-gone"
      return isGone ? inbox.outbox.closed(channel, error.message) : warned(channel, error)
    })
  )

/** Does work about a thread in the thread's lane, after what its channel's lane has begun. */
const changed = (
  inbox: Inbox,
  channel: string,
  message: string,
  work: (of: Thread) => Effect.Effect<void, Failure, Services>
) => {
  const afterChannel = Effect.gen(function* () {
    // A thread may begin with a message of its parent.
    const of = (yield* threadOf(inbox, channel)) ?? (yield* threadOf(inbox, message))
    if (of !== undefined) yield* inbox.lanes.add(of.id, attempted(of.id, work(of)))
  })
  return inbox.lanes.add(channel, afterChannel)
}

export const edited = (inbox: Inbox, given: Message) =>
  isOfPerson(given) ? changed(inbox, given.channel_id, given.id, (of) => Admission.edited(of, given)) : Effect.void

export const deleted = (inbox: Inbox, channel: string, ids: ReadonlyArray<string>) =>
  Effect.forEach(ids, (id) => changed(inbox, channel, id, (of) => Admission.deleted(of, id)), { discard: true })

/** Opens the thread of a message of the bot. */
export const begun = (inbox: Inbox, beginning: Beginning) => {
  const { channel, message } = beginning
  const found = inbox.settings.channels[channel]
  if (found === undefined) return Effect.void
  const opened = opening(inbox, message, (wasOpen) => beginThread(found, beginning, wasOpen))
  return inbox.lanes.add(channel, attempted(channel, opened))
}

/** Finds the place in channels that are read for the first time, before the gateway is opened. */
export const begin = (inbox: Inbox) =>
  Effect.forEach(
    Object.keys(inbox.settings.channels),
    (channel) =>
      Effect.catchIf(
        beginAt(inbox, channel),
        (error) => error._tag === "DiscordError" && error.reason !== "unauthorized",
        (error) => warned(channel, error)
      ),
    { discard: true }
  )

/** Reads the messages after the last handled one. */
export const catchUp = Effect.fnUntraced(function* (inbox: Inbox) {
  const { behind, lanes, outbox, settings } = inbox
  const places = yield* outbox.places
  const threads = places
    .filter(({ closed, parent }) => closed === 0 && parent !== null && settings.channels[parent] !== undefined)
    .toSorted((a, b) => (BigInt(a.last ?? a.channel) < BigInt(b.last ?? b.channel) ? 1 : -1))
    .slice(0, mostThreads)
  /** By channel: its last handled message, and the end of its own reading. */
  const roots = new Map<string, readonly [last: string | null, isRead: Deferred.Deferred<void>]>()
  for (const channel of Object.keys(settings.channels)) {
    const isRead = yield* Deferred.make<void>()
    roots.set(channel, [places.find((place) => place.channel === channel)?.last ?? null, isRead])
    const reading = behind.has(channel) ? Effect.void : catchUpOn(inbox, channel)
    yield* lanes.add(channel, Effect.ensuring(reading, Deferred.succeed(isRead, undefined)))
  }
  for (const { channel, parent } of threads) {
    if (behind.has(channel)) continue
    const root = roots.get(parent ?? "")
    // A thread has the id of its first message. If that one was not handled to its end, its prompt comes first.
    const isBegun = root === undefined || isHandled(root[0], channel) ? Effect.void : Deferred.await(root[1])
    yield* lanes.add(channel, Effect.zipRight(isBegun, catchUpOn(inbox, channel)))
  }
  for (const edit of yield* outbox.edits)
    yield* changed(inbox, edit.channel, edit.message, (of) => Admission.finish(of, edit))
})
