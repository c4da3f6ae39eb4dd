/** `daybook backup` and `daybook restore`: copies the database, and puts a copy back. Spec: CL-190..CL-193. */
import { resolve } from "node:path"
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { UsageError } from "../support/Errors.ts"

const work = Effect.promise(() => import("../host/BackupWork.ts"))

const fileArgument = Flags.one("FILE")

/** A database in memory has no file. */
const onDisk = (path: string) =>
  path === ":memory:" ? new UsageError({ message: "the database is in memory; set DAYBOOK_DB to a file" }) : Effect.void

const force = Flags.toggle("force", "replace FILE if it exists")
const verify = Flags.toggle("verify", "also check every event and row of the copy")

export const backup = verb({
  name: "backup",
  summary: "copy the database to a file while it is used",
  words: "FILE",
  details: [
    "The copy is the database as it is when the command begins; running sessions continue. FILE appears when the copy is " +
      "complete and on disk, and only you may read it. The copy is opened and compared with the database.",
    "Removing a session does not remove it from earlier copies. The snapshots of files that undo needs are in a folder " +
      "beside the database, not in the copy."
  ],
  given: { file: fileArgument, force, verify, json: Flags.json },
  examples: [
    ["daybook backup ~/daybook.backup", "copies the database"],
    ["daybook backup --verify --json copy.sqlite", "also checks all its events, and prints what it holds as JSON"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const database = yield* DatabasePath.existing
      yield* onDisk(database)
      yield* (yield* work).backup({ ...given, database, file: resolve(given.file) })
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
      const database = yield* DatabasePath.writable
      yield* onDisk(database)
      yield* (yield* work).restore({ ...given, database, file: resolve(given.file) })
    })
})
