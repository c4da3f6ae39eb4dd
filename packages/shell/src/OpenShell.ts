/**
 * One open shell: runs its commands one after another within budgets and policy, records them, and closes once. `Shells.ts`
 * keeps the open shells. Spec: SL-20..SL-27, SL-66..SL-77 in specs/shell.md.
 */
import { performance } from "node:perf_hooks"
import { allowance } from "@daybook/core/child/SandboxWatch"
import * as FairLock from "@daybook/log/support/FairLock"
import { withSpan } from "@daybook/log/support/Spans"
import { type Clock, Deferred, Duration, Effect, Either, Exit, Redacted, Scope, Stream } from "effect"
import { present } from "@daybook/log/support/Optional"
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

/** A shell, what happened to it, and the turns of its commands. */
export interface OpenShell extends Parts {
  readonly turn: FairLock.FairLock["run"]
  readonly clock: Clock.Clock
  readonly closed: Deferred.Deferred<CloseReason>
  readonly state: {
    closing: CloseReason | undefined
    /** Commands that run or wait. */
    busy: number
    /** Commands that began. */
    commands: number
    /** Milliseconds since the epoch: the end of the last command, or the opening. */
    idleSince: number
  }
}

export const make = Effect.fnUntraced(function* (parts: Parts) {
  const closed = yield* Deferred.make<CloseReason>()
  const clock = yield* Effect.clock
  const state = { closing: undefined, busy: 0, commands: 0, idleSince: clock.unsafeCurrentTimeMillis() }
  const shell: OpenShell = { ...parts, turn: FairLock.make().run, clock, closed, state }
  const idle = Duration.toMillis(parts.idle)
  const watches = [
    Effect.flatMap(parts.live.ended, (reason) => close(shell, reason)),
    ...(idle === 0 ? [] : [reap(shell, idle)])
  ]
  // Daemons: they end with the shell, and `close` must not wait for itself. Interruptible: the shell is opened where nothing is.
  yield* Effect.forEach(watches, (watch) =>
    Effect.forkDaemon(Effect.interruptible(Effect.raceFirst(Effect.asVoid(watch), Deferred.await(closed))))
  )
  return shell
})

/** The working folder as it may be shown. */
export const shownFolder = ({ live, secrets }: OpenShell): string => redacted(live.cwd(), secrets)

// Closes the shell, once.

const end = ({ closed, id, recording, scope, turn }: OpenShell, reason: CloseReason) =>
  Scope.close(scope, Exit.void).pipe(
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

/** Whether this call closes the shell. It waits until the shell is closed, and its last fact is recorded. */
export const close = (shell: OpenShell, reason: CloseReason) =>
  Effect.suspend(() => {
    const { closed, state } = shell
    if (state.closing !== undefined) return Effect.as(Deferred.await(closed), false)
    state.closing = reason
    // A daemon: an interruption of the caller would reach the races within, although it cannot interrupt them.
    return Effect.as(Effect.zipRight(Effect.forkDaemon(end(shell, reason)), Deferred.await(closed)), true)
  })

/** Closes the shell after so long without a command, in milliseconds. */
const reap = (shell: OpenShell, idle: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { busy, idleSince } = shell.state
    const left = busy > 0 ? idle : idleSince + idle - shell.clock.unsafeCurrentTimeMillis()
    if (left <= 0) return yield* Effect.asVoid(close(shell, "reaped"))
    yield* Effect.sleep(left)
    yield* reap(shell, idle)
  })

// Runs a command, when its turn has come.

const execution = (
  { live, secrets, store }: OpenShell,
  handle: string,
  budget: LineBudget.CompiledBudget,
  { call, onText }: ExecOptions
) => {
  const { dialect } = live
  if (call !== undefined) {
    return Execution.passed({ take: (stream, bytes) => call.take(stream, bytes, live), secrets, dialect })
  }
  const told = (stream: "stdout" | "stderr", text: string) => onText?.(stream, text, live)
  return Execution.make({ budget, secrets, store, handle, dialect, onText: onText && told })
}

/** The command has run: whether it is recorded or not, its caller gets the result. */
const recorded = (
  { id, recording, secrets, store }: OpenShell,
  command: string,
  handle: string,
  result: ExecResult,
  callID: string | undefined
) =>
  Effect.map(
    recording.add(ShellRecord.executed(id, redacted(command, secrets), result, callID)),
    (failure): ExecResult => {
      if (failure === undefined) return result
      const more = ShellRecord.unrecorded(failure)
      if (result.output === undefined || failure.reason === "unavailable") return { ...result, ...more }
      // Nothing will name the output, and its session may have been removed.
      store?.remove(handle)
      const { output: _, ...rest } = result
      return { ...rest, ...more }
    }
  )

