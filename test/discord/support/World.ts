/**
 * The state of the loopback Discord: one plain object that the tests' laws read. The other files of this folder change it:
 * `Messages.ts`, `Threads.ts`, `Interactions.ts` as REST asks them to, `People.ts` as members act, `Gateway.ts` for sessions.
 *
 * The server has a clock of its own: the real one plus an offset that a test moves. Ids, the nonce window, rate limits and the
 * lives of interaction tokens follow it.
 */
import type { FaultPlan } from "./Faults.ts"

export interface User {
  readonly id: string
  readonly username: string
  readonly bot: boolean
}

export interface Member {
  readonly user: User
  roles: ReadonlyArray<string>
}

export interface Role {
  readonly id: string
  readonly name: string
  permissions: bigint
}

/** Permissions of a role or a member in one channel. */
export interface Overwrite {
  readonly id: string
  readonly type: 0 | 1
  readonly allow: bigint
  readonly deny: bigint
}

export interface Thread {
  readonly parentId: string
  readonly ownerId: string
  readonly createdAt: number
  archivedAt: number
  archived: boolean
  locked: boolean
  autoArchive: number
  readonly members: Set<string>
}

export interface Channel {
  readonly id: string
  name: string
  overwrites: ReadonlyArray<Overwrite>
  readonly thread?: Thread
  /** Every message that was created, in order; those that were deleted keep their place. */
  readonly messages: Array<Message>
  deleted: boolean
}

export interface Attachment {
  readonly id: string
  readonly filename: string
  readonly contentType: string
  readonly bytes: Uint8Array
}

export type Json = Readonly<Record<string, unknown>>

export interface Message {
  readonly id: string
  readonly channelId: string
  readonly type: number
  readonly author: User
  content: string
  attachments: ReadonlyArray<Attachment>
  components: ReadonlyArray<Json>
  embeds: ReadonlyArray<Json>
  /** Who is notified by the message as it was created. */
  pings: { readonly everyone: boolean; readonly users: ReadonlyArray<string>; readonly roles: ReadonlyArray<string> }
  flags: number
  readonly nonce: string | number | undefined
  /** The interaction that it answers. */
  readonly answerTo: { readonly id: string; readonly userId: string } | undefined
  readonly reference: { readonly channelId: string; readonly messageId: string } | undefined
  readonly createdAt: number
  editedAt: number | undefined
  deleted: boolean
  threadId: string | undefined
  /** Every text that the message had, with the last one. */
  readonly revisions: Array<string>
  /** By emoji, the users that reacted. */
  readonly reactions: Map<string, Set<string>>
}

export interface Interaction {
  readonly id: string
  readonly token: string
  readonly createdAt: number
  readonly channelId: string
  readonly userId: string
  /** The message whose component was used. */
  readonly source: Message | undefined
  answer: "none" | "deferred" | "answered" | "modal"
  ephemeral: boolean
  /** The reply, and the follow-ups: ephemeral ones are not in the channel. */
  original: Message | undefined
  readonly followUps: Array<Message>
}

export interface Asked {
  readonly at: number
  readonly method: string
  readonly path: string
  readonly body: unknown
  /** 0 until it is answered, and for ever if the answer is withheld. */
  status: number
  fault: string | undefined
}

export interface Dispatch {
  readonly s: number
  readonly t: string
  readonly d: Json
}

export interface GatewaySession {
  readonly id: string
  readonly intents: number
  seq: number
  /** The events that a resume repeats, the oldest first. */
  readonly events: Array<Dispatch>
  /** Absent while no connection is open. */
  send: ((event: Dispatch) => void) | undefined
}

export interface Bucket {
  readonly route: string
  remaining: number
  resetAt: number
}

/** `limit` requests in `window` milliseconds. */
export interface Limit {
  readonly limit: number
  readonly window: number
}

