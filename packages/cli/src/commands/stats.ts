/** `daybook stats`: where the bytes of the database are. Spec: CL-194..CL-196. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { Remote } from "../host/Remote.ts"
import { withReader } from "../host/Runtime.ts"

const work = Effect.promise(() => import("../host/StatsWork.ts"))

const exact = Flags.toggle("exact", "read everything, also if the database is large")

/** The id of a session that is named by id or title. */
const idOf = (session: string) =>
  withReader(
    Effect.flatMap(Folder.current, (directory) =>
      Effect.map(SessionReference.resolve(session, directory), ({ id }) => id)
    )
  )

export const stats = verb({
  name: "stats",
  summary: "show where the bytes of the database are",
  words: "[SESSION]",
  details: [
    "It prints the size of the file and of its free pages, and the bytes by table, type of event, day and session. With " +
      "SESSION, an id or a title, it counts that session's events only, and says what the session did: turns, tool calls, time at work, tokens and cost. The columns are bytes, events, name. It also says what " +
      "`daybook prune` can remove, and estimates what that would free.",
    "Nothing is changed. Unless --exact is given, the numbers of a database with more than 500,000 events are estimated from " +
      "a sample, without what prune can remove, and the tables of one above 1 GiB are omitted."
  ],
  given: { session: Flags.optional("SESSION"), exact, json: Flags.json },
  examples: [
    ["daybook stats", "shows what takes the space"],
    ["daybook stats fix", "shows the turns, tokens and cost of the session called fix, and its bytes"],
    ["daybook stats --json | jq '.largest[0]'", "prints the largest session"]
  ],
  overServer: true,
  run: ({ exact, json, session }) =>
    Effect.gen(function* () {
      const server = yield* Remote
      const database = server === undefined ? yield* DatabasePath.existing : undefined
      const sessionID = session !== undefined ? yield* idOf(session) : undefined
      const { run, runOver } = yield* work
      const wanted = { sessionID, exact, json }
      if (server !== undefined) yield* runOver(server, wanted)
      else if (database !== undefined) yield* run(database, wanted)
    })
})