const runAfter = (
  missing: string | undefined,
  shell: OpenShell,
  command: string,
  options: ExecOptions,
  budget: LineBudget.CompiledBudget
): Effect.Effect<ExecResult, ExecError> => {
  const { id, late, live, outputs, state, transport } = shell
  state.commands += 1
  const handle = `${outputs.prefix}${id}.${state.commands}.${outputs.run}`
  const { result, sinks } = execution(shell, handle, budget, options)
  const started = performance.now()
  /** The result. A shell that another call closes reports the reason of that call. */
  const end = (ended: LiveShell.CommandEnd) => {
    const millis = performance.now() - started
    const closed = state.closing ?? ended.closed
    const allowed = allowedBy(transport, ended, closed)
    const final = {
      ...result(ended, { millis, late: late.take() }),
      ...present({ closed, sandbox: allowed, no_checkpoint: missing })
    }
    return recorded(shell, command, handle, final, options.call?.callID)
  }
  const onInterrupt = (ended: LiveShell.CommandEnd) =>
    Effect.flatMap(end(ended), ({ not_recorded: why }) =>
      why === undefined ? Effect.void : Effect.logWarning(`shell ${id}: an interrupted command is not recorded: ${why}`)
    )
  const text = options.cwd === undefined ? command : inFolder(live.dialect, options.cwd, command)
  const timeoutMillis = 1_000 * (options.timeoutSeconds ?? defaults.timeoutSeconds)
  return Effect.flatMap(
    runWithInput(shell, { text, stop: options.stop, timeoutMillis, onInterrupt }, options.input, sinks),
    (ended): Effect.Effect<ExecResult, ExecError> =>
      ended === undefined ? new ShellClosed({ shellID: id, reason: state.closing ?? "exited" }) : end(ended)
  )
}

/** Fails if the shell is closed, or its facts cannot be stored. */
const ready = ({ id, recording, state }: OpenShell) =>
  Effect.suspend((): Effect.Effect<void, ShellClosed | ShellRecordFailed> =>
    state.closing === undefined ? recording.ready : new ShellClosed({ shellID: id, reason: state.closing })
  )

const run = (shell: OpenShell, command: string, options: ExecOptions, budget: LineBudget.CompiledBudget) =>
  ready(shell).pipe(
    Effect.zipRight(shell.checkpoints.before(command)),
    Effect.flatMap((missing) => runAfter(missing, shell, command, options, budget))
  )

const inTurn = <A, E>({ clock, state, turn }: OpenShell, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptibleMask((restore) => {
    state.busy += 1
    return Effect.flatMap(Effect.exit(restore(turn(work))), (exit) => {
      state.busy -= 1
      state.idleSince = clock.unsafeCurrentTimeMillis()
      return exit
    })
  })

/** Runs a command in its turn. One that is stopped before never runs. */
const unlessStopped = (
  shell: OpenShell,
  stop: Effect.Effect<void> | undefined,
  work: Effect.Effect<ExecResult, ExecError>
): Effect.Effect<ExecResult, ExecError> => {
  // If its turn is now, the command itself looks for the stop.
  if (stop === undefined || shell.state.busy === 0) return inTurn(shell, work)
  let begun = false
  const running = Effect.suspend(() => {
    begun = true
    return work
  })
  const none = (): ExecResult => ({
    stdout: "",
    stderr: "",
    exit_code: Execution.interrupted,
    duration_ms: 0,
    cwd: shownFolder(shell),
    truncated: false
  })
  return Effect.raceFirst(
    inTurn(shell, running),
    Effect.flatMap(stop, () => (begun ? Effect.never : Effect.sync(none)))
  )
}

/** Work on the checkpoints, in turn with the commands. */
export const checkpoints = <A>(
  shell: OpenShell,
  use: (checkpoints: ShellCheckpoints) => Effect.Effect<A, CheckpointError>
): Effect.Effect<A, CheckpointError | ShellClosed> =>
  inTurn(shell, Effect.zipRight(ready(shell), use(shell.checkpoints)))

const blocked = ({ id, secrets, write }: OpenShell, command: string, { policy, reason }: CommandBlocked) => {
  const refusal = new CommandBlocked({ policy, reason: redacted(reason, secrets) })
  return write(ShellRecord.blocked(id, redacted(command, secrets), refusal)).pipe(
    // The refusal is the answer in any case.
    Effect.catchAll((error) => Effect.logWarning(`shell ${id}: a blocked command is not recorded: ${error.details}`)),
    Effect.zipRight(refusal)
  )
}

const execute = (
  shell: OpenShell,
  command: string,
  options: ExecOptions,
  accepted: Effect.Effect<void>
): Effect.Effect<ExecResult, ExecError> => {
  const refusal = invalid(command, options.timeoutSeconds ?? defaults.timeoutSeconds)
  if (refusal !== undefined) return refusal
  const budget = options.budget === undefined ? Either.right(shell.budget) : LineBudget.compile(options.budget)
  if (Either.isLeft(budget)) return budget.left
  const judged = shell.policy.check(command)
  if (Either.isLeft(judged)) return blocked(shell, command, judged.left)
  const ran = Effect.flatMap(
    unlessStopped(shell, options.stop, run(shell, command, options, budget.right)),
    (result) => (result.closed === undefined ? Effect.succeed(result) : Effect.as(close(shell, result.closed), result))
  )
  return Effect.zipRight(accepted, ran)
}

/** Runs a command. `accepted` runs when the command is not refused, before it waits for its turn. */
export const exec = (
  shell: OpenShell,
  command: string,
  options: ExecOptions,
  accepted: Effect.Effect<void> = Effect.void
) => withSpan("Shells.exec")(Effect.suspend(() => execute(shell, command, options, accepted)))
