/**
 * One open shell: runs its commands one after another within budgets and policy, records them, and closes once. `Shells.ts`
 * keeps the open shells. Spec: SL-20..SL-27, SL-66..SL-77 in specs/shell.md.
 */
import { performance } from "node:perf_hooks"
import { allowance } from "@daybook/core/child/SandboxWatch"
import * as FairLock from "@daybook/log/support/FairLock"
import { withSpan } from "@daybook/log/support/Spans"
import { Deferred, Duration, Effect, Either, Exit, Redacted, Scope, Stream } from "effect"
import type { ExecResult } from "./domain/ExecResult.ts"
import {
  type CloseReason,
  CommandBlocked,
  InvalidOption,
  ShellClosed,
  type TransportFailed
} from "./domain/ShellError.ts"
import type { Target } from "./domain/Target.ts"
import type { OutputStore } from "./output/OutputStore.ts"
import type { Policy } from "./policy/Policy.ts"
import * as ShellRecord from "./record/ShellRecord.ts"
import type { ShellRecordFailed } from "./record/ShellRecord.ts"
import * as Execution from "./session/Execution.ts"
import * as LiveShell from "./session/LiveShell.ts"
import { inFolder } from "./session/ShellScripts.ts"
import { defaults, type ExecOptions, longestCommand } from "./ShellOptions.ts"
import * as LineBudget from "./output/LineBudget.ts"
import type { CheckpointError, ShellCheckpoints } from "./ShellCheckpoints.ts"
import { redacted, type Secrets } from "./output/RedactionStream.ts"
import type { Transport } from "./transport/Program.ts"

export type ExecError = InvalidOption | ShellClosed | CommandBlocked | TransportFailed | ShellRecordFailed

/** Work on checkpoints waits for the commands before it. */
type Turned = <A>(
  use: (checkpoints: ShellCheckpoints) => Effect.Effect<A, CheckpointError>
) => Effect.Effect<A, CheckpointError | ShellClosed>

export interface Parts {
  readonly id: string
  readonly target: Target
  readonly transport: Transport
  readonly live: LiveShell.LiveShell
  readonly late: Execution.LateOutput
  /** Holds the transport and the shell. */
  readonly scope: Scope.CloseableScope
  readonly budget: LineBudget.CompiledBudget
  readonly policy: Policy
  readonly checkpoints: ShellCheckpoints
  readonly secrets: Secrets
  readonly store: OutputStore | undefined
  /** Handles of outputs begin with `prefix`; `run` tells those of this process from those of others. */
  readonly outputs: { readonly prefix: string; readonly run: string }
  /** Zero: never. */
  readonly idle: Duration.Duration
  readonly recording: ShellRecord.Recording
  /** Stores a fact that need not wait for its turn. */
  readonly write: (fact: ShellRecord.ShellFact) => Effect.Effect<void, ShellRecordFailed>
}

/** Why a command is refused before it is judged. */
const invalid = (command: string, seconds: number): InvalidOption | undefined => {
  if (command.includes("\0")) return new InvalidOption({ option: "command", details: "a command cannot contain NUL" })
  if (command.length > longestCommand) {
    const details = `a command has at most ${longestCommand} characters`
    return new InvalidOption({ option: "command", details })
  }
  if (seconds >= 1 && seconds <= defaults.longestTimeoutSeconds) return undefined
  const details = `expected 1 to ${defaults.longestTimeoutSeconds} seconds, got ${seconds}`
  return new InvalidOption({ option: "timeout_secs", details })
}

/** Passwords of the target. */
export const secretsOf = (target: Target): ReadonlyArray<string> =>
  target.transport === "ssh"
    ? [target.password, target.passphrase].flatMap((secret) => (secret === undefined ? [] : [Redacted.value(secret)]))
    : []

/** What the sandbox allows, if that can be why a command failed or its shell ended (SB-13). */
const allowedBy = (
  { sandbox }: Transport,
  { code, stopped }: LiveShell.CommandEnd,
  closed: CloseReason | undefined
): string | undefined => {
  if (sandbox === undefined || stopped || code === 0) return undefined
  switch (closed) {
    case "processes":
    case "memory":
      return `Stopped: ${allowance(closed, sandbox.limits)}.`
    case "unprotected":
      return "Stopped: a file that the sandbox protects was replaced; a new shell protects it again."
    default:
      return sandbox.summary
  }
}

const runWithInput = (
  { live, transport }: Parts,
  command: LiveShell.Command,
  input: ExecOptions["input"],
  sinks: Execution.Execution["sinks"]
) => {
  if (input === undefined) return live.run(command, sinks)
  return Effect.scoped(
    Effect.gen(function* () {
      const pipe = yield* Execution.open(transport)
      const texts = typeof input === "string" ? Stream.make(input) : input
      yield* Effect.forkScoped(Effect.zipRight(Stream.runForEach(texts, pipe.write), pipe.end))
      return yield* live.run({ ...command, input: pipe.path }, sinks)
    })
  )
}

