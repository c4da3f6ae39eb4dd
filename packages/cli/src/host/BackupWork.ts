/** Runs `daybook backup` and `daybook restore`. Spec: CL-190..CL-193 in specs/cli.md. */
import { existsSync } from "node:fs"
import { Effect } from "effect"
import * as Snapshots from "@daybook/core/snapshot/Snapshots"
import * as Backup from "@daybook/log/maintenance/Backup"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { Interrupted, NotFound } from "../support/Errors.ts"
import * as Signal from "../support/Signal.ts"
import { Output } from "../terminal/Output.ts"

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

/** Reports on a terminal how much is copied. */
const reporting = Effect.gen(function* () {
  const output = yield* Output
  let at = { copied: 0, total: 0 }
  const say = Effect.suspend(() => output.note(`${megabytes(at.copied)} of ${megabytes(at.total)} copied\n`))
  if (process.stderr.isTTY === true) yield* Effect.forkScoped(Effect.forever(Effect.delay(say, "2 seconds")))
  const onProgress: Backup.OnProgress = (copied, total) => (at = { copied, total })
  return onProgress
})

/** Ends the work at the first signal, after it has removed its incomplete file. */
const untilSignal = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.flatMap(Signal.first, (signal) =>
      Effect.raceFirst(work, Effect.zipRight(signal, new Interrupted({ message: "interrupted; nothing was changed" })))
    )
  )

const missing = (error: Backup.BackupFailed): Backup.BackupFailed | NotFound =>
  error.reason === "not-found" ? new NotFound({ message: error.message }) : error

/** Copies the database to the file. */
export const backup = Effect.fn("Command.backup")(
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
      onProgress: yield* reporting
    })
    const verified = options.verify ? ", verified" : ""
    yield* output.write(
      options.json
        ? `${jsonLine({ file, bytes, sessions, position, digest, verified: options.verify }, output.terminal)}\n`
        : `${oneLine(file, 400)}: ${sessions} session${sessions === 1 ? "" : "s"}, ${megabytes(bytes)}${verified}\n`
    )
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

/** Puts the file in the place of the database. */
export const restore = Effect.fn("Command.restore")(
  function* (options: { readonly database: string; readonly file: string; readonly json: boolean }) {
    const output = yield* Output
    const { aside, database, digest, position, sessions } = yield* Backup.restore({
      ...options,
      onProgress: yield* reporting
    })
    const kept = aside === undefined ? "" : `; the replaced one is ${oneLine(aside, 400)}`
    yield* output.write(
      options.json
        ? `${jsonLine({ database, sessions, position, digest, aside }, output.terminal)}\n`
        : `${oneLine(database, 400)}: ${sessions} session${sessions === 1 ? "" : "s"}${kept}\n`
    )
  },
  Effect.scoped,
  untilSignal,
  Effect.mapError((error) => (error._tag === "BackupFailed" ? missing(error) : error))
)
