/** `daybook sessions`: lists sessions, the last used first. Spec: CL-14. */
import * as Command from "@effect/cli/Command"
import { Effect, Option } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import * as CutOff from "@daybook/log/coordination/CutOff"
import type { Session } from "@daybook/log/domain/Message"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import type { Verb } from "../arguments/Verb.ts"
import { withReader } from "../host/Runtime.ts"
import { sessionJson, sessionTable } from "../render/SessionLine.ts"
import { Output } from "../terminal/Output.ts"

const cwd = Flags.text("cwd", "DIR", "only sessions of this folder")
const search = Flags.text("search", "TEXT", "only sessions with this text in their title or a prompt")
const limit = Flags.integer("limit", "N", "at most N sessions (default: 50)", 1)
const cursor = Flags.text("cursor", "C", "the page after the one that printed this cursor")

const run = Effect.fn("Command.sessions")(function* (options: {
  readonly cwd: string | undefined
  readonly search: string | undefined
  readonly limit: number
  readonly cursor: string | undefined
  readonly json: boolean
}) {
  const output = yield* Output
  const sessions = yield* SessionStore
  const directory = options.cwd === undefined ? undefined : yield* Folder.selected(options.cwd)
  const waiting = options.json ? new Set<SessionID>() : new Set((yield* (yield* Inbox).sessions).map(({ id }) => id))
  const table = (items: ReadonlyArray<Session>) =>
    options.json
      ? items.map((session) => `${sessionJson(session, output.terminal)}\n`).join("")
      : sessionTable(items, waiting)
  let left = options.limit
  let cursor = options.cursor
  do {
    const page = yield* sessions.list({ directory, search: options.search, limit: Math.min(left, 500), cursor })
    yield* output.write(table(yield* CutOff.findHere(page.items)))
    left -= page.items.length
    cursor = page.cursor
  } while (cursor !== undefined && left > 0)
  if (cursor !== undefined) yield* output.note(`more: --cursor ${cursor}\n`)
})

export const sessions = {
  name: "sessions",
  summary: "list sessions, the last used first",
  words: "",
  details: [
    "The columns are: last use (UTC), state, id, title, folder. The state is that of the last activity, cut off if its " +
      "process ended before it was done, or waiting if prompts wait for a run: daybook resume runs both."
  ],
  flags: [cwd, search, limit, cursor, Flags.json],
  examples: [
    ["daybook sessions --cwd .", "the sessions of this folder"],
    ['daybook sessions --search "login page" --json', "the matching sessions, as JSON"]
  ],
  command: Command.make(
    "sessions",
    {
      cwd: cwd.options,
      search: search.options,
      limit: limit.options,
      cursor: cursor.options,
      json: Flags.json.options
    },
    (given) =>
      withReader(
        run({
          cwd: Option.getOrUndefined(given.cwd),
          search: Option.getOrUndefined(given.search),
          limit: Option.getOrElse(given.limit, () => 50),
          cursor: Option.getOrUndefined(given.cursor),
          json: given.json
        })
      )
  )
} satisfies Verb
