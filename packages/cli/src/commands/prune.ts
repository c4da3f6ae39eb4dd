/** `daybook prune`: removes old events of sessions, archives them, and puts archives back. Spec: CL-200..CL-205. */
import { resolve } from "node:path"
import { Effect, Either, Option, Stream } from "effect"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Upkeep from "@daybook/core/snapshot/Upkeep"
import { isGone } from "@daybook/files/record/LedgerFile"
import { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import * as Pace from "@daybook/log/retention/Pace"
import type { Cut, Holders } from "@daybook/log/retention/Plan"
import * as Retention from "@daybook/log/retention/Retention"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import type { Place } from "../config/DatabasePath.ts"
import * as PlaceStore from "../host/PlaceStore.ts"
import { oneLine } from "../render/Plain.ts"
import { added, cutJson, cutLine, heading, none, totalsLine } from "../host/StatsMeasure.ts"
import { ageOf, ageRule, many, sizeOf, sizeRule, sizeText } from "../support/Amounts.ts"
import { Interrupted, PruneIncomplete, UsageError } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output, reporting, writeJson } from "../terminal/Output.ts"

const chosen = ({ sessions }: Request) =>
  sessions.length === 0
    ? Effect.succeed(undefined)
    : Effect.forEach(sessions, (text) => Effect.map(SessionReference.exactly(text), ({ id }) => id))

/** Without the roots of session files that were removed. */
const present =
  (holders: Holders): Holders =>
  (sessionID) =>
    Effect.flatMap(
      holders(sessionID),
      Effect.filter(({ name }) => isGone(name), { negate: true })
    )

const retained = Effect.fnUntraced(function* (request: Request) {
  const { keep, maxSize, to } = request
  const sessions = yield* chosen(request)
  const consumers = yield* ConsumerStore
  const holders = request.force ? Retention.noHolders : present(Retention.consumersOf(consumers))
  return { sessions, keep, maxSize, to, holders } satisfies Retention.Request
})

/** Writes what would go. */
const show = Effect.fn("Command.prune.show")(function* (request: Request) {
  const [output, wanted] = [yield* Output, yield* retained(request)]
  let totals = none
  if (!request.json) yield* output.write(heading)
  yield* Stream.runForEach(Retention.plan(wanted), (cut) => {
    totals = added(totals, cut)
    return request.json ? writeJson(cutJson(cut)) : output.write(cutLine(cut))
  })
  const frees = Retention.estimatedBytes(totals)
  yield* request.json ? writeJson({ total: { ...totals, frees } }) : output.write(totalsLine(totals, frees))
  if (!request.json) {
    const snapshots = totals.sessions === 0 ? "" : ", and the snapshots of files that undo needs for their turns"
    yield* output.note(`nothing was removed; --yes removes the events${snapshots}\n`)
  }
})

/** Counts copied and deleted events. On a terminal it reports the counts every few seconds. */
const account = Effect.gen(function* () {
  const done = { cuts: [] as Array<Cut>, current: undefined as Cut | undefined, copied: 0, deleted: 0, pages: 0 }
  yield* reporting("5 seconds", () => {
    const counts = [many(done.cuts.length, "session"), `${many(done.deleted, "event")} removed`]
    return `still working: ${counts.join(", ")}, ${many(done.pages, "page")} given back`
  })
  return done
})

type Done = Effect.Effect.Success<typeof account>

const optionsOf = (request: Request, done: Done): Retention.RunOptions => ({
  pace: Pace.brisk,
  archive: request.archive === undefined ? undefined : resolve(request.archive),
  starts: (cut) => Effect.sync(() => void (done.current = cut)),
  progress: ({ copied, deleted }) =>
    Effect.sync(() => {
      done.copied += copied
      done.deleted += deleted
    }),
  pruned: (cut) =>
    Effect.sync(() => {
      done.cuts.push(cut)
      done.current = undefined
    }),
  freed: (pages) => Effect.sync(() => void (done.pages += pages))
})

/** What an interrupted prune did: the session in the middle is pruned if its floor was raised. */
const interrupted = Effect.fnUntraced(function* ({ current, cuts }: Done) {
  const pruned = current !== undefined && (yield* Retention.isPruned(current))
  const all = pruned ? [...cuts, current] : cuts
  const events = all.reduce((sum, cut) => sum + cut.events, 0)
  const rest = pruned ? "; the next prune gives the space of the last one back" : ""
  return yield* new Interrupted({
    message: `stopped: ${many(all.length, "session")}, ${many(events, "event")} pruned${rest}`
  })
})

/** Erases the snapshots of pruned turns. */
const withoutSnapshots = (filename: string) =>
  Effect.flatMap(Upkeep.times, (times) => Upkeep.forgetUntil(Snapshots.folderBeside(filename), times)).pipe(
    Effect.mapError(({ message }) => new PruneIncomplete({ message: `snapshots of pruned turns are left: ${message}` }))
  )

