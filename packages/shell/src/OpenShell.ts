/**
 * One open shell: runs its commands one after another within budgets and policy, records them, and closes once. `Shells.ts`
 * keeps the open shells. Spec: SL-20..SL-27, SL-66..SL-79 in specs/shell.md.
 */
import { performance } from "node:perf_hooks"
import { allowance } from "@daybook/core/child/SandboxWatch"
import { Clock, Deferred, Duration, Effect, Exit, Redacted, Scope, Stream } from "effect"
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
import * as ShellFact from "./record/ShellFact.ts"
import type { ShellRecordFailed } from "./record/ShellRecord.ts"
import * as Execution from "./session/Execution.ts"
import * as InputPipe from "./session/InputPipe.ts"
import * as LateOutput from "./session/LateOutput.ts"
import * as LiveShell from "./session/LiveShell.ts"
import { inFolder } from "./session/ShellScripts.ts"
import { defaults, type ExecOptions, longestCommand } from "./ShellOptions.ts"
import * as LineBudget from "./text/LineBudget.ts"
import type { CheckpointError, ShellCheckpoints } from "./ShellCheckpoints.ts"
import { redacted, type Secrets } from "./text/RedactionStream.ts"
import type { Transport } from "./transport/Program.ts"

export type ExecError = InvalidOption | ShellClosed | CommandBlocked | TransportFailed | ShellRecordFailed

/** Work on checkpoints waits for the commands before it. */
export type Turned = <A>(
  use: (checkpoints: ShellCheckpoints) => Effect.Effect<A, CheckpointError>
) => Effect.Effect<A, CheckpointError | ShellClosed>

export interface OpenShell {
  readonly target: Target
  /** `accepted` runs when the command is not refused, before it waits for its turn. */
  readonly exec: (
    command: string,
    options: ExecOptions,
    accepted: Effect.Effect<void>
  ) => Effect.Effect<ExecResult, ExecError>
  /** Its checkpoints, in turn with its commands. */
  readonly checkpoints: Turned
  /** Closes the shell and waits until nothing of it runs. False if it is closed or closing. */
  readonly close: (reason: CloseReason) => Effect.Effect<boolean>
  readonly cwd: () => string
  /** Commands that run or wait. */
  readonly busy: () => number
  /** Milliseconds since the epoch: the end of the last command, or the opening. */
  readonly idleSince: () => number
  /** Completes when the shell is closed for any reason, after its last fact is recorded. */
  readonly closed: Effect.Effect<CloseReason>
}

export interface Parts {
  readonly id: string
  readonly target: Target
  readonly transport: Transport
  readonly live: LiveShell.LiveShell
  readonly late: LateOutput.LateOutput
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
  readonly write: (fact: ShellFact.ShellFact) => Effect.Effect<void, ShellRecordFailed>
}

const checkCommand = (command: string): Effect.Effect<void, InvalidOption> => {
  const details = command.includes("\0")
    ? "a command cannot contain NUL"
    : command.length > longestCommand
      ? `a command has at most ${longestCommand} characters`
      : undefined
  return details === undefined ? Effect.void : Effect.fail(new InvalidOption({ option: "command", details }))
}

const checkTimeout = (seconds: number): Effect.Effect<void, InvalidOption> =>
  seconds >= 1 && seconds <= defaults.longestTimeoutSeconds
    ? Effect.void
    : Effect.fail(
        new InvalidOption({
          option: "timeout_secs",
          details: `expected 1 to ${defaults.longestTimeoutSeconds} seconds, got ${seconds}`
        })
      )

/** Passwords of the target. */
export const secretsOf = (target: Target): ReadonlyArray<string> =>
  target.transport === "ssh"
    ? [target.password, target.passphrase].flatMap((secret) => (secret === undefined ? [] : [Redacted.value(secret)]))
    : []

