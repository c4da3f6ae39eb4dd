/** `daybook doctor`: checks the database, the configuration and the models. Spec: CL-19, CL-93. */
import { ConfigError, Effect, Either, Option, Schema, Stream } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { unansweredWords } from "@daybook/log/support/SystemError"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import type { Check } from "../host/Checkup.ts"
import { withSessions } from "../host/Runtime.ts"
import { failureOf } from "../render/Failure.ts"
import { oneLine, pad } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import {
  DatabaseProblem,
  DatabaseUnsound,
  isMissing,
  FilesDiffer,
  ModelUnreachable,
  type OutputClosed,
  type OutputFailed,
  UsageError
} from "../support/Errors.ts"
import { Output, writeJson } from "../terminal/Output.ts"

const line = (check: Check): string => {
  const fix = check.fix === undefined ? "" : `; ${check.fix}`
  return `${check.verdict.padEnd(7)}  ${pad(oneLine(check.about, 60), 10)}  ${oneLine(`${check.says}${fix}`, 400)}\n`
}

const Rebuildable = Schema.Union(Schema.Literal("all"), SessionID)

const given = {
  rebuild: Flags.value(
    "rebuild",
    "SESSION",
    "first rebuild a session's messages and other projections from its events; `all` for every session",
    (text) => Effect.mapError(Schema.decodeUnknown(Rebuildable)(text), () => "a session's id, or all")
  ),
  fix: Flags.toggle(
    "fix",
    "restrict the database and Daybook's own folders to their owner, and mend snapshots of files"
  ),
  health: Flags.value(
    "health",
    "URL",
    "only ask whether the server at this address can work, as a container's health check does",
    (text) =>
      URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? Effect.succeed(text) : Effect.fail("a URL")
  ),
  mcp: Flags.toggle("mcp", "start the configured MCP servers and ask for their tools"),
  json: Flags.json
}

const about = "database"

/** Checks the database, unfinished work, file modes and session files. A database that cannot be opened is a line too. */
const lookAtDatabase = Effect.fnUntraced(function* (
  place: DatabasePath.Place,
  fix: boolean,
  write: (check: Check) => Effect.Effect<void, OutputClosed | OutputFailed, Output>
) {
  const checkup = yield* Effect.promise(() => import("../host/Checkup.ts"))
  const { name, path } = place
  const none: ReadonlyArray<Check> = []
  const seen = { wrong: 0, kept: none, wide: none }
  const look = Effect.gen(function* () {
    yield* DatabasePath.existing
    yield* Stream.runForEach(checkup.database(place), (check) => {
      if (check.verdict === "error") seen.wrong += 1
      return write(check)
    })
    const room = checkup.room(place)
    if (seen.wrong === 0) {
      yield* write({ about, verdict: "ok", says: `${name} is sound${room === undefined ? " and writable" : ""}` })
      yield* Effect.forEach(yield* withSessions(checkup.left), write)
      yield* Effect.forEach(yield* checkup.missing, write)
      yield* Effect.forEach(yield* checkup.search(place), write)
    }
    if (room !== undefined) {
      seen.wrong += 1
      yield* write(room)
    }
    yield* Effect.forEach(yield* checkup.snapshots(path, fix), write)
    seen.wide = yield* checkup.modes(path, fix)
    yield* Effect.forEach(seen.wide, write)
    seen.kept = yield* checkup.files(place)
    yield* Effect.forEach(seen.kept, write)
  })
  const ended = yield* Effect.either(look)
  if (Either.isRight(ended)) return { ...seen, failed: Option.none() }
  const error = ended.left
  if (error._tag === "OutputClosed" || error._tag === "OutputFailed") return yield* error
  if (error._tag === "NotFound" || isMissing(error)) {
    if (!(yield* DatabasePath.canWrite)) {
      const message = `${path} cannot be created: its folder cannot be written; set DAYBOOK_DB to another path`
      yield* write({ about, verdict: "error", says: message })
      return { ...seen, failed: Option.some(new DatabaseProblem({ message })) }
    }
    yield* write({ about, verdict: "ok", says: `${name} does not exist yet; daybook prompt creates it` })
    return { ...seen, failed: Option.none() }
  }
  // The check of the models reports a wrong variable of theirs.
  if (ConfigError.isConfigError(error)) return { ...seen, failed: Option.none() }
  yield* write({ about, verdict: "error", says: failureOf(error).sentence ?? String(error) })
  return { ...seen, failed: Option.some(error) }
})

const healthTimeout = 5_000

