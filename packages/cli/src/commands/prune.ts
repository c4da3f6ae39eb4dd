/** `daybook prune`: removes old events of sessions, archives them, and puts archives back. Spec: CL-200..CL-205. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { ageOf, ageRule, sizeOf, sizeRule } from "../support/Amounts.ts"
import { UsageError } from "../support/Errors.ts"

const orRule = <A>(value: A | undefined, rule: string) =>
  value === undefined ? Effect.fail(rule) : Effect.succeed(value)

const keep = Flags.value("keep", "AGE", "keep the events of this age, for example 90d", (given) =>
  orRule(ageOf(given), ageRule)
)
const maxSize = Flags.value("max-size", "SIZE", "prune until the file is at most this size, for example 2GB", (given) =>
  orRule(sizeOf(given), sizeRule)
)
const to = Flags.value<number | "compaction">(
  "to",
  "SEQ|compaction",
  "prune up to this sequence number, or to the last compaction",
  (given) =>
    given === "compaction"
      ? Effect.succeed(given)
      : orRule(/^\d{1,15}$/.test(given) ? Number(given) : undefined, "a sequence number, or compaction")
)
const yes = Flags.toggle("yes", "remove the events; without it, only show what would go")
const archive = Flags.text("archive", "DIR", "first write the events to compressed files in this folder")
const restore = Flags.text("restore", "FILE", "put the events of an archive back")
const force = Flags.toggle("force", "also remove events that a registered consumer has not read")

export const prune = verb({
  name: "prune",
  summary: "remove old events and shrink the database",
  words: "[SESSION...]",
  details: [
    "Without --yes it lists the events that would go, and changes nothing. SESSION is an id or a title; default: all " +
      "sessions, the one unused for the longest time first. A session is cut only where an activity ended and nothing was " +
      "open. Messages, contexts, files and search stay as they are; the events themselves can no longer be followed or " +
      "listed, and files of such a session are no longer compared or rebuilt. The snapshots of their turns go too, so undo " +
      "restores no file of them. Registered consumers that have not read the events hold them back.",
    "Free pages are given back to the file system in small steps, while other processes work. Ctrl-C stops between two " +
      "steps: each session is then either as before or pruned. --archive keeps the events as JSON lines, one file per " +
      "session; --restore puts such a file back exactly, or refuses and says why. The exit code is 1 if a session could not " +
      "be pruned or --max-size was not reached."
  ],
  given: { sessions: Flags.many("SESSION"), keep, maxSize, to, archive, yes, force, restore, json: Flags.json },
  examples: [
    ["daybook prune --keep 90d", "shows what is older than 90 days"],
    ["daybook prune --keep 90d --archive ~/archive --yes", "archives it and removes it"],
    ["daybook prune --max-size 2GB --yes", "prunes the longest unused sessions until the file has 2 GB"],
    ["daybook prune fix --to compaction --yes", "prunes one session up to its last compaction"],
    ["daybook prune --restore ~/archive/ses_fix.12.0-950.jsonl.gz", "puts the events of an archive back"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const request = {
        sessions: given.sessions,
        keep: given.keep,
        maxSize: given.maxSize,
        to: given.to,
        archive: given.archive,
        yes: given.yes,
        force: given.force,
        json: given.json
      }
      const file = given.restore
      const bounded = request.keep !== undefined || request.maxSize !== undefined || request.to !== undefined
      if (file !== undefined && (bounded || request.sessions.length > 0 || request.archive !== undefined)) {
        return yield* new UsageError({ message: "daybook prune --restore FILE takes nothing else but --json" })
      }
      if (file === undefined && !bounded) {
        return yield* new UsageError({ message: "say what may go: give --keep AGE, --max-size SIZE or --to SEQ" })
      }
      const filename = yield* DatabasePath.existing
      const work = yield* Effect.promise(() => import("../host/PruneWork.ts"))
      yield* file === undefined ? work.run(filename, request) : work.putBack(filename, file, request.json)
    })
})
