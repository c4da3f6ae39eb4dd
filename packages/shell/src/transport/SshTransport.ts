/**
 * Programs on a machine that is reached by SSH. All programs of a transport share one connection; each has a channel. The
 * user's login shell starts them. Spec: SL-80..SL-84, SL-93, SL-94 in specs/shell.md.
 */
import { Effect, type Scope } from "effect"
import type { ClientChannel } from "ssh2"
import { type InvalidOption, TransportFailed } from "../domain/ShellError.ts"
import type { SshTarget } from "../domain/Target.ts"
import { type Ending, lost, make as makeProgram } from "./NodeProgram.ts"
import type { Program, Transport } from "./Program.ts"
import { forLoginShell } from "./RemoteScript.ts"
import { type Connection, open } from "./SshConnection.ts"
import type { TransportSettings } from "./TransportSettings.ts"

const failed = (reason: TransportFailed["reason"], details: string) =>
  new TransportFailed({ transport: "ssh", reason, details })

interface Opened extends Ending {
  readonly channel: ClientChannel
}

/** Listens to the channel at once: its end may come in the same packet as its beginning. */
const opened = (channel: ClientChannel): Opened => {
  const ending = makeProgram({
    input: channel,
    outputs: [
      ["stdout", channel],
      ["stderr", channel.stderr]
    ]
  })
  channel.on("exit", (code: number | null, signal?: string) => ending.end({ code, signal: signal ?? null }))
  channel.on("close", () => ending.end(lost))
  return { ...ending, channel }
}

const start = ({ client, name }: Connection, script: string): Effect.Effect<Opened, TransportFailed> =>
  Effect.async((resume) => {
    // OpenSSH ends the whole connection if a command contains NUL.
    if (script.includes("\0")) return resume(Effect.fail(failed("no shell", "a script cannot contain NUL")))
    let abandoned = false
    const gone = () => Effect.fail(failed("lost", `the connection to ${name} is lost: create another shell`))
    try {
      client.exec(forLoginShell(script), (cause, channel) => {
        if (abandoned) channel?.close()
        else if (cause === undefined) resume(Effect.succeed(opened(channel)))
        else if (cause.message === "No response from server") resume(gone())
        else resume(Effect.fail(failed("no shell", `${name} runs no more programs on this connection`)))
      })
    } catch {
      // ssh2 throws if the connection has ended.
      resume(gone())
    }
    return Effect.sync(() => {
      abandoned = true
    })
  })

const run = (connection: Connection) =>
  Effect.fn("SshTransport.run")(function* (script: string): Effect.fn.Return<Program, TransportFailed, Scope.Scope> {
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const { channel, detach, end, program } = yield* restore(start(connection, script))
        const forget = connection.shared.onLost(() => end(lost))
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            forget()
            detach()
            channel.close()
          })
        )
        return program
      })
    )
  })

/** A login shell that runs nothing, such as `nologin`, would otherwise look like a shell that exits. */
const probe = (connection: Connection) =>
  Effect.scoped(
    Effect.gen(function* () {
      const program = yield* run(connection)("exit 42")
      program.listen(() => undefined)
      const { code } = yield* program.exit
      if (code === 42) return
      if (code === null) return yield* failed("lost", `the connection to ${connection.name} was lost: try again`)
      return yield* failed("no shell", `${connection.name} does not run sh: check the user's login shell`)
    })
  )

/** Connects. Fails before anything runs if the host, its key or the credentials are not right. */
export const make = Effect.fn("SshTransport.make")(function* (
  target: SshTarget,
  settings: TransportSettings = {}
): Effect.fn.Return<Transport, TransportFailed | InvalidOption, Scope.Scope> {
  const connection = yield* open(target, settings)
  yield* probe(connection)
  return { name: "ssh", run: run(connection), runShell: run(connection) }
})