export interface Settings {
  readonly token: string
  /** The intents that the application may ask for at first. */
  readonly intents: number
  /** How long `enforce_nonce` remembers a nonce. */
  readonly nonceWindow: number
  readonly limitOf: (method: string, route: string) => Limit
  readonly global: Limit
  readonly heartbeat: number
  /** How many events a gateway session keeps for a resume. */
  readonly kept: number
}

export interface World {
  readonly settings: Settings
  readonly faults: FaultPlan
  readonly clock: { offset: number; last: number; count: number }
  /** Set when the server listens. */
  readonly address: { port: number }
  /**
   * What the gateway does: acknowledge heartbeats, accept resumes, and announce the guild after so many heartbeats of a
   * connection.
   */
  readonly gateway: {
    acknowledges: boolean
    resumes: boolean
    intents: number
    heartbeats: number
    announcesAfter: number
  }
  readonly guildId: string
  readonly bot: User
  readonly members: Map<string, Member>
  readonly roles: Map<string, Role>
  readonly channels: Map<string, Channel>
  readonly nonces: Map<string, { readonly message: Message; readonly at: number }>
  readonly attachments: Map<string, Attachment>
  readonly interactions: Map<string, Interaction>
  commands: ReadonlyArray<Json>
  readonly buckets: Map<string, Bucket>
  global: { remaining: number; resetAt: number }
  /** What the limits refused; refusals of the fault plan are not among them. */
  readonly limited: Array<{ readonly at: number; readonly route: string; readonly global: boolean }>
  readonly asked: Array<Asked>
  /** Open HTTP connections: none once a client that was killed can do nothing more. */
  readonly connections: Set<unknown>
  readonly sessions: Map<string, GatewaySession>
  /** The close codes of connections that ended, and who ended them. */
  readonly closed: Array<{ readonly by: "server" | "client"; readonly code: number }>
  /** Defects of the loopback itself. */
  readonly defects: Array<unknown>
  /** Runs after each change. */
  readonly watchers: Set<() => void>
}

export const everyone = "800000000000000001"

const epoch = 1_420_070_400_000

export const now = (world: World): number => Date.now() + world.clock.offset

/** The next id: later ids are greater, and tell the server's time as Discord's do. */
export const nextId = (world: World): string => {
  const at = Math.max(now(world), world.clock.last)
  world.clock.count = at === world.clock.last ? world.clock.count + 1 : 0
  world.clock.last = at
  return String((BigInt(at - epoch) << 22n) | BigInt(world.clock.count))
}

/** Lets those that wait look at the state again. */
export const changed = (world: World): void => {
  for (const watcher of world.watchers) watcher()
}

/** The messages of a channel that a reader sees. */
export const visible = (channel: Channel): ReadonlyArray<Message> => channel.messages.filter(({ deleted }) => !deleted)

const permissive = (1n << 50n) - 1n - 8n

/** A guild with one channel, `general`, the bot, and no member. */
export const makeWorld = (settings: Settings, faults: FaultPlan): World => {
  const bot: User = { id: "900000000000000001", username: "daybook", bot: true }
  const world: World = {
    settings,
    faults,
    clock: { offset: 0, last: 0, count: 0 },
    address: { port: 0 },
    gateway: { acknowledges: true, resumes: true, intents: settings.intents, heartbeats: 0, announcesAfter: 0 },
    guildId: everyone,
    bot,
    members: new Map([[bot.id, { user: bot, roles: [] }]]),
    // Every permission except to administrate, which would make overwrites void.
    roles: new Map([[everyone, { id: everyone, name: "@everyone", permissions: permissive }]]),
    channels: new Map(),
    nonces: new Map(),
    attachments: new Map(),
    interactions: new Map(),
    commands: [],
    buckets: new Map(),
    global: { remaining: settings.global.limit, resetAt: 0 },
    limited: [],
    asked: [],
    connections: new Set(),
    sessions: new Map(),
    closed: [],
    defects: [],
    watchers: new Set()
  }
  world.channels.set("700000000000000001", {
    id: "700000000000000001",
    name: "general",
    overwrites: [],
    messages: [],
    deleted: false
  })
  return world
}
