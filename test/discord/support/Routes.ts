/** The table of REST routes. Each says its method, its path, and what it does with the state. */
import { PermissionFlagsBits } from "discord.js"
import { Effect } from "effect"
import * as Bodies from "./Bodies.ts"
import * as Interactions from "./Interactions.ts"
import * as Messages from "./Messages.ts"
import { channelOf, requireBot } from "./Permissions.ts"
import * as Refusal from "./Refusal.ts"
import * as Threads from "./Threads.ts"
import * as Wire from "./Wire.ts"
import { type Channel, type Message, nextId, type World } from "./World.ts"

export interface Request {
  readonly world: World
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly body: unknown
  readonly files: ReadonlyArray<Messages.File>
}

/** The JSON of a 200; absent for a 204. */
export type Answer = Effect.Effect<unknown, Refusal.Refusal>

export interface Route {
  readonly method: string
  /** As `/channels/:channel/messages`; also the name of its bucket. */
  readonly path: string
  /** Needs no token, and is exempt from the limit of all requests. */
  readonly open: boolean
  readonly answer: (request: Request) => Answer
}

const route = (method: string, path: string, answer: Route["answer"], open = false): Route => ({
  method,
  path,
  answer,
  open
})

const param = ({ params }: Request, name: string) => params[name] ?? ""

/** A route of a channel that the bot sees. */
const ofChannel = (method: string, path: string, answer: (request: Request, channel: Channel) => Answer) =>
  route(method, `/channels/:channel${path}`, (request) =>
    Effect.flatMap(channelOf(request.world, param(request, "channel")), (channel) => answer(request, channel))
  )

const sendMessage = ({ world }: Request, message: Effect.Effect<Message, Refusal.Refusal>) =>
  Effect.map(message, (one) => Wire.messageOf(world, one))

const messageBody = ({ body }: Request) => Bodies.decode(Bodies.MessageBody)(body)

const messages = [
  ofChannel("GET", "", ({ world }, channel) => Effect.succeed(Wire.channelOf(world, channel))),
  ofChannel("GET", "/messages", ({ query, world }, channel) =>
    Effect.map(Messages.list(world, channel, query), (found) => found.map((one) => Wire.messageOf(world, one)))
  ),
  ofChannel("POST", "/messages", (request, channel) =>
    Effect.gen(function* () {
      const { files, world } = request
      const message = yield* Messages.create(world, channel, yield* messageBody(request), files)
      return Wire.messageOf(world, message, true)
    })
  ),
  ofChannel("GET", "/messages/:message", (request, channel) =>
    sendMessage(request, Messages.messageOf(request.world, channel, param(request, "message")))
  ),
  ofChannel("PATCH", "/messages/:message", (request, channel) =>
    sendMessage(
      request,
      Effect.flatMap(messageBody(request), (body) =>
        Messages.edit(request.world, channel, param(request, "message"), body, request.files)
      )
    )
  ),
  ofChannel("DELETE", "/messages/:message", (request, channel) =>
    Messages.removeByBot(request.world, channel, param(request, "message"))
  ),
  ofChannel("PUT", "/messages/:message/reactions/:emoji/@me", (request, channel) =>
    Messages.react(request.world, channel, param(request, "message"), param(request, "emoji"), true)
  ),
  ofChannel("DELETE", "/messages/:message/reactions/:emoji/@me", (request, channel) =>
    Messages.react(request.world, channel, param(request, "message"), param(request, "emoji"), false)
  ),
  ofChannel("POST", "/typing", ({ world }, channel) => Messages.requireSend(world, channel, 0))
]

const sendThread = ({ world }: Request, thread: Effect.Effect<Channel, Refusal.Refusal>) =>
  Effect.map(thread, (channel) => Wire.channelOf(world, channel))

const threads = [
  ofChannel("PATCH", "", (request, channel) =>
    sendThread(
      request,
      Effect.flatMap(Bodies.decode(Bodies.ChannelPatch)(request.body), (body) =>
        Threads.change(request.world, channel, body)
      )
    )
  ),
  ofChannel("DELETE", "", ({ world }, channel) =>
    Effect.gen(function* () {
      const { ManageChannels, ManageThreads } = PermissionFlagsBits
      yield* requireBot(world, channel, channel.thread === undefined ? ManageChannels : ManageThreads)
      Threads.destroy(world, channel)
      return Wire.channelOf(world, channel)
    })
  ),
  ofChannel("POST", "/messages/:message/threads", (request, channel) =>
    sendThread(
      request,
      Effect.flatMap(Bodies.decode(Bodies.ThreadBody)(request.body), (body) =>
        Threads.createFrom(request.world, channel, param(request, "message"), body)
      )
    )
  ),
  ofChannel("POST", "/threads", (request, channel) =>
    sendThread(
      request,
      Effect.flatMap(Bodies.decode(Bodies.ThreadBody)(request.body), (body) =>
        Threads.createAlone(request.world, channel, body)
      )
    )
  ),
  ofChannel("GET", "/threads/archived/public", ({ world }, channel) => {
    const found = [...world.channels.values()].filter(
      ({ deleted, thread }) => !deleted && thread?.parentId === channel.id && thread.archived
    )
    return Effect.succeed({ threads: found.map((one) => Wire.channelOf(world, one)), members: [], has_more: false })
  }),
  ofChannel("GET", "/thread-members", ({ world }, channel) =>
    Effect.succeed([...(channel.thread?.members ?? [])].map((id) => Wire.threadMemberOf(world, channel, id)))
  ),
  ...["PUT", "DELETE"].map((method) =>
    ofChannel(method, "/thread-members/:user", (request, channel) => {
      const user = param(request, "user")
      const id = user === "@me" ? request.world.bot.id : user
      return Threads.setMember(request.world, channel, id, method === "PUT")
    })
  )
]