/** Prints a server's answer about its health; one that is not well is a failure. */
const askHealth = Effect.fn("Command.doctor.health")(function* (url: string) {
  const output = yield* Output
  const unwell = (why: string) =>
    new DatabaseProblem({ message: `${oneLine(url, 400)} is not well: ${oneLine(why, 400)}` })
  const [status, text] = yield* Effect.tryPromise({
    try: async () => {
      const answer = await fetch(new URL("/health", url), { signal: AbortSignal.timeout(healthTimeout) })
      return [answer.status, await answer.text()] as const
    },
    catch: (cause) => unwell(unansweredWords(cause))
  })
  if (status !== 200) return yield* unwell(`HTTP ${status}: ${text}`)
  yield* output.write(`${oneLine(text, 400)}\n`)
})

const run = Effect.fn("Command.doctor")(function* ({ fix, health, json, mcp, rebuild }: FieldValues<typeof given>) {
  if (health !== undefined) return yield* askHealth(health)
  const output = yield* Output
  const checkup = yield* Effect.promise(() => import("../host/Checkup.ts"))
  if (rebuild !== undefined) {
    const { events, sessions } = yield* checkup.rebuild(yield* DatabasePath.existing, rebuild)
    yield* output.note(`rebuilt: ${many(sessions, "session")} from ${many(events, "event")}\n`)
  }
  const write = (check: Check) => (json ? writeJson(check) : output.write(line(check)))
  yield* write({ about: "node", verdict: "ok", says: process.version })
  const place = yield* DatabasePath.place
  const { failed, kept, wide, wrong } = yield* lookAtDatabase(place, fix, write)
  const { checks, settings } = yield* checkup.configuration
  yield* Effect.forEach(checks, write)
  const met = settings === undefined ? [] : yield* checkup.rehearse(yield* Folder.current, settings, mcp)
  yield* Effect.forEach(met, write)
  const asked = yield* Effect.either(checkup.models)
  const models = Either.getOrElse(asked, (error): ReadonlyArray<Check> => [
    { about: "model", verdict: "error", says: failureOf(error).sentence ?? String(error) }
  ])
  yield* Effect.forEach(models, write)
  if (Option.isSome(failed)) return yield* Effect.fail(failed.value)
  if (wrong > 0) return yield* new DatabaseUnsound({ message: `${place.name} is not sound, or has no room: see above` })
  if (kept.some(({ verdict }) => verdict === "error")) {
    return yield* new FilesDiffer({ message: "the session files are not current: see above" })
  }
  const unusable = new Set(
    [...wide, ...checks, ...met].flatMap(({ about, verdict }) => (verdict === "error" ? [about] : []))
  )
  if (unusable.size > 0) {
    return yield* new UsageError({ message: `not usable as configured: ${[...unusable].join(", ")}; see above` })
  }
  if (Either.isLeft(asked)) return yield* asked
  const unreachable = models.filter(({ verdict }) => verdict === "error").map(({ about }) => about)
  if (unreachable.length > 0) {
    return yield* new ModelUnreachable({ message: `not usable: ${unreachable.join(", ")}; see above` })
  }
})

export const doctor = verb({
  name: "doctor",
  summary: "check the database, the configuration and the models, and say what to do",
  words: "",
  details: [
    "Each line is ok, warning or error. It checks the database's file, settings and sessions: sequences have no gaps, every " +
      "event can be read, and stored messages equal the events; the search index fits them, and the snapshots of files are whole. It lists sessions that were cut off and sessions with waiting " +
      "prompts. It reports whether a process keeps the session files current, and whether other users may access the " +
      "database and Daybook's own folders. Nothing is changed without --rebuild or --fix.",
    "It reads the configuration and assembles a prompt in the current folder without sending it, and reports instructions, " +
      "agents, templates and skills that cannot be used. MCP servers are started only with --mcp. Each configured provider " +
      "is asked for its list of models. The exit code is 6 if the database is not sound or its disk is full, else 1 if the " +
      "session files cannot be written, else 2 if the configuration, its context or a server cannot be used, else 5 if a provider cannot."
  ],
  given,
  examples: [
    ["daybook doctor", "a line per check"],
    ["daybook doctor --mcp", "also starts and checks the MCP servers"],
    ["daybook doctor --fix", "also restricts the database's files to their owner, and mends snapshots"],
    [
      "daybook doctor --health http://127.0.0.1:4310",
      "asks a server for its health, and exits with 6 if it is not well"
    ],
    ["daybook doctor --rebuild all", "first rebuilds all messages from the events"]
  ],
  run
})
