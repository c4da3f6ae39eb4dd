/** `daybook backup` and `daybook restore`: copies the database, and puts a copy back. Spec: CL-190..CL-193. */
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { resolve } from "node:path"
import { Effect } from "effect"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Backup from "@daybook/log/maintenance/Backup"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { oneLine } from "../render/Plain.ts"
import { many } from "../support/Amounts.ts"
import { NotFound, UsageError } from "../support/Errors.ts"
import { configFolder, dataFolder } from "../support/Paths.ts"
import * as Signal from "../support/Signal.ts"
import { Output, reporting, writeJson } from "../terminal/Output.ts"

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

/** Reports on a terminal how much is copied. */
const progress = Effect.gen(function* () {
  let at = { copied: 0, total: 0 }
  yield* reporting("2 seconds", () => `${megabytes(at.copied)} of ${megabytes(at.total)} copied`)
  const onProgress: Backup.OnProgress = (copied, total) => (at = { copied, total })
  return onProgress
})

const untilSignal = Signal.stopping("interrupted; nothing was changed")

const missing = (error: Backup.BackupFailed): Backup.BackupFailed | NotFound =>
  error.reason === "not-found" ? new NotFound({ message: error.message }) : error

const copy = Effect.fn("Command.backup")(
  function* (options: {
    readonly database: string
    readonly file: string
    readonly force: boolean
    readonly verify: boolean
    readonly json: boolean
  }) {
    const output = yield* Output
    const { bytes, digest, file, position, sessions } = yield* Backup.backup({
      ...options,
      onProgress: yield* progress
    })
    const verified = options.verify ? ", verified" : ""
    yield* options.json
      ? writeJson({ file, bytes, sessions, position, digest, verified: options.verify })
      : output.write(`${oneLine(file, 400)}: ${many(sessions, "session")}, ${megabytes(bytes)}${verified}\n`)
    const snapshots = Snapshots.folderBeside(options.database)
    if (existsSync(snapshots))
      yield* output.note(
        `the snapshots of files that undo needs are not in it: copy ${oneLine(snapshots, 400)} as well\n`
      )
  },
  Effect.scoped,
  untilSignal,
  Effect.mapError((error) => (error._tag === "BackupFailed" ? missing(error) : error))
)

const putBack = Effect.fn("Command.restore")(
  function* (options: { readonly database: string; readonly file: string; readonly json: boolean }) {
    const output = yield* Output
    const { aside, database, digest, position, sessions } = yield* Backup.restore({
      ...options,
      onProgress: yield* progress
    })
    const kept = aside === undefined ? "" : `; the replaced one is ${oneLine(aside, 400)}`
    yield* options.json
      ? writeJson({ database, sessions, position, digest, aside })
      : output.write(`${oneLine(database, 400)}: ${many(sessions, "session")}${kept}\n`)
  },
  Effect.scoped,
  untilSignal,
  Effect.mapError((error) => (error._tag === "BackupFailed" ? missing(error) : error))
)

/** The address for a program of PostgreSQL, with `USER` in place of the user: no output names a user. */
const addressOf = ({ name }: DatabasePath.ServerPlace): string => {
  const address = name.replace(/^postgres:\/\//, "postgres://USER@").replace(/[?&]schema=[^&]*$/, "")
  return address.includes("?") ? `'${address}'` : address
}

/** What copies a database of PostgreSQL. Settings, keys, outputs and snapshots are in folders of the machine. */
const dumped = (file: string) => (place: DatabasePath.ServerPlace) => {
  const folders = `${configFolder(process.env, homedir())} and ${dataFolder(process.env, homedir())}`
  return (
    `pg_dump --format=custom --schema=${place.schema} --file=${oneLine(file, 400)} ${addressOf(place)} copies it; save ` +
    `${folders} of each machine as well: they have the settings, keys, outputs and snapshots`
  )
}

/** What puts such a copy in the place of the database. */
const undumped = (file: string) => (place: DatabasePath.ServerPlace) =>
  "stop all servers, then pg_restore --clean --if-exists --single-transaction " +
  `--dbname=${addressOf(place)} ${oneLine(file, 400)} puts the copy in its place`

const fileArgument = Flags.one("FILE")

/** A database in memory has no file. */
const onDisk = (path: string) =>
  path === ":memory:" ? new UsageError({ message: "the database is in memory; set DAYBOOK_DB to a file" }) : Effect.void

export const backup = verb({
  name: "backup",
  summary: "copy the database to a file while it is used",
  words: "FILE",
  details: [
    "The copy is the database as it is when the command begins; running sessions continue. FILE appears when the copy is " +
      "complete and on disk, and only you may read it. The copy is opened and compared with the database.",
    "Removing a session does not remove it from earlier copies. The snapshots of files that undo needs are in a folder " +
      "beside the database, not in the copy. On PostgreSQL, pg_dump makes the copy: the refusal has the whole command."
  ],
  given: {
    file: fileArgument,
    force: Flags.toggle("force", "replace FILE if it exists"),
    verify: Flags.toggle("verify", "also check every event and row of the copy"),
    json: Flags.json
  },
  examples: [
    ["daybook backup ~/daybook.backup", "copies the database"],
    ["daybook backup --verify --json copy.sqlite", "also checks all its events, and prints what it holds as JSON"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const database = yield* DatabasePath.existingFile(dumped(given.file))
      yield* onDisk(database)
      yield* copy({ ...given, database, file: resolve(given.file) })
    })
})

export const restore = verb({
  name: "restore",
  summary: "put a copy in the place of the database",
  words: "FILE",
  details: [
    "FILE is verified first and stays as it is. The replaced database is kept beside the new one, under a name that " +
      "contains .replaced-. The command refuses to work while a process uses the database: stop daybook serve first."
  ],
  given: { file: fileArgument, json: Flags.json },
  examples: [["daybook restore ~/daybook.backup", "continues with the sessions of that copy"]],
  run: (given) =>
    Effect.gen(function* () {
      const database = yield* DatabasePath.writableFile(undumped(given.file))
      yield* onDisk(database)
      yield* putBack({ ...given, database, file: resolve(given.file) })
    })
})
