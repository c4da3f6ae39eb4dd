/** Finds or starts the host of live shells, and checks its version and database. Spec: SL-170, SL-172. */
import { spawn } from "node:child_process"
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync } from "node:fs"
import { Effect, Predicate, Schedule } from "effect"
import { codeOf } from "@daybook/log/support/SystemError"
import { maxSocketPathBytes, SocketUnusable } from "@daybook/server/socket/SocketPath"
import { makeFolder } from "@daybook/server/shared/PrivateFolder"
import type { InvalidOption } from "@daybook/shell/domain/ShellError"
import { connect, type HostClient } from "@daybook/shell/host/HostClient"
import * as DatabasePath from "../config/DatabasePath.ts"
import { exitCode } from "../render/Failure.ts"
import { oneLine } from "../render/Plain.ts"
import { HostDiffers, HostNotStarted, UsageError } from "../support/Errors.ts"
import { place, placeOf, type ShellHostPlace } from "./ShellHostPlace.ts"

/** Bytes of a log that a new host continues. */
const mostKept = 1_048_576
/** What a host that failed says. */
const mostRead = 4_096
const startWithin = "30 seconds"

/** Opens the log for appending; `from` is where this host's part begins. */
const openLog = ({ log }: ShellHostPlace) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const flags = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW
        const descriptor = openSync(log, flags, 0o600)
        if (fstatSync(descriptor).size > mostKept) ftruncateSync(descriptor, 0)
        return { descriptor, from: fstatSync(descriptor).size }
      },
      catch: (cause) =>
        new HostNotStarted({
          code: exitCode.database,
          message: `${log} cannot be written (${codeOf(cause, String(cause))})`
        })
    }),
    ({ descriptor }) => Effect.sync(() => closeSync(descriptor))
  )

/** The last sentence that the host wrote. */
const lastWords = (descriptor: number, from: number): string => {
  const buffer = Buffer.alloc(mostRead)
  const length = readSync(descriptor, buffer, 0, mostRead, from)
  const lines = buffer.subarray(0, length).toString("utf8").trim().split("\n")
  return oneLine((lines.findLast((line) => line.startsWith("daybook: ")) ?? "").slice("daybook: ".length), 2_000)
}

/** Completes when the host is ready, or gives the reason if it ended with a conflict with another process. */
const start = Effect.fn("ShellHostStart.start")(function* (place: ShellHostPlace) {
  yield* makeFolder(place.root, ["shell-host"])
  const { descriptor, from } = yield* openLog(place)
  const program = process.argv[1] ?? ""
  const failed = (code: number, details: string) =>
    new HostNotStarted({ code, message: `the host of the shells did not start: ${details}; its log is ${place.log}` })
  return yield* Effect.async<HostNotStarted | undefined, HostNotStarted>((resume) => {
    const child = spawn(process.execPath, [...process.execArgv, program, "shell", "host"], {
      detached: true,
      stdio: ["ignore", "pipe", descriptor]
    })
    child.unref()
    const { stdout } = child
    const end = (result: Effect.Effect<HostNotStarted | undefined, HostNotStarted>) => {
      child.removeAllListeners().on("error", () => undefined)
      stdout?.destroy()
      resume(result)
    }
    child.once("error", (cause) => end(Effect.fail(failed(1, cause.message))))
    stdout?.once("data", () => end(Effect.succeed(undefined)))
    child.once("exit", (code) => {
      const reason = failed(code ?? exitCode.failed, lastWords(descriptor, from) || `exit code ${code}`)
      end(code === exitCode.conflict ? Effect.succeed(reason) : Effect.fail(reason))
    })
    return Effect.sync(() => child.kill())
  }).pipe(Effect.timeoutFail({ duration: startWithin, onTimeout: () => failed(1, `not ready after ${startWithin}`) }))
}, Effect.scoped)

/** Flags by the path of an option, or by the name that the path begins with. */
type FlagNames = Readonly<Record<string, string>>

/** The error of an option that a flag sets. */
export const asFlag =
  (names: FlagNames) =>
  ({ details, option }: InvalidOption): UsageError => {
    const path = option.replace(/^budget\./, "")
    const flag = names[path] ?? names[/^\w+/.exec(path)?.[0] ?? ""]
    return new UsageError({ message: `${flag ?? option}: ${details}` })
  }

// The build defines it.
declare const DAYBOOK_VERSION: string

const checked = ({ database }: ShellHostPlace) =>
  Effect.fnUntraced(function* (client: HostClient) {
    const { database: other, pid, version } = client.hello
    const advice = `end it and its shells with: kill ${pid}`
    if (version !== DAYBOOK_VERSION) {
      const message = `process ${pid}, of daybook ${version}, keeps the shells, and this is daybook ${DAYBOOK_VERSION}: use that version, or ${advice}`
      return yield* new HostDiffers({ message })
    }
    if (other !== database) {
      const message = `process ${pid} keeps the shells of this folder and records in ${other}: set DAYBOOK_DB to that file, or ${advice}`
      return yield* new HostDiffers({ message })
    }
    return client
  })

const connected = Effect.fnUntraced(function* ({ socket }: ShellHostPlace) {
  const length = Buffer.byteLength(socket)
  if (length <= maxSocketPathBytes) return yield* connect(socket)
  const message = `${socket}: a socket path may have ${maxSocketPathBytes} bytes, and this has ${length}: set DAYBOOK_DB to a shorter path`
  return yield* new SocketUnusable({ path: socket, message })
})

const isClosed = (error: unknown) =>
  Predicate.isTagged(error, "HostUnusable") && "reason" in error && error.reason === "closed"

const after = (times: number) => Schedule.intersect(Schedule.spaced("100 millis"), Schedule.recurs(times))

/** The client of the host that runs. One that is ending closes the connection, and is gone a moment later. */
export const existing = Effect.flatMap(place, (at) => Effect.flatMap(connected(at), checked(at))).pipe(
  Effect.retry({ while: isClosed, schedule: after(5) })
)

/** The client of a host, which is started if none runs. One that ends before it is asked is replaced. */
const started = Effect.gen(function* () {
  const at = placeOf((yield* DatabasePath.writable).path)
  const found = connected(at)
  const client = yield* Effect.catchTag(found, "HostAbsent", () =>
    Effect.flatMap(start(at), (conflict) =>
      Effect.catchTag(found, "HostAbsent", (absent) => Effect.fail(conflict ?? absent))
    )
  )
  return yield* checked(at)(client)
}).pipe(Effect.retry({ times: 3, while: ({ _tag }) => _tag === "HostAbsent" }))

/** Runs work with a host. A host that is ending refuses the work: then again, until another one can be started. */
export const withStarted = <A, E, R>(work: (client: HostClient) => Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.flatMap(started, work)).pipe(
    Effect.retry({
      while: (error) => Predicate.isTagged(error, "HostEnding") || isClosed(error),
      schedule: after(100)
    })
  )
