/**
 * The checkpoints of an open shell: on request, and before commands that may change files. Records what was made and restored.
 * Spec: SL-150, SL-163..SL-167 in specs/shell.md.
 */
import type { Grammar } from "@daybook/core/permission/CommandLine"
import { Effect, Either, type Scope } from "effect"
import { CheckpointFailed } from "./checkpoint/CheckpointError.ts"
import type { CheckpointSettings } from "./checkpoint/CheckpointOptions.ts"
import * as Checkpoints from "./checkpoint/Checkpoints.ts"
import { isReadOnly, mayRedefine } from "./checkpoint/ReadOnly.ts"
import * as ShellFact from "./record/ShellFact.ts"
import { type Recording, unrecorded } from "./record/Recording.ts"
import type { ShellRecordFailed } from "./record/ShellRecord.ts"
import type { Transport } from "./transport/Program.ts"

export type CheckpointError = Checkpoints.CheckpointError | ShellRecordFailed

export interface ShellCheckpoints {
  /** Makes a checkpoint if the command may change files. Returns why there is none, if that failed. */
  readonly before: (command: string) => Effect.Effect<string | undefined, ShellRecordFailed>
  readonly create: (label?: string) => Effect.Effect<Checkpoints.Checkpointed, CheckpointError>
  readonly list: Effect.Effect<ReadonlyArray<Checkpoints.Checkpoint>, CheckpointError>
  readonly restore: (checkpointID?: string) => Effect.Effect<Checkpoints.Restored, CheckpointError>
}

export interface Parts {
  readonly id: string
  readonly transport: Transport
  readonly redact: (text: string) => string
  readonly recording: Recording
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
  { id, recording, redact, transport }: Parts
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
    const failure = made.isNew ? yield* recording.add(ShellFact.checkpointed(id, made.id, label)) : undefined
    return { made: made.id, failure }
  })

  return {
    before: Effect.fn("ShellCheckpoints.before")(function* (command) {
      if (!settings.automatic || (yield* needsNone(command))) return undefined
      const label = redact(command).replaceAll(/\s+/g, " ").trim()
      const short = label.length > longestCommand ? `${label.slice(0, longestCommand)}…` : label
      const made = yield* Effect.either(make("command", short))
      if (Either.isLeft(made)) return made.left.message
      // The command could not be recorded either.
      return made.right.failure === undefined ? undefined : yield* made.right.failure
    }),
    create: (label) =>
      Effect.map(make("asked", label === undefined ? undefined : redact(label)), ({ failure, made }) => ({
        checkpoint_id: made,
        ...unrecorded(failure)
      })),
    list: checkpoints.list,
    restore: Effect.fn("ShellCheckpoints.restore")(function* (checkpointID) {
      const restored = yield* checkpoints.restore(checkpointID)
      const failure = yield* recording.add(ShellFact.restored(id, restored.restored_to, restored.files_changed))
      const { added, changed, deleted } = restored
      return {
        ...restored,
        added: added.map(redact),
        changed: changed.map(redact),
        deleted: deleted.map(redact),
        ...unrecorded(failure)
      }
    })
  }
})
