/** `daybook shell watch`: replays and follows what live shells ran. Spec: SL-113..SL-117 in specs/shell.md. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import { Effect, Option } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { EventLog } from "@daybook/log/log/EventLog"
import { isShellEvent, type ShellEvent } from "@daybook/shell/record/ShellFact"
import * as WatchText from "@daybook/shell/record/WatchText"
import * as Flags from "../../arguments/Flags.ts"
import * as Folder from "../../arguments/Folder.ts"
import * as SessionReference from "../../arguments/SessionReference.ts"
import type { Verb } from "../../arguments/Verb.ts"
import { withReader } from "../../host/Runtime.ts"
import { eventJson } from "../../render/EventLine.ts"
import { visible } from "../../render/Visible.ts"
import { Output } from "../../terminal/Output.ts"

const follow = Flags.toggle("follow", "keep printing new events, also those of other processes")
const withOutput = Flags.toggle("output", "also print what commands printed: | output, ! errors, ~ late output")
const after = Flags.integer(
  "after",
  "N",
  "only events after N: a sequence number of the SESSION, without one a position in the log of all sessions",
  -1
)

interface Options {
  readonly session: string | undefined
  readonly after: number | undefined
  readonly follow: boolean
  readonly output: boolean
  readonly json: boolean
}

/** Pages of one session from a cursor on, or from its floor. */
const ofSession = (sessionID: SessionID) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const { incarnation } = yield* log.head(sessionID)
    const read = (after: number) => log.read({ sessionID, after, incarnation })
    return {
      changes: log.changes(sessionID),
      page: (after: number) => Effect.catchTag(read(after), "CursorExpired", ({ floor }) => read(floor))
    }
  })

/** Pages of all sessions, without pruned events. */
const ofAll = Effect.map(EventLog, (log) => ({
  changes: log.changes(),
  page: (after: number) =>
    Effect.map(log.readFeed({ after, gaps: true }), ({ events, hasMore, position }) => ({
      events,
      hasMore,
      cursor: position
    }))
}))

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
  const { session } = options
  const write = yield* makePrint(options)
  const { changes, page } =
    session === undefined
      ? yield* ofAll
      : yield* ofSession((yield* SessionReference.resolve(session, yield* Folder.current)).id)
  // Registered before the first read, so that no event is missed between reading and waiting.
  const changed = yield* changes
  let cursor = options.after ?? -1
  while (true) {
    const read = yield* page(cursor)
    yield* write(read.events.filter(isShellEvent))
    cursor = read.cursor
    if (read.hasMore) continue
    if (!options.follow) return
    yield* changed
  }
}, Effect.scoped)

export const watch = {
  name: "watch",
  summary: "prints what live shells ran, and follows",
  words: "[SESSION]",
  details: [
    "Prints what the live shells of all sessions, or of SESSION (an id or a title), ran: each command behind its shell and " +
      "folder, how it ended, what a policy blocked, checkpoints, and why a shell closed. With --follow it goes on until it is " +
      "interrupted. It reads the log and changes nothing; pruned events are left out.",
    "With --json, an event has the same form as in daybook events --json. A reader that stops after an event continues " +
      "with --after and its seq; without SESSION, with its position."
  ],
  flags: [after, follow, withOutput, Flags.json],
  examples: [
    ["daybook shell watch --follow", "the commands of all live shells, old ones first, then new ones"],
    ["daybook shell watch fix --output", "what the session called fix ran, with the output"],
    ["daybook shell watch --json --after 1200", "the events after position 1200, as JSON"]
  ],
  command: Command.make(
    "watch",
    {
      session: Args.optional(Args.text({ name: "SESSION" })),
      after: after.options,
      follow: follow.options,
      output: withOutput.options,
      json: Flags.json.options
    },
    ({ after, session, ...rest }) =>
      withReader(print({ ...rest, session: Option.getOrUndefined(session), after: Option.getOrUndefined(after) }))
  )
} satisfies Verb