/** What the sandbox allows, if that can be why a command failed or its shell ended (SB-13). */
const allowedBy = (
  { sandbox }: Transport,
  { code, stopped }: LiveShell.Ended,
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

/** Runs the command with its input on a fifo, or without input. */
const runWithInput = (
  { live, transport }: Parts,
  command: LiveShell.Command,
  input: ExecOptions["input"],
  sinks: Execution.Execution["sinks"]
) => {
  if (input === undefined) return live.run(command, sinks)
  return Effect.scoped(
    Effect.gen(function* () {
      const pipe = yield* InputPipe.open(transport)
      const texts = typeof input === "string" ? Stream.make(input) : input
      yield* Effect.forkScoped(Effect.zipRight(Stream.runForEach(texts, pipe.write), pipe.end))
      return yield* live.run({ ...command, input: pipe.path }, sinks)
    })
  )
}

export const make = Effect.fnUntraced(function* (parts: Parts): Effect.fn.Return<OpenShell> {
  const { id, late, live, policy, secrets, write } = parts
  const turn = yield* Effect.makeSemaphore(1)
  const closed = yield* Deferred.make<CloseReason>()
  let closing: CloseReason | undefined
  let busy = 0
  let commands = 0
  let idleSince = yield* Clock.currentTimeMillis

  const end = (reason: CloseReason) =>
    Scope.close(parts.scope, Exit.void).pipe(
      // After the running command's own fact.
      Effect.zipRight(turn.withPermits(1)(write(ShellFact.closed(id, reason)))),
      Effect.catchAll((error) =>
        // A removed session takes no more records (SL-108).
        error.reason === "no session" ? Effect.void : Effect.logWarning(`shell ${id} is closed: ${error.message}`)
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

  const run = Effect.fnUntraced(function* (command: string, options: ExecOptions, budget: LineBudget.CompiledBudget) {
    if (closing !== undefined) return yield* new ShellClosed({ shellID: id, reason: closing })
    const missing = yield* parts.checkpoints.before(command)
    commands += 1
    const { call, onText } = options
    const handle = `${parts.outputs.prefix}${id}.${commands}.${parts.outputs.run}`
    const execution =
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
    const started = performance.now()
    const timeoutMillis = 1_000 * (options.timeoutSeconds ?? defaults.timeoutSeconds)
    /** The recorded result. A shell that another call closes reports the reason of that call. */
    const recorded = Effect.fnUntraced(function* (ended: LiveShell.Ended) {
      const millis = performance.now() - started
      const result = execution.result(ended, { millis, late: late.take() })
      const closed = closing ?? ended.closed
      const allowed = allowedBy(parts.transport, ended, closed)
      const final = {
        ...result,
        ...(closed === undefined ? {} : { closed }),
        ...(allowed === undefined ? {} : { sandbox: allowed }),
        ...(missing === undefined ? {} : { no_checkpoint: missing })
      }
      yield* Effect.onError(write(ShellFact.executed(id, redacted(command, secrets), final, call?.callID)), () =>
        // Nothing names it, and its session may have been removed.
        Effect.sync(() => parts.store?.remove(handle))
      )
      return final
    })
    const onInterrupt = (ended: LiveShell.Ended) =>
      Effect.catchAll(Effect.asVoid(recorded(ended)), (error) => Effect.logWarning(`shell ${id}: ${error.message}`))
    const text = options.cwd === undefined ? command : inFolder(live.dialect, options.cwd, command)
    const ended = yield* runWithInput(
      parts,
      { text, stop: options.stop, timeoutMillis, onInterrupt },
      options.input,
      execution.sinks
    )
    if (ended === undefined) return yield* new ShellClosed({ shellID: id, reason: closing ?? "exited" })
    return yield* recorded(ended)
  })

  const inTurn = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.acquireUseRelease(
      Effect.sync(() => (busy += 1)),
      () => turn.withPermits(1)(work),
      () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          busy -= 1
          idleSince = now
        })
    )

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

  const checkpoints: Turned = (use) => inTurn(Effect.zipRight(isOpen, use(parts.checkpoints)))

  const judged = (command: string) =>
    Effect.catchAll(policy.check(command), ({ policy: list, reason }) => {
      const blocked = new CommandBlocked({ policy: list, reason: redacted(reason, secrets) })
      return Effect.zipRight(write(ShellFact.blocked(id, redacted(command, secrets), blocked)), Effect.fail(blocked))
    })

  const execute = Effect.fnUntraced(function* (command: string, options: ExecOptions, accepted: Effect.Effect<void>) {
    yield* checkCommand(command)
    yield* checkTimeout(options.timeoutSeconds ?? defaults.timeoutSeconds)
    const budget = options.budget === undefined ? parts.budget : yield* LineBudget.compile(options.budget)
    yield* judged(command)
    yield* accepted
    const result = yield* unlessStopped(options.stop, run(command, options, budget))
    if (result.closed !== undefined) yield* close(result.closed)
    return result
  })

  // Not `Effect.fn`: the stack traces that it takes for each call cost more than the rest of the span.
  const exec: OpenShell["exec"] = (...call) =>
    Effect.withSpan(execute(...call), "Shells.exec", { captureStackTrace: false })

  const reap: Effect.Effect<void> = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const left = busy > 0 ? Duration.toMillis(parts.idle) : idleSince + Duration.toMillis(parts.idle) - now
    if (left <= 0) return yield* Effect.asVoid(close("reaped"))
    yield* Effect.sleep(left)
    yield* reap
  })

  // Daemons: they end with the shell, and `close` must not wait for itself.
  const watches = [Effect.flatMap(live.ended, close), ...(Duration.toMillis(parts.idle) === 0 ? [] : [reap])]
  yield* Effect.forEach(watches, (watch) =>
    Effect.forkDaemon(Effect.raceFirst(Effect.asVoid(watch), Effect.asVoid(Deferred.await(closed))))
  )

  return {
    target: parts.target,
    exec,
    checkpoints,
    close,
    cwd: live.cwd,
    busy: () => busy,
    idleSince: () => idleSince,
    closed: Deferred.await(closed)
  }
})