export const make = Effect.fnUntraced(function* (parts: Parts) {
  const { id, late, live, policy, recording, secrets, write } = parts
  const { run: turn } = FairLock.make()
  const clock = yield* Effect.clock
  const closed = yield* Deferred.make<CloseReason>()
  let closing: CloseReason | undefined
  let busy = 0
  let commands = 0
  let idleSince = clock.unsafeCurrentTimeMillis()

  const end = (reason: CloseReason) =>
    Scope.close(parts.scope, Exit.void).pipe(
      // After the running command's own fact.
      Effect.zipRight(turn(recording.add(ShellRecord.closed(id, reason)))),
      Effect.flatMap((failure) =>
        // A removed session takes no more records (SL-108).
        failure === undefined || failure.reason === "no session"
          ? Effect.void
          : Effect.logWarning(`shell ${id} is closed, and its record does not say so: ${failure.details}`)
      ),
      Effect.zipRight(Deferred.succeed(closed, reason))
    )

  const close = (reason: CloseReason) =>
    Effect.suspend(() => {
      if (closing !== undefined) return Effect.as(Deferred.await(closed), false)
      closing = reason
      // A daemon: an interruption of the caller would reach the races within, although it cannot interrupt them.
      return Effect.as(Effect.zipRight(Effect.forkDaemon(end(reason)), Deferred.await(closed)), true)
    })

  const execution = (handle: string, budget: LineBudget.CompiledBudget, { call, onText }: ExecOptions) =>
    call === undefined
      ? Execution.make({
          budget,
          secrets,
          store: parts.store,
          handle,
          dialect: live.dialect,
          onText: onText === undefined ? undefined : (stream, text) => onText(stream, text, live)
        })
      : Execution.passed({
          take: (stream, bytes) => call.take(stream, bytes, live),
          secrets,
          dialect: live.dialect
        })

  /** The command has run: whether it is recorded or not, its caller gets the result. */
  const recorded = (command: string, handle: string, result: ExecResult, callID: string | undefined) =>
    Effect.map(
      recording.add(ShellRecord.executed(id, redacted(command, secrets), result, callID)),
      (failure): ExecResult => {
        if (failure === undefined) return result
        const more = ShellRecord.unrecorded(failure)
        if (result.output === undefined || failure.reason === "unavailable") return { ...result, ...more }
        // Nothing will name the output, and its session may have been removed.
        parts.store?.remove(handle)
        const { output: _, ...rest } = result
        return { ...rest, ...more }
      }
    )

  const runAfter = (
    missing: string | undefined,
    command: string,
    options: ExecOptions,
    budget: LineBudget.CompiledBudget
  ): Effect.Effect<ExecResult, ExecError> => {
    commands += 1
    const handle = `${parts.outputs.prefix}${id}.${commands}.${parts.outputs.run}`
    const { result, sinks } = execution(handle, budget, options)
    const started = performance.now()
    /** The result. A shell that another call closes reports the reason of that call. */
    const end = (ended: LiveShell.CommandEnd) => {
      const millis = performance.now() - started
      const closed = closing ?? ended.closed
      const allowed = allowedBy(parts.transport, ended, closed)
      const final = {
        ...result(ended, { millis, late: late.take() }),
        ...(closed === undefined ? {} : { closed }),
        ...(allowed === undefined ? {} : { sandbox: allowed }),
        ...(missing === undefined ? {} : { no_checkpoint: missing })
      }
      return recorded(command, handle, final, options.call?.callID)
    }
    const onInterrupt = (ended: LiveShell.CommandEnd) =>
      Effect.flatMap(end(ended), ({ not_recorded: why }) =>
        why === undefined
          ? Effect.void
          : Effect.logWarning(`shell ${id}: an interrupted command is not recorded: ${why}`)
      )
    const text = options.cwd === undefined ? command : inFolder(live.dialect, options.cwd, command)
    const timeoutMillis = 1_000 * (options.timeoutSeconds ?? defaults.timeoutSeconds)
    return Effect.flatMap(
      runWithInput(parts, { text, stop: options.stop, timeoutMillis, onInterrupt }, options.input, sinks),
      (ended): Effect.Effect<ExecResult, ExecError> =>
        ended === undefined ? new ShellClosed({ shellID: id, reason: closing ?? "exited" }) : end(ended)
    )
  }

  const run = (command: string, options: ExecOptions, budget: LineBudget.CompiledBudget) =>
    Effect.suspend(() =>
      closing === undefined
        ? recording.ready.pipe(
            Effect.zipRight(parts.checkpoints.before(command)),
            Effect.flatMap((missing) => runAfter(missing, command, options, budget))
          )
        : new ShellClosed({ shellID: id, reason: closing })
    )

  const inTurn = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.uninterruptibleMask((restore) => {
      busy += 1
      return Effect.flatMap(Effect.exit(restore(turn(work))), (exit) => {
        busy -= 1
        idleSince = clock.unsafeCurrentTimeMillis()
        return exit
      })
    })

  /** Runs a command in its turn. One that is stopped before never runs. */
  const unlessStopped = (
    stop: Effect.Effect<void> | undefined,
    work: Effect.Effect<ExecResult, ExecError>
  ): Effect.Effect<ExecResult, ExecError> => {
    // If its turn is now, the command itself looks for the stop.
    if (stop === undefined || busy === 0) return inTurn(work)
    let begun = false
    const running = inTurn(
      Effect.suspend(() => {
        begun = true
        return work
      })
    )
    const none = (): ExecResult => ({
      stdout: "",
      stderr: "",
      exit_code: Execution.interrupted,
      duration_ms: 0,
      cwd: redacted(live.cwd(), secrets),
      truncated: false
    })
    return Effect.raceFirst(
      running,
      Effect.flatMap(stop, () => (begun ? Effect.never : Effect.sync(none)))
    )
  }

  const isOpen = Effect.suspend(() =>
    closing === undefined ? Effect.void : Effect.fail(new ShellClosed({ shellID: id, reason: closing }))
  )

  const checkpoints: Turned = (use) =>
    inTurn(isOpen.pipe(Effect.zipRight(recording.ready), Effect.zipRight(use(parts.checkpoints))))

  const blocked = (command: string, { policy: list, reason }: CommandBlocked) => {
    const refusal = new CommandBlocked({ policy: list, reason: redacted(reason, secrets) })
    return write(ShellRecord.blocked(id, redacted(command, secrets), refusal)).pipe(
      // The refusal is the answer in any case.
      Effect.catchAll((error) => Effect.logWarning(`shell ${id}: a blocked command is not recorded: ${error.details}`)),
      Effect.zipRight(refusal)
    )
  }

  const execute = (
    command: string,
    options: ExecOptions,
    accepted?: Effect.Effect<void>
  ): Effect.Effect<ExecResult, ExecError> => {
    const refusal = invalid(command, options.timeoutSeconds ?? defaults.timeoutSeconds)
    if (refusal !== undefined) return refusal
    const budget = options.budget === undefined ? Either.right(parts.budget) : LineBudget.compile(options.budget)
    if (Either.isLeft(budget)) return budget.left
    const judged = policy.check(command)
    if (Either.isLeft(judged)) return blocked(command, judged.left)
    const ran = Effect.flatMap(unlessStopped(options.stop, run(command, options, budget.right)), (result) =>
      result.closed === undefined ? Effect.succeed(result) : Effect.as(close(result.closed), result)
    )
    return accepted === undefined ? ran : Effect.zipRight(accepted, ran)
  }

  const exec = (...call: Parameters<typeof execute>) => withSpan("Shells.exec")(Effect.suspend(() => execute(...call)))

  const reap: Effect.Effect<void> = Effect.gen(function* () {
    const now = clock.unsafeCurrentTimeMillis()
    const left = busy > 0 ? Duration.toMillis(parts.idle) : idleSince + Duration.toMillis(parts.idle) - now
    if (left <= 0) return yield* Effect.asVoid(close("reaped"))
    yield* Effect.sleep(left)
    yield* reap
  })

  // Daemons: they end with the shell, and `close` must not wait for itself. Interruptible: the shell is opened where nothing is.
  const watches = [Effect.flatMap(live.ended, close), ...(Duration.toMillis(parts.idle) === 0 ? [] : [reap])]
  yield* Effect.forEach(watches, (watch) =>
    Effect.forkDaemon(
      Effect.interruptible(Effect.raceFirst(Effect.asVoid(watch), Effect.asVoid(Deferred.await(closed))))
    )
  )

  return {
    target: parts.target,
    /** `accepted` runs when the command is not refused, before it waits for its turn. */
    exec,
    /** Its checkpoints, in turn with its commands. */
    checkpoints,
    close,
    /** The working folder as it may be shown. */
    cwd: () => redacted(live.cwd(), secrets),
    /** The working folder itself. */
    folder: live.cwd,
    /** Commands that run or wait. */
    busy: () => busy,
    /** Milliseconds since the epoch: the end of the last command, or the opening. */
    idleSince: () => idleSince,
    /** Completes when the shell is closed for any reason, after its last fact is recorded. */
    closed: Deferred.await(closed)
  }
})

export type OpenShell = Effect.Effect.Success<ReturnType<typeof make>>
