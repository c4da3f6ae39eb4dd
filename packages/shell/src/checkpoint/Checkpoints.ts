/**
 * Checkpoints of one shell's workspace, in a shadow git repository outside of it, on the machine where the shell runs. The
 * scope's end removes the repository. Spec: SL-150..SL-167 in specs/shell.md.
 */
import { randomBytes } from "node:crypto"
import { Clock, Deferred, type Duration, Effect, Schema } from "effect"
import { Unrecorded } from "../domain/ExecResult.ts"
import { InvalidOption, type TransportFailed } from "../domain/ShellError.ts"
import { quoted } from "../session/ShellScripts.ts"
import type { Transport } from "../transport/Program.ts"
import * as Restoration from "./Restoration.ts"
import * as Scripts from "./Scripts.ts"
import { capturing, codes, creating, type Limits, onStore, type CheckpointScope, removing } from "./Scripts.ts"

// What can go wrong with checkpoints, as values that a caller can act on.

/** There are no checkpoints here, or this one could not be made or restored. */
export class CheckpointFailed extends Schema.TaggedError<CheckpointFailed>("@daybook/shell/CheckpointFailed")(
  "CheckpointFailed",
  {
    /**
     * `unsupported`: the shell was created without checkpoints. `no git`: git is not installed where the shell runs.
     * `workspace`: the folder is missing or not allowed. `too large`: new and changed files exceed the limit. `gone`: the
     * checkpoints were removed from outside. `failed`: anything else.
     */
    reason: Schema.Literal("unsupported", "no git", "workspace", "too large", "gone", "failed"),
    details: Schema.String
  }
) {
  override get message() {
    return `checkpoint: ${this.details}`
  }
}

/** The shell keeps no checkpoint with this id, or several whose ids begin with it. */
export class CheckpointNotFound extends Schema.TaggedError<CheckpointNotFound>("@daybook/shell/CheckpointNotFound")(
  "CheckpointNotFound",
  {
    /** Empty if the most recent one was asked for. */
    checkpointID: Schema.String
  }
) {
  override get message() {
    return this.checkpointID === ""
      ? "there is no checkpoint yet"
      : `there is no checkpoint ${this.checkpointID}, or several begin with it`
  }
}

// Runs a script of checkpoints to its end. The result is a trailer between two tokens, because a program may end before
// its last output arrives.

/** Bytes that a script prints at most: the paths of some hundred thousand files. */
const longestOutput = 128 * 1024 * 1024

/** Characters of what a program says when it does not begin, or ends early. */
const longestComplaint = 500

interface Finished {
  readonly output: Buffer
  /** 0 for success. */
  readonly code: number
  /** What the script says about a failure. */
  readonly details: string
}

const failed = (details: string) => new CheckpointFailed({ reason: "failed", details })

/** The trailer is `TOKEN code newline details TOKEN`. */
const finishedIn = (output: Buffer, token: string): Finished | undefined => {
  const end = output.length - token.length
  if (end < token.length || output.toString("latin1", end) !== token) return undefined
  const start = output.subarray(0, end).lastIndexOf(token)
  if (start < 0) return undefined
  const trailer = output.toString("utf8", start + token.length, end)
  const line = trailer.indexOf("\n")
  return {
    output: output.subarray(0, start),
    code: Number(trailer.slice(0, line)),
    details: trailer.slice(line + 1).trim()
  }
}

/** `script` is given the token and prints the trailer. `input` is its standard input. */
export const runScript = (
  transport: Pick<Transport, "run">,
  script: (token: string) => string,
  input: Uint8Array = new Uint8Array()
): Effect.Effect<Finished, CheckpointFailed | TransportFailed> =>
  Effect.scoped(
    Effect.gen(function* () {
      const token = randomBytes(16).toString("hex")
      const program = yield* transport.run(script(token))
      const finished = yield* Deferred.make<Finished, CheckpointFailed>()
      const chunks: Array<Uint8Array> = []
      let size = 0
      let last = ""
      let complaint = ""
      program.listen((stream, bytes) => {
        if (stream === "stderr") complaint = (complaint + Buffer.from(bytes).toString("utf8")).slice(-longestComplaint)
        if (stream !== "stdout") return
        size += bytes.length
        if (size > longestOutput) return Deferred.unsafeDone(finished, failed("the list of files is too long"))
        chunks.push(bytes)
        last = (last + Buffer.from(bytes.subarray(-token.length)).toString("latin1")).slice(-token.length)
        if (last !== token) return
        const found = finishedIn(Buffer.concat(chunks), token)
        if (found !== undefined) Deferred.unsafeDone(finished, Effect.succeed(found))
      })
      yield* Effect.forkScoped(Effect.zipRight(program.write(input), program.endInput))
      const endedEarly = program.exit.pipe(
        // Output that is still on its way.
        Effect.zipRight(Effect.sleep("2 seconds")),
        Effect.zipRight(
          Effect.suspend(() =>
            Deferred.fail(finished, failed(`the program ended before it was done. ${complaint.trim()}`.trim()))
          )
        )
      )
      // Also where the caller cannot be interrupted: its end must not wait for the sleep.
      yield* Effect.forkScoped(Effect.interruptible(endedEarly))
      return yield* Deferred.await(finished)
    })
  )

