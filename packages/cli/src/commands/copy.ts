/** `daybook copy`: copies all sessions from one database to another. Spec: CL-806..CL-808 in specs/cli.md. */
import { Effect, Layer, Stream } from "effect"
import * as Copy from "@daybook/log/maintenance/Copy"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import * as PlaceStore from "../host/PlaceStore.ts"
import { oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { CopyIncomplete, UsageError } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output, writeJson } from "../terminal/Output.ts"

const run = Effect.fn("Command.copy")(function* (from: string, to: string, json: boolean) {
  const output = yield* Output
  const source = yield* DatabasePath.existingAt(DatabasePath.placeOf(from))
  const target = yield* DatabasePath.writableAt(DatabasePath.placeOf(to))
  if ([source, target].some(({ path }) => path === ":memory:")) {
    return yield* new UsageError({ message: "a database in memory cannot be copied" })
  }
  if (source.path === target.path) return yield* new UsageError({ message: "FROM and TO are the same database" })
  const totals = { copied: 0, events: 0, same: 0, refused: 0 }
  const tell = (found: Copy.Copied | Copy.CopyRefused) => {
    if (found instanceof Copy.CopyRefused) {
      totals.refused += 1
      return output.note(`${oneLine(found.message, 400)}\n`)
    }
    totals.events += found.events
    if (found.events > 0) totals.copied += 1
    else totals.same += 1
    return json ? writeJson(found) : Effect.void
  }
  const sides = [yield* Layer.build(PlaceStore.layer(source)), yield* Layer.build(PlaceStore.layer(target))] as const
  yield* Stream.runForEach(Copy.copy(...sides), tell)
  const { copied, events, refused, same } = totals
  if (!json) {
    const before = same === 0 ? "" : `; ${many(same, "session")} there before`
    yield* output.write(`${many(copied, "session")}, ${many(events, "event")} copied and compared${before}\n`)
  }
  if (refused > 0) return yield* new CopyIncomplete({ message: `${many(refused, "session")} not copied: see above` })
}, Signal.stopping("stopped; the same command continues"))

export const copy = verb({
  name: "copy",
  summary: "copy all sessions from one database to another, of a file or PostgreSQL",
  words: "FROM TO",
  details: [
    "FROM and TO are files, or postgres://USER@HOST:PORT/DATABASE; the variable PGPASSWORD keeps a password out of the list " +
      "of processes. TO is created if it does not exist. Events keep their ids, times and order within a session. Each " +
      "session is compared with its source. Run it again to continue, or to copy what is new.",
    "A session of TO that differs, or that went on there, is refused by name, and stays as it is; so is one whose first events were pruned. The exit " +
      "code is then 1. Do not work with sessions of TO before the copy is complete.",
    "Saved approvals, outputs, and the snapshots that undo needs are not copied."
  ],
  given: { from: Flags.one("FROM"), to: Flags.one("TO"), json: Flags.json },
  examples: [
    ["daybook copy ~/.local/share/daybook/daybook.sqlite postgres://daybook@db.example/daybook", "moves to PostgreSQL"],
    ["daybook copy postgres://daybook@db.example/daybook sessions.sqlite", "copies them to a file"]
  ],
  run: ({ from, json, to }) => run(from, to, json)
})
