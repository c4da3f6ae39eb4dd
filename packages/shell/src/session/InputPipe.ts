/**
 * A command's standard input that is written while the command runs: a fifo where the shell is, which a program beside the shell
 * fills. Spec: SL-65 in specs/shell.md.
 */
import { Deferred, Effect, type Scope } from "effect"
import { TransportFailed } from "../domain/ShellError.ts"
import type { Transport } from "../transport/Program.ts"

export interface InputPipe {
  /** Path of the fifo. */
  readonly path: string
  /** Completes when the bytes are on their way; they are lost if the command has ended. */
  readonly write: (text: string | Uint8Array) => Effect.Effect<void>
  readonly end: Effect.Effect<void>
}

const script = `
folder=$(mktemp -d "\${TMPDIR:-/tmp}/daybook-input.XXXXXX") || exit 121
trap 'rm -rf -- "$folder"' EXIT
mkfifo -m 600 "$folder/input" || exit 121
printf '%s\\n' "$folder/input"
cat >"$folder/input"
`

/** Creates the fifo. The scope's end removes it. */
export const open = Effect.fn("InputPipe.open")(function* (
  transport: Transport
): Effect.fn.Return<InputPipe, TransportFailed, Scope.Scope> {
  const program = yield* transport.run(script)
  yield* Effect.addFinalizer(() => program.endInput)
  const found = yield* Deferred.make<string, TransportFailed>()
  let said = ""
  program.listen((_, bytes) => {
    said = (said + Buffer.from(bytes).toString("utf8")).slice(-4_096)
    const end = said.indexOf("\n")
    if (said.startsWith("/") && end > 0) Deferred.unsafeDone(found, Effect.succeed(said.slice(0, end)))
  })
  yield* Effect.forkScoped(
    Effect.flatMap(program.exit, () =>
      Deferred.fail(
        found,
        new TransportFailed({
          transport: transport.name,
          reason: "no shell",
          details: `the command's input could not be created: ${said.trim() || "the program printed nothing"}`
        })
      )
    )
  )
  const path = yield* Deferred.await(found)
  return { path, write: program.write, end: program.endInput }
})