/** A route of an interaction's token. */
const ofToken = (method: string, path: string, answer: Route["answer"]) =>
  route(method, `/webhooks/:application/:token${path}`, answer, true)

const interactions = [
  route(
    "POST",
    "/interactions/:interaction/:token/callback",
    (request) =>
      Effect.gen(function* () {
        const { files, query, world } = request
        const body = yield* Bodies.decode(Bodies.CallbackBody)(request.body)
        const [id, token] = [param(request, "interaction"), param(request, "token")]
        const message = yield* Interactions.callback(world, id, token, body, files)
        if (query.get("with_response") !== "true") return undefined
        return {
          interaction: { id, type: 2, response_message_id: message?.id, response_message_loading: body.type === 5 },
          resource: {
            type: body.type,
            ...(message === undefined ? {} : { message: Wire.messageOf(world, message) })
          }
        }
      }),
    true
  ),
  ofToken("POST", "", (request) =>
    sendMessage(
      request,
      Effect.flatMap(messageBody(request), (body) =>
        Interactions.followUp(request.world, param(request, "token"), body, request.files)
      )
    )
  ),
  ofToken("GET", "/messages/:message", (request) =>
    sendMessage(request, Interactions.get(request.world, param(request, "token"), param(request, "message")))
  ),
  ofToken("PATCH", "/messages/:message", (request) =>
    sendMessage(
      request,
      Effect.flatMap(messageBody(request), (body) =>
        Interactions.edit(request.world, param(request, "token"), param(request, "message"), body, request.files)
      )
    )
  ),
  ofToken("DELETE", "/messages/:message", (request) =>
    Interactions.remove(request.world, param(request, "token"), param(request, "message"))
  )
]

const setCommands = ({ body, world }: Request) =>
  Effect.map(Bodies.decode(Bodies.CommandsBody)(body), (commands) => {
    world.commands = commands.map((command) => ({
      type: 1,
      ...command,
      id: nextId(world),
      application_id: world.bot.id,
      version: "1"
    }))
    return world.commands
  })

const application = ({ bot }: World) => ({
  id: bot.id,
  name: bot.username,
  description: "",
  flags: (1 << 15) | (1 << 19),
  bot_public: false
})

/** A route of the guild. */
const ofGuild = (path: string, answer: (request: Request) => Answer) =>
  route("GET", `/guilds/:guild${path}`, (request) =>
    param(request, "guild") === request.world.guildId ? answer(request) : Refusal.unknownGuild()
  )

const active = (world: World) =>
  [...world.channels.values()].filter(({ deleted, thread }) => !deleted && thread?.archived === false)

const guilds = [
  ofGuild("", ({ world }) => Effect.succeed(Wire.guildOf(world))),
  ofGuild("/roles", ({ world }) => Effect.succeed(Wire.guildOf(world)["roles"])),
  ofGuild("/channels", ({ world }) =>
    Effect.succeed(
      [...world.channels.values()]
        .filter(({ deleted, thread }) => !deleted && thread === undefined)
        .map((channel) => Wire.channelOf(world, channel))
    )
  ),
  ofGuild("/threads/active", ({ world }) =>
    Effect.succeed({ threads: active(world).map((channel) => Wire.channelOf(world, channel)), members: [] })
  ),
  ofGuild("/members", ({ world }) => Effect.succeed([...world.members.values()].map(Wire.memberOf))),
  ofGuild("/members/:user", (request) => {
    const member = request.world.members.get(param(request, "user"))
    return member === undefined ? Refusal.unknownMember() : Effect.succeed(Wire.memberOf(member))
  })
]

const self = [
  route("GET", "/gateway/bot", ({ world }) =>
    Effect.succeed({
      url: `ws://127.0.0.1:${world.address.port}`,
      shards: 1,
      session_start_limit: { total: 1000, remaining: 999, reset_after: 1, max_concurrency: 1 }
    })
  ),
  route("GET", "/users/@me", ({ world }) => Effect.succeed(Wire.userOf(world.bot))),
  route("GET", "/users/@me/guilds", ({ world }) => Effect.succeed([Wire.guildOf(world)])),
  route("GET", "/applications/@me", ({ world }) => Effect.succeed(application(world))),
  route("GET", "/oauth2/applications/@me", ({ world }) => Effect.succeed(application(world))),
  route("GET", "/applications/:application/commands", ({ world }) => Effect.succeed(world.commands)),
  route("PUT", "/applications/:application/commands", setCommands),
  route("GET", "/applications/:application/guilds/:guild/commands", ({ world }) => Effect.succeed(world.commands)),
  route("PUT", "/applications/:application/guilds/:guild/commands", setCommands)
]

export const routes: ReadonlyArray<Route> = [...messages, ...threads, ...interactions, ...guilds, ...self]

const patterns = routes.map((one) => ({
  route: one,
  pattern: new RegExp(`^${one.path.replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`)
}))

/** The route of a request, with its parameters decoded. */
export const match = (method: string, path: string) => {
  for (const { pattern, route: one } of patterns) {
    const found = one.method === method ? pattern.exec(path) : null
    if (found === null) continue
    const params = Object.fromEntries(
      Object.entries(found.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)])
    )
    return { route: one, params }
  }
  return undefined
}