/** A checkpoint that is kept. */
export const Checkpoint = Schema.Struct({
  id: Schema.String,
  label: Schema.optionalWith(Schema.String, { exact: true }),
  /** ISO 8601. */
  created: Schema.String,
  /** Who made it: the caller, a command that may change files, or a restore. */
  kind: Schema.Literal("asked", "command", "restore")
})
export type Checkpoint = typeof Checkpoint.Type

/** A checkpoint that was asked for. */
export const Checkpointed = Schema.Struct({ checkpoint_id: Schema.String, ...Unrecorded.fields })
export type Checkpointed = typeof Checkpointed.Type

export const Restored = Schema.Struct({
  restored_to: Schema.String,
  /** The checkpoint of the state just before; restoring it takes the restore back. */
  safety_checkpoint: Schema.String,
  files_changed: Schema.Int,
  /** The first 1,000 paths of files that were missing and are back. */
  added: Schema.Array(Schema.String),
  /** The first 1,000 paths of files whose content, mode or kind was taken back. */
  changed: Schema.Array(Schema.String),
  /** The first 1,000 paths of files that are removed. */
  deleted: Schema.Array(Schema.String),
  ...Unrecorded.fields
})
export type Restored = typeof Restored.Type

export type CheckpointError = CheckpointFailed | CheckpointNotFound | InvalidOption | TransportFailed

export interface Checkpoints {
  /** Stores the present state; the newest one is returned if a command asks and nothing changed. */
  readonly create: (
    kind: "asked" | "command",
    label?: string
  ) => Effect.Effect<{ readonly id: string; readonly isNew: boolean }, CheckpointError>
  /** The newest first. */
  readonly list: Effect.Effect<ReadonlyArray<Checkpoint>, CheckpointError>
  /** The workspace is as it was at the checkpoint; the most recent one that no restore made by default. */
  readonly restore: (id?: string) => Effect.Effect<Restored, CheckpointError>
}

/** Characters of a label. */
const longestLabel = 200
const shownPaths = 1_000

/** What the commit of a checkpoint says. */
const Message = Schema.parseJson(Checkpoint.pipe(Schema.omit("id")))
const encodeMessage = Schema.encodeSync(Message)
const decodeMessage = Schema.decodeUnknownOption(Message)

const reasons: Readonly<Record<number, CheckpointFailed["reason"]>> = {
  [codes.noGit]: "no git",
  [codes.workspace]: "workspace",
  [codes.tooLarge]: "too large",
  [codes.gone]: "gone"
}

const checkID = (id: string): Effect.Effect<void, InvalidOption> =>
  /^[0-9a-f]{4,40}$/.test(id)
    ? Effect.void
    : Effect.fail(new InvalidOption({ option: "checkpoint_id", details: "expected 4 to 40 hexadecimal digits" }))

const checkLabel = (label: string | undefined): Effect.Effect<void, InvalidOption> =>
  label === undefined || label.length <= longestLabel
    ? Effect.void
    : Effect.fail(new InvalidOption({ option: "label", details: `a label has at most ${longestLabel} characters` }))

const checked = (
  { code, details, output }: Finished,
  id: string,
  { bytes }: Limits
): Effect.Effect<Buffer, CheckpointFailed | CheckpointNotFound> => {
  if (code === 0) return Effect.succeed(output)
  if (code === codes.unknown) return Effect.fail(new CheckpointNotFound({ checkpointID: id }))
  const reason = reasons[code] ?? "failed"
  const text = code === codes.tooLarge ? `new and changed files exceed ${bytes / 1024 ** 3} GiB` : details
  return Effect.fail(new CheckpointFailed({ reason, details: text || "git failed" }))
}

export interface AllLimits extends Limits {
  /** A capture that takes longer is given up, so that no command waits forever. */
  readonly patience: string & Duration.DurationInput
}

/** The limits of every shell. */
export const usual: AllLimits = {
  fileBytes: 32 * 1024 ** 2,
  bytes: 1024 ** 3,
  kept: 50,
  storeKiB: 2 * 1024 ** 2,
  patience: "2 minutes"
}

