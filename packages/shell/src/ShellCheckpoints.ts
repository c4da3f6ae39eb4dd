/** The checkpoints of an open shell, on request and before changes of files. Spec: SL-150, SL-163..SL-167. */
import { Effect, Either } from "effect"
import { type Grammar, readCommandLine, type SimpleCommand } from "@daybook/core/permission/CommandLine"
import type { CheckpointSettings } from "./ShellOptions.ts"
import * as Checkpoints from "./checkpoint/Checkpoints.ts"
import { CheckpointFailed } from "./checkpoint/Checkpoints.ts"
import * as ShellRecord from "./record/ShellRecord.ts"
import { type Recording, type ShellRecordFailed, unrecorded } from "./record/ShellRecord.ts"
import type { Transport } from "./transport/Program.ts"

// Tells commands that certainly only read from all others, so that an automatic checkpoint can be left out.

/** Commands that write no file and run no other command, whatever their options. */
const readers = new Set(
  (
    ": [ basename cat cd cksum cmp cut df dirname du echo egrep expr false fgrep fold grep groups head hexdump id ls " +
    "md5sum nl od paste pgrep printenv ps pwd readlink realpath seq sha1sum sha256sum sha512sum sleep stat strings tac " +
    "tail test tr true type uname uptime wc which whoami"
  ).split(" ")
)

const onlyReads = ({ assignments, redirects, substitutions, words, ...command }: SimpleCommand): boolean =>
  !command.defined &&
  assignments.length + redirects.length + substitutions.length === 0 &&
  words[0]?.fixed === true &&
  readers.has(words[0].text)

/** Whether each command of the line is a reader, without redirections, substitutions or assignments. */
export const isReadOnly = (grammar: Grammar, text: string): boolean => {
  const line = readCommandLine(grammar, text)
  return !("unread" in line) && line.loose.length === 0 && line.commands.every(onlyReads)
}

/** Whether a command may give the names of readers another meaning in its shell. */
const mayRedefine = (text: string): boolean =>
  /\(\s*\)|\b(?:alias|function|eval|source|enable|hash|trap|exec|PATH|ENV|PROMPT_COMMAND)\b|(?:^|[\s;&|({!])\.\s/.test(
    text
  )

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
) {
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
    const failure = made.isNew ? yield* recording.add(ShellRecord.checkpointed(id, made.id, label)) : undefined
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
      const failure = yield* recording.add(ShellRecord.restored(id, restored.restored_to, restored.files_changed))
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
