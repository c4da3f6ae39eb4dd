/** `daybook sessions`: lists sessions, the last used first. Spec: CL-14. */
import { Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import { Inbox } from "@daybook/log/store/Inbox"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { verb } from "../arguments/Verb.ts"
import * as CutOff from "../host/CutOff.ts"
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
    yield* output.write(table(yield* CutOff.marked(page.items)))
    left -= page.items.length
    cursor = page.cursor
  } while (cursor !== undefined && left > 0)
  if (cursor !== undefined) yield* output.note(`more: --cursor ${cursor}\n`)
})

export const sessions = verb({
  name: "sessions",
  summary: "list sessions, the last used first",
  words: "",
  details: [
    "The columns are: last use (UTC), state, id, title, folder. The state is that of the last activity, cut off if its " +
      "process ended before it was done, or waiting if prompts wait for a run: daybook resume runs both."
  ],
  given: { cwd, search, limit, cursor, json: Flags.json },
  examples: [
    ["daybook sessions --cwd .", "the sessions of this folder"],
    ['daybook sessions --search "login page" --json', "the matching sessions, as JSON"]
  ],
  overServer: true,
  run: (given) =>
    withReader(
      run({
        cwd: given.cwd,
        search: given.search,
        limit: given.limit ?? 50,
        cursor: given.cursor,
        json: given.json
      })
    )
})
