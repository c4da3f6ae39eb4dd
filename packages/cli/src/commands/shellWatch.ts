/** `daybook shell watch`: replays and follows what live shells ran. Spec: SL-113..SL-117, SL-215 in specs/shell.md. */
import { Chunk, Effect, Stream } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { ShellEvent } from "@daybook/shell/record/ShellList"
import * as WatchText from "@daybook/shell/record/WatchText"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { Remote, type Server } from "../host/Remote.ts"
import { withReader } from "../host/Runtime.ts"
import { eventJson } from "../render/EventLine.ts"
import { visible } from "../render/Plain.ts"
import { needsDatabase, UsageError } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"
import * as ShellFeed from "../watch/ShellFeed.ts"

const given = {
  session: Flags.optional("SESSION"),
  after: Flags.integer(
    "after",
    "N",
    "only events after N: a sequence number of the SESSION, without one a position in the log of all sessions",
    -1
  ),
  follow: Flags.toggle("follow", "keep printing new events, also those of other processes"),
  output: Flags.toggle("output", "also print what commands printed: | output, ! errors, ~ late output"),
  serve: Flags.toggle("serve", "serve a live page of the shells on this machine, and print its address"),
  port: Flags.integer("port", "N", "the port of the page (default: a free one)", 1),
  json: Flags.json
}

type Options = FieldValues<typeof given>

/** The session that the words name, if they name one. */
const chosen = Effect.fnUntraced(function* (session: string | undefined) {
  return session === undefined ? undefined : (yield* SessionReference.resolveHere(session)).id
})

const feedOf = (session: SessionID | undefined) =>
  session === undefined ? ShellFeed.ofAll : ShellFeed.ofSession(session)

/** Prints events of live shells, a page at a write. */
const makePrint = Effect.fnUntraced(function* ({ json, output: withOutput, session }: Options) {
  const output = yield* Output
  const options = { sessions: session === undefined, output: withOutput }
  let seen = WatchText.nothingSeen
  const text = (event: ShellEvent): string => {
    if (json) return `${eventJson(event, output.terminal)}\n`
    const [next, lines] = WatchText.watched(seen, event, options)
    seen = next
    return lines.map((line) => `${visible(line)}\n`).join("")
  }
  return (events: ReadonlyArray<ShellEvent>) =>
    events.length === 0 ? Effect.void : output.write(events.map(text).join(""))
})

const print = Effect.fn("Command.shell.watch")(function* (options: Options) {
  const write = yield* makePrint(options)
  const { changes, page } = yield* feedOf(yield* chosen(options.session))
  // Registered before the first read, so that no event is missed between reading and waiting.
  const changed = yield* changes
  let cursor = options.after ?? -1
  while (true) {
    const read = yield* page(cursor)
    yield* write(read.events)
    cursor = read.cursor
    if (read.hasMore) continue
    if (!options.follow) return
    yield* changed
  }
}, Effect.scoped)

/** Prints events of the server's live shells. */
const printOver = Effect.fn("Command.shell.watch.over")(function* (server: Server, options: Options) {
  const write = yield* makePrint(options)
  const { watched } = yield* Effect.promise(() => import("../host/RemoteHost.ts"))
  const { after, follow, session } = options
  yield* Stream.runForEachChunk(watched(server, { after, follow, sessionID: yield* chosen(session) }), (events) =>
    write(Chunk.toReadonlyArray(events))
  )
})

/** Serves the page, which always follows and shows what commands printed. */
const servePage = Effect.fn("Command.shell.watch.serve")(function* (options: Options) {
  const session = yield* chosen(options.session)
  const { serve } = yield* Effect.promise(() => import("../watch/WatchApp.ts"))
  yield* serve({
    feed: yield* feedOf(session),
    session,
    after: options.after ?? -1,
    port: options.port ?? 0,
    json: options.json
  })
})

/** Refuses options that the page does not need, or that need the page. */
const check = ({ follow, output, port, serve }: Options) => {
  if (serve && (follow || output)) {
    const surplus = [...(follow ? ["--follow"] : []), ...(output ? ["--output"] : [])].join(" and ")
    return new UsageError({
      message: `the page of --serve follows and shows what commands print: leave out ${surplus}`
    })
  }
  if (!serve && port !== undefined) return new UsageError({ message: "--port is the port of the page: add --serve" })
  if (port !== undefined && port > 65_535) {
    return new UsageError({ message: `--port: expected a number up to 65535, got ${port}` })
  }
  return Effect.void
}

const run = Effect.fnUntraced(function* (options: Options) {
  yield* check(options)
  const server = yield* Remote
  if (server !== undefined && options.serve) return yield* needsDatabase()
  if (options.serve) return yield* withReader(servePage(options))
  yield* server === undefined ? withReader(print(options)) : withReader(printOver(server, options))
})

export const watch = verb({
  name: "watch",
  summary: "print what live shells ran, and follow them",
  words: "[SESSION]",
  details: [
    "Prints what the live shells of all sessions, or of SESSION (an id, a title, or the beginning of either), ran: each command behind its shell and " +
      "folder, how it ended, what a policy blocked, checkpoints, and why a shell closed. With --follow it goes on until it is " +
      "interrupted. It reads the log and changes nothing; pruned events are left out.",
    "With --json, an event has the same form as in daybook events --json. A reader that stops after an event continues " +
      "with --after and its seq; without SESSION, with its position.",
    "With --serve, a browser on this machine shows the same at the printed address, live. The address has a token: everyone who " +
      "has it can read the page until the command ends. DAYBOOK_WATCH_TOKEN sets the token, for an address that stays."
  ],
  given,
  examples: [
    ["daybook shell watch --follow", "the commands of all live shells, old ones first, then new ones"],
    ["daybook shell watch fix --output", "what the session called fix ran, with the output"],
    ["daybook shell watch --json --after 1200", "the events after position 1200, as JSON"],
    ["daybook shell watch --serve", "a live page of all shells; prints its address"]
  ],
  overServer: true,
  run
})