const report = Effect.fnUntraced(function* ({ _tag, path }: Place, request: Request, outcome: Retention.Outcome) {
  const output = yield* Output
  const { after, archives, before, events, failed, sessions } = outcome
  const snapshots = yield* Effect.either(withoutSnapshots(path))
  const erased = Either.getOrElse(snapshots, () => 0)
  if (request.json) yield* writeJson({ ...outcome, snapshots: erased })
  else {
    const space =
      _tag === "File"
        ? `the database went from ${sizeText(before)} to ${sizeText(after)}`
        : "PostgreSQL's vacuum keeps the space for later rows"
    yield* output.write(`${many(sessions, "session")}, ${many(events, "event")} pruned; ${space}\n`)
    if (erased > 0) yield* output.write(`${many(erased, "snapshot")} of files erased\n`)
    for (const path of archives) yield* output.write(`archived: ${oneLine(path, 400)}\n`)
  }
  for (const { reason, sessionID } of failed)
    yield* output.note(`${sessionID} was not pruned: ${oneLine(reason, 400)}\n`)
  if (request.maxSize !== undefined && after > request.maxSize) {
    const message = `the database has ${sizeText(after)}, more than ${sizeText(request.maxSize)}: nothing else may go`
    return yield* new PruneIncomplete({ message })
  }
  if (failed.length > 0) return yield* new PruneIncomplete({ message: `${many(failed.length, "session")} not pruned` })
  yield* snapshots
})

/** Prunes until done or until a signal. */
const act = Effect.fn("Command.prune")(function* (place: Place, request: Request) {
  const done = yield* account
  const wanted = yield* retained(request)
  const signal = yield* Signal.first
  const outcome = yield* Effect.raceFirst(
    Effect.asSome(Retention.run(wanted, optionsOf(request, done))),
    Effect.as(signal, Option.none<Retention.Outcome>())
  )
  yield* Option.match(outcome, {
    onNone: () => interrupted(done),
    onSome: (outcome) => report(place, request, outcome)
  })
})

/** Shows what a request would remove, or removes it. */
const run = (place: Place, request: Request) =>
  Effect.scoped(request.yes ? act(place, request) : show(request)).pipe(Effect.provide(PlaceStore.layer(place)))

const putBack = Effect.fn("Command.prune.restore")(function* (place: Place, file: string, json: boolean) {
  const { events, header } = yield* Effect.provide(
    Retention.restore(resolve(file), { pace: Pace.brisk }),
    PlaceStore.layer(place)
  )
  const { from, sessionID } = header
  yield* json
    ? writeJson({ sessionID, events, floor: from })
    : (yield* Output).write(`${many(events, "event")} of ${sessionID} are back\n`)
})

const orRule = <A>(value: A | undefined, rule: string) =>
  value === undefined ? Effect.fail(rule) : Effect.succeed(value)

const given = {
  sessions: Flags.many("SESSION"),
  keep: Flags.value("keep", "AGE", "keep events that are at most this old, for example 90d", (text) =>
    orRule(ageOf(text), ageRule)
  ),
  maxSize: Flags.value(
    "max-size",
    "SIZE",
    "prune until the file is at most this size, for example 2GB; on PostgreSQL, what is in use in the tables",
    (text) => orRule(sizeOf(text), sizeRule)
  ),
  to: Flags.value<number | "compaction">(
    "to",
    "SEQ|compaction",
    "prune up to this sequence number, or to the last compaction",
    (text) =>
      text === "compaction"
        ? Effect.succeed(text)
        : orRule(/^\d{1,15}$/.test(text) ? Number(text) : undefined, "a sequence number, or compaction")
  ),
  archive: Flags.text("archive", "DIR", "first write the events to compressed files in this folder"),
  yes: Flags.toggle("yes", "remove the events; without it, only show what would go"),
  force: Flags.toggle("force", "also remove events that a registered consumer has not read"),
  restore: Flags.text("restore", "FILE", "put the events of an archive back"),
  json: Flags.json
}

type Request = Omit<FieldValues<typeof given>, "restore">

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
    "Free pages are given back to the file system in small steps, while other processes work; PostgreSQL's vacuum keeps " +
      "the space for later rows. Ctrl-C stops between two " +
      "steps: each session is then either as before or pruned. --archive keeps the events as JSON lines, one file per " +
      "session; --restore puts such a file back exactly, or refuses and says why. The exit code is 1 if a session could not " +
      "be pruned or --max-size was not reached."
  ],
  given,
  examples: [
    ["daybook prune --keep 90d", "shows what is older than 90 days"],
    ["daybook prune --keep 90d --archive ~/archive --yes", "archives it and removes it"],
    ["daybook prune --max-size 2GB --yes", "prunes the longest unused sessions until the file has 2 GB"],
    ["daybook prune fix --to compaction --yes", "prunes one session up to its last compaction"],
    ["daybook prune --restore ~/archive/ses_fix.12.0-950.jsonl.gz", "puts the events of an archive back"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const { archive, force, json, keep, maxSize, restore: file, sessions, to, yes } = given
      const bounded = keep !== undefined || maxSize !== undefined || to !== undefined
      if (file !== undefined && (bounded || sessions.length > 0 || archive !== undefined || yes || force)) {
        return yield* new UsageError({ message: "daybook prune --restore FILE takes nothing else but --json" })
      }
      if (file === undefined && !bounded) {
        return yield* new UsageError({ message: "say what may go: give --keep AGE, --max-size SIZE or --to SEQ" })
      }
      const place = yield* DatabasePath.existing
      yield* file === undefined ? run(place, given) : putBack(place, file, json)
    })
})
