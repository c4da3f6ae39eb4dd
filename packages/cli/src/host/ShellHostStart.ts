/**
 * Starts a host of live shells: a process of the same program without a terminal, in a session of its own, whose stderr is the
 * log in the data folder. Spec: SL-170, SL-171 in specs/shell.md.
 */
import { spawn } from "node:child_process"
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync } from "node:fs"
import { Effect } from "effect"
import { makeFolder } from "@daybook/server/shared/PrivateFolder"
import { exitCode } from "../render/Failure.ts"
import { oneLine } from "../render/Plain.ts"
import { HostNotStarted } from "../support/Errors.ts"
import type { ShellHostPlace } from "./ShellHostPlace.ts"

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
        new HostNotStarted({ code: exitCode.database, message: `${log} cannot be written: ${String(cause)}` })
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

/**
 * Completes when the host is ready. Gives the reason if it ended with a conflict: another host was faster, or another process
 * holds what it needs.
 */
export const start = Effect.fn("ShellHostStart.start")(function* (place: ShellHostPlace) {
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
