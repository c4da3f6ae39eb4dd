/**
 * The checkpoints of an open shell: on request, and before commands that may change files. Records what was made and restored.
 * Spec: SL-150, SL-163..SL-167 in specs/shell.md.
 */
import type { Grammar } from "@daybook/core/permission/CommandLine"
import { Effect, type Scope } from "effect"
import { CheckpointFailed } from "./checkpoint/CheckpointError.ts"
import type { CheckpointSettings } from "./checkpoint/CheckpointOptions.ts"
import * as Checkpoints from "./checkpoint/Checkpoints.ts"
import { isReadOnly, mayRedefine } from "./checkpoint/ReadOnly.ts"
import * as ShellFact from "./record/ShellFact.ts"
import type { ShellRecordFailed } from "./record/ShellRecord.ts"
import type { Transport } from "./transport/Program.ts"

export type CheckpointError = Checkpoints.CheckpointError | ShellRecordFailed

export interface ShellCheckpoints {
  /** Makes a checkpoint if the command may change files. Returns why there is none, if that failed. */
  readonly before: (command: string) => Effect.Effect<string | undefined, ShellRecordFailed>
  readonly create: (label?: string) => Effect.Effect<{ readonly checkpoint_id: string }, CheckpointError>
  readonly list: Effect.Effect<ReadonlyArray<Checkpoints.Checkpoint>, CheckpointError>
  readonly restore: (checkpointID?: string) => Effect.Effect<Checkpoints.Restored, CheckpointError>
}

export interface Parts {
  readonly id: string
  readonly transport: Transport
  readonly redact: (text: string) => string
  readonly write: (fact: ShellFact.ShellFact) => Effect.Effect<void, ShellRecordFailed>
}

const unsupported = Effect.fail(
  new CheckpointFailed({
    reason: "unsupported",
    details: "the shell was created without checkpoints: give a workspace, and for a local shell checkpoints: true"
  })
)

/** A shell without checkpoints. */
const none: ShellCheckpoints = {
  before: () => Effect.succeed(undefined),
  create: () => unsupported,
  list: unsupported,
  restore: () => unsupported
}

const grammar: Effect.Effect<Grammar> = Effect.promise(() => import("unbash"))

/** Characters of a command in the label of its checkpoint. */
const longestCommand = 160

export const make = Effect.fnUntraced(function* (
  settings: CheckpointSettings | undefined,
  { id, redact, transport, write }: Parts
): Effect.fn.Return<ShellCheckpoints, never, Scope.Scope> {
  if (settings === undefined) return none
  const checkpoints = yield* Checkpoints.make(transport, settings.place, redact)
  // A command of this shell may have given another meaning to the names of readers.
  let redefined = false

  const needsNone = (command: string) =>
    Effect.map(grammar, (each) => {
      const reads = isReadOnly(each, command) && !redefined
      redefined ||= mayRedefine(command)
      return reads
    })

  const make = Effect.fnUntraced(function* (kind: "asked" | "command", label: string | undefined) {
    const made = yield* checkpoints.create(kind, label)
    if (made.isNew) yield* write(ShellFact.checkpointed(id, made.id, label))
    return { checkpoint_id: made.id }
  })

  return {
    before: Effect.fn("ShellCheckpoints.before")(function* (command) {
      if (!settings.automatic || (yield* needsNone(command))) return undefined
      const label = redact(command).replaceAll(/\s+/g, " ").trim()
      const short = label.length > longestCommand ? `${label.slice(0, longestCommand)}…` : label
      return yield* make("command", short).pipe(
        Effect.as(undefined),
        Effect.catchIf(
          (error) => error._tag !== "ShellRecordFailed",
          (error) => Effect.succeed(error.message)
        )
      )
    }),
    create: (label) => make("asked", label === undefined ? undefined : redact(label)),
    list: checkpoints.list,
    restore: Effect.fn("ShellCheckpoints.restore")(function* (checkpointID) {
      const restored = yield* checkpoints.restore(checkpointID)
      yield* write(ShellFact.restored(id, restored.restored_to, restored.files_changed))
      const { added, changed, deleted } = restored
      return { ...restored, added: added.map(redact), changed: changed.map(redact), deleted: deleted.map(redact) }
    })
  }
})