/** `redact` is applied to paths and errors. Tests set other limits. */
export const make = Effect.fnUntraced(function* (
  transport: Transport,
  place: CheckpointScope,
  redact: (text: string) => string,
  limits: AllLimits = usual
) {
  const within = Effect.timeoutFail({
    duration: limits.patience,
    onTimeout: () => new CheckpointFailed({ reason: "failed", details: `it took longer than ${limits.patience}` })
  })
  const turn = yield* Effect.makeSemaphore(1)
  let store: string | undefined
  let number = 0

  /** Work on the workspace reaches no more than the shell: the shell may change the workspace meanwhile. */
  const workOn = (at: string): Pick<Transport, "run"> => {
    const { sandbox } = transport
    return sandbox === undefined ? transport : { run: (script) => sandbox.run(script, at) }
  }

  const run = (where: Pick<Transport, "run">, script: (token: string) => string, id = "", input?: Uint8Array) =>
    runScript(where, script, input).pipe(
      Effect.flatMap((finished) => checked(finished, id, limits)),
      Effect.mapError((error) =>
        error._tag === "CheckpointFailed"
          ? new CheckpointFailed({ reason: error.reason, details: redact(error.details) })
          : error
      ),
      Effect.tapErrorTag("CheckpointFailed", ({ reason }) =>
        Effect.sync(() => {
          if (reason === "gone") store = undefined
        })
      )
    )

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() =>
      // A lost connection leaves the store; the next one that is created there removes it when it is old.
      store === undefined
        ? Effect.void
        : run(transport, removing(store)).pipe(Effect.interruptible, Effect.timeout("10 seconds"), Effect.ignore)
    )
  )

  // Uninterruptible, so that no store is created and forgotten.
  const opened = Effect.uninterruptible(
    Effect.suspend(() =>
      store === undefined
        ? Effect.map(run(transport, creating(place)), (output) => (store = output.toString("utf8")))
        : Effect.succeed(store)
    )
  )

  const messageOf = (kind: Checkpoint["kind"], label: string | undefined) =>
    Effect.map(Clock.currentTimeMillis, (now) =>
      // One line of ASCII.
      encodeMessage({
        created: new Date(now).toISOString(),
        kind,
        ...(label === undefined ? {} : { label })
      }).replaceAll(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)
    )

  const nextNumber = () => `${(number += 1)}`.padStart(10, "0")

  const create: Checkpoints["create"] = Effect.fn("Checkpoints.create")(function* (kind, label) {
    yield* checkLabel(label)
    const message = yield* messageOf(kind, label)
    const at = yield* opened
    const name = nextNumber()
    const body = `main() {
  capture '' ${name} ${quoted(message)} ${kind === "command" ? "reuse" : "''"} || return
  old=
  case " $(printf '%s' "$ids" | tr '\\n' ' ') " in *" $id "*) old=yes ;; esac
  [ -n "$old" ] || prune ${name} >/dev/null
  printf '%s %s' "$id" "\${old:-no}"
}`
    const output = (yield* within(
      run(workOn(at), onStore(place, at, `${capturing(place, limits)}\n${body}`))
    )).toString("utf8")
    return { id: output.slice(0, 40), isNew: output.endsWith("no") }
  }, turn.withPermits(1))

  const listed = Effect.fnUntraced(function* (at: string) {
    const body = `main() {
  git for-each-ref --sort=-refname --format='%(objectname) %(contents:subject)' refs/checkpoints/
}`
    const output = (yield* run(workOn(at), onStore(place, at, body))).toString("utf8")
    return output.split("\n").flatMap((line): ReadonlyArray<Checkpoint> => {
      const message = decodeMessage(line.slice(41))
      return message._tag === "None" ? [] : [{ id: line.slice(0, 40), ...message.value }]
    })
  })

  const list: Checkpoints["list"] = turn.withPermits(1)(
    Effect.suspend(() => (store === undefined ? Effect.succeed([]) : listed(store)))
  )

  const restoreAt = Effect.fnUntraced(function* (at: string, id: string) {
    const message = yield* messageOf("restore", undefined)
    const compare = `${capturing(place, limits)}\n${Scripts.finding(id)}\n${Scripts.comparing(nextNumber(), message)}`
    const comparison = Restoration.comparisonIn(yield* within(run(workOn(at), onStore(place, at, compare), id)))
    if (comparison === undefined) {
      return yield* new CheckpointFailed({
        reason: "failed",
        details: "the comparison with the checkpoint is incomplete"
      })
    }
    const steps = Restoration.steps(comparison)
    const { from, safety, target } = comparison
    yield* run(workOn(at), onStore(place, at, Scripts.applying(from, target)), id, Restoration.encoded(steps)).pipe(
      Effect.mapError((error) =>
        error._tag === "CheckpointFailed"
          ? new CheckpointFailed({
              reason: error.reason,
              details: `${error.details}\nThe state before is checkpoint ${safety}.`
            })
          : error
      ),
      Effect.uninterruptible
    )
    const { added, changed, deleted } = Restoration.account(comparison, steps)
    const shown = (paths: ReadonlyArray<string>) => paths.slice(0, shownPaths).map(redact)
    return {
      restored_to: target,
      safety_checkpoint: safety,
      files_changed: added.length + changed.length + deleted.length,
      added: shown(added),
      changed: shown(changed),
      deleted: shown(deleted)
    }
  })

  const restore: Checkpoints["restore"] = Effect.fn("Checkpoints.restore")(function* (id) {
    if (id !== undefined) yield* checkID(id)
    if (store === undefined) return yield* new CheckpointNotFound({ checkpointID: id ?? "" })
    const chosen = id ?? (yield* listed(store)).find(({ kind }) => kind !== "restore")?.id
    if (chosen === undefined) return yield* new CheckpointNotFound({ checkpointID: "" })
    return yield* restoreAt(store, chosen)
  }, turn.withPermits(1))

  return { create, list, restore }
})
