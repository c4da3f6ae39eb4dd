/**
 * Live shells by id: creates them within a limit, closes them when they are idle, and records what happens. Usable without the
 * runtime: with `ShellRecord.none`, nothing is stored. Spec: SL-66..SL-77 in specs/shell.md.
 */
import { randomBytes } from "node:crypto"
import { ShellTransport } from "@daybook/log/events/LiveShellEvents"
import { Sandbox } from "@daybook/core/child/Sandbox"
import * as Redaction from "@daybook/log/support/Redaction"
import {
  Clock,
  Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  Layer,
  PubSub,
  Schema,
  Scope,
  Stream,
  type Subscribable,
  SubscriptionRef
} from "effect"
import {
  checkpointSettings,
  type CreateOptions,
  defaults,
  type ExecOptions,
  type HostOptions,
  type ShellSettings
} from "./ShellOptions.ts"
import type { Checkpoint, Checkpointed, Restored } from "./checkpoint/Checkpoints.ts"
import type { ExecResult } from "./domain/ExecResult.ts"
import {
  type CloseReason,
  type InvalidOption,
  ShellClosed,
  ShellLimit,
  ShellNotFound,
  TransportFailed
} from "./domain/ShellError.ts"
import { shellID } from "./domain/Target.ts"
import * as Background from "./Background.ts"
import * as OpenShell from "./OpenShell.ts"
import * as ShellCheckpoints from "./ShellCheckpoints.ts"
import * as OutputStore from "./output/OutputStore.ts"
import * as Policy from "./policy/Policy.ts"
import * as ShellRecord from "./record/ShellRecord.ts"
import type { ShellRecordFailed } from "./record/ShellRecord.ts"
import * as Execution from "./session/Execution.ts"
import * as LiveShell from "./session/LiveShell.ts"
import * as LineBudget from "./output/LineBudget.ts"
import { prepare, redacted } from "./output/RedactionStream.ts"
import * as Transports from "./transport/Transports.ts"

/** An open shell, as `list` shows it. */
export const ListedShell = Schema.Struct({
  session_id: Schema.String,
  transport: ShellTransport,
  /** The working folder after its last command, without secrets. */
  cwd: Schema.String,
  /** Seconds since the end of the last command; 0 while one runs. */
  idle_secs: Schema.Int,
  /** Commands that run or wait. */
  busy: Schema.Int
})
export type ListedShell = typeof ListedShell.Type

export type CreateError = InvalidOption | ShellLimit | TransportFailed | ShellRecordFailed

export type CheckpointError = ShellNotFound | ShellClosed | ShellCheckpoints.CheckpointError

/** What `Shells` offers. */
export interface Service {
  /** Opens a shell and returns its id (seed 001). */
  readonly create: (options: CreateOptions, host?: HostOptions) => Effect.Effect<string, CreateError>
  /** Runs a command and waits for its end, in the order of the calls. Interruption stops all that it started. */
  readonly exec: (
    id: string,
    command: string,
    options?: ExecOptions
  ) => Effect.Effect<ExecResult, ShellNotFound | OpenShell.ExecError>
  /** Commands that run while their caller does something else. */
  readonly background: Background.Background
  /** Closes a shell, and ends its running command; false if it is not open. */
  readonly destroy: (id: string) => Effect.Effect<boolean>
  /** Waits until the shell is closed, and says why. */
  readonly closed: (id: string) => Effect.Effect<CloseReason, ShellNotFound>
  /** Stores the state of the shell's workspace, after the commands before. */
  readonly checkpoint: (id: string, label?: string) => Effect.Effect<Checkpointed, CheckpointError>
  /** The checkpoints of a shell, the newest first; the last 50 are kept until the shell closes. */
  readonly checkpoints: (id: string) => Effect.Effect<ReadonlyArray<Checkpoint>, CheckpointError>
  /**
   * The workspace is as it was at a checkpoint; at the most recent one by default, except those that a restore made. Files that
   * are ignored stay. If it fails, the error names the checkpoint of the state before.
   */
  readonly restore: (id: string, checkpointID?: string) => Effect.Effect<Restored, CheckpointError>
  /** The working folder of an open shell, which is not for anybody to read: it may contain a secret. */
  readonly folder: (id: string) => Effect.Effect<string | undefined>
  /** The open shells in the order of their opening. */
  readonly list: Effect.Effect<ReadonlyArray<ListedShell>>
  /** How many shells are open or being opened: now, and after each change. */
  readonly count: Subscribable.Subscribable<number>
  /** The facts from now on. A reader that is 1,024 facts behind misses the oldest. */
  readonly events: Stream.Stream<ShellRecord.ShellFact>
  /** A part of a whole output, by the handle in its result: 65,536 bytes from the beginning by default. */
  readonly output: (
    handle: string,
    stream: OutputStore.OutputStream,
    options?: { readonly offset?: number; readonly limit?: number }
  ) => Effect.Effect<OutputStore.OutputPage, OutputStore.OutputNotFound>
}

/**
 * Opens live shells and runs commands in them.
 *
 * @example
 * ```ts
 * import { Shells } from "@daybook/shell"
 * import { Effect } from "effect"
 *
 * // Two commands in one shell: the second runs where the first went.
 * export const twice = Effect.gen(function* () {
 *   const shells = yield* Shells.Shells
 *   const id = yield* shells.create({ target: { transport: "local", cwd: "/tmp" } })
 *   yield* shells.exec(id, "cd /tmp")
 *   return yield* shells.exec(id, "pwd")
 * })
 * ```
 */
export class Shells extends Context.Tag("@daybook/shell/Shells")<Shells, Service>() {}

/** The shells of one process, and what opens them. */
const makeHost = Effect.fnUntraced(function* (settings: ShellSettings) {
  return {
    settings,
    record: yield* ShellRecord.ShellRecord,
    sandbox: yield* Sandbox,
    facts: yield* Effect.acquireRelease(PubSub.sliding<ShellRecord.ShellFact>(1_024), PubSub.shutdown),
    store: settings.outputs === undefined ? undefined : OutputStore.make(settings.outputs),
    /** Values that are redacted, whatever the target. */
    known: [...(settings.secrets ?? []), ...Redaction.secretsOf(process.env)],
    open: new Map<string, OpenShell.OpenShell>(),
    /** Why shells closed, the last 1,024 of them. */
    ended: new Map<string, CloseReason>(),
    // Ids begin with 1 in each process, and processes may share a folder of outputs.
    run: randomBytes(4).toString("hex"),
    number: 0,
    /** Shells that are open or being opened. */
    slots: yield* SubscriptionRef.make(0),
    /** Done at the end of the layer. */
    ending: yield* Deferred.make<never>()
  }
})

type Host = Effect.Effect.Success<ReturnType<typeof makeHost>>

// Opens a shell.

// Taken before anything connects, so that concurrent calls never exceed the limit.
const takeSlot = ({ settings: { limit = defaults.limit }, slots }: Host) =>
  SubscriptionRef.updateEffect(slots, (taken) =>
    taken >= limit ? Effect.fail(new ShellLimit({ limit })) : Effect.succeed(taken + 1)
  )

const freeSlot = ({ slots }: Host) => SubscriptionRef.update(slots, (taken) => taken - 1)

const connected = Effect.fnUntraced(function* (host: Host, options: CreateOptions, { env }: HostOptions) {
  const { known, sandbox, settings } = host
  const { budget, lists, target, writable } = options
  const compiled = yield* LineBudget.compile(budget ?? {})
  const policy = yield* Policy.make(settings.policy, lists)
  const settled = yield* checkpointSettings(target.transport === "local", options)
  const secrets = prepare([...known, ...OpenShell.secretsOf(target)])
  const late = Execution.makeLateOutput(secrets)
  const transport = yield* Transports.make(target, settings.transports, {
    ...settings.local,
    ...(env === undefined ? {} : { env }),
    sandbox,
    hidden: settings.outputs === undefined ? [] : [settings.outputs.folder],
    ...(writable === undefined ? {} : { writable })
  })
  const live = yield* Effect.mapError(
    LiveShell.open(transport, { cwd: transport.sandbox?.cwd ?? target.cwd, late: late.sink }),
    ({ details, reason, transport: name }) =>
      new TransportFailed({ transport: name, reason, details: redacted(details, secrets) })
  )
  return { target, budget: compiled, policy, settled, secrets, late, transport, live }
})

/** Opens a shell that is connected. Its opening is recorded, so its close will be too. */
const start = Effect.fnUntraced(function* (
  host: Host,
  { record: own }: HostOptions,
  { settled, ...parts }: Effect.Effect.Success<ReturnType<typeof connected>>,
  scope: Scope.CloseableScope
) {
  const { facts, open, record, run, settings, store } = host
  const { live, secrets, target, transport } = parts
  const recorder = own ?? record
  const write = (fact: ShellRecord.ShellFact) => Effect.zipLeft(recorder.write(fact), PubSub.publish(facts, fact))
  const recording = ShellRecord.makeRecording(write)
  host.number += 1
  // Several processes may use a session one at a time, and the first may close its shell last.
  const id = own === undefined ? shellID(host.number, target) : `${shellID(host.number, target)}_${run}`
  yield* write(ShellRecord.opened(id, target, redacted(live.cwd(), secrets)))
  const redact = (text: string) => redacted(text, secrets)
  const shell = yield* OpenShell.make({
    ...parts,
    id,
    scope,
    checkpoints: yield* ShellCheckpoints.make(settled, { id, transport, redact, recording }),
    store,
    outputs: { prefix: OutputStore.prefixOf(recorder.sessionID), run },
    idle: Duration.decode(settings.idle ?? defaults.idle),
    recording,
    write
  })
  open.set(id, shell)
  yield* Effect.forkDaemon(Effect.flatMap(Deferred.await(shell.closed), (reason) => forget(host, id, reason)))
  return shell
})

const forget = (host: Host, id: string, reason: CloseReason) =>
  Effect.suspend(() => {
    const { ended, open } = host
    open.delete(id)
    ended.set(id, reason)
    const [oldest] = ended.keys()
    if (ended.size > 1_024 && oldest !== undefined) ended.delete(oldest)
    return freeSlot(host)
  })

const create = Effect.fn("Shells.create")((host: Host, options: CreateOptions, given: HostOptions) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { ending } = host
      yield* takeSlot(host)
      const scope = yield* Scope.make()
      const connecting = restore(Effect.raceFirst(connected(host, options, given), Deferred.await(ending)))
      const starting = Effect.flatMap(connecting, (parts) => start(host, given, parts, scope))
      const shell = yield* starting.pipe(
        Scope.extend(scope),
        Effect.onError(() => Effect.zipRight(Scope.close(scope, Exit.void), freeSlot(host)))
      )
      if (yield* Deferred.isDone(ending)) yield* OpenShell.close(shell, "shutdown")
      // An interrupted caller does not get the id, so it could not destroy the shell.
      yield* Effect.onInterrupt(restore(Effect.void), () => OpenShell.close(shell, "destroyed"))
      return shell.id
    })
  )
)

// Uses the open shells.

const find = ({ ended, open }: Host, id: string): Effect.Effect<OpenShell.OpenShell, ShellNotFound | ShellClosed> =>
  Effect.suspend(() => {
    const shell = open.get(id)
    if (shell !== undefined) return Effect.succeed(shell)
    const reason = ended.get(id)
    return Effect.fail(
      reason === undefined ? new ShellNotFound({ shellID: id }) : new ShellClosed({ shellID: id, reason })
    )
  })

const closeAll = Effect.fnUntraced(function* ({ ending, open, slots }: Host) {
  yield* Deferred.interrupt(ending)
  const all = { concurrency: "unbounded", discard: true } as const
  yield* Effect.forEach([...open.values()], (shell) => OpenShell.close(shell, "shutdown"), all)
  // Also those that were being opened.
  yield* Stream.runDrain(Stream.takeUntil(slots.changes, (taken) => taken === 0))
})

const listed = (shell: OpenShell.OpenShell, now: number): ListedShell => {
  const { busy, idleSince } = shell.state
  return {
    session_id: shell.id,
    transport: shell.target.transport,
    cwd: OpenShell.shownFolder(shell),
    idle_secs: busy > 0 ? 0 : Math.max(0, Math.floor((now - idleSince) / 1_000)),
    busy
  }
}

const make = Effect.fnUntraced(function* (settings: ShellSettings) {
  // A bad pattern of the operator is an error at the start.
  yield* Policy.make(settings.policy)
  const host = yield* makeHost(settings)
  const { facts, open, slots, store } = host
  yield* Effect.addFinalizer(() => closeAll(host))
  const exec = (id: string, command: string, options: ExecOptions, accepted?: Effect.Effect<void>) =>
    Effect.flatMap(find(host, id), (shell) => OpenShell.exec(shell, command, options, accepted))
  const checkpoints = <A>(
    id: string,
    use: (each: ShellCheckpoints.ShellCheckpoints) => Effect.Effect<A, ShellCheckpoints.CheckpointError>
  ) => Effect.flatMap(find(host, id), (shell) => OpenShell.checkpoints(shell, use))
  return Shells.of({
    create: (options, given = {}) => create(host, options, given),
    exec: (id, command, options = {}) => exec(id, command, options),
    background: yield* Background.make(exec),
    closed: (id) =>
      find(host, id).pipe(
        Effect.flatMap((shell) => Deferred.await(shell.closed)),
        Effect.catchTag("ShellClosed", ({ reason }) => Effect.succeed(reason))
      ),
    checkpoint: (id, label) => checkpoints(id, (each) => each.create(label)),
    checkpoints: (id) => checkpoints(id, (each) => each.list),
    restore: (id, checkpointID) => checkpoints(id, (each) => each.restore(checkpointID)),
    destroy: (id) =>
      Effect.catchAll(
        Effect.flatMap(find(host, id), (shell) => OpenShell.close(shell, "destroyed")),
        () => Effect.succeed(false)
      ),
    folder: (id) => Effect.sync(() => open.get(id)?.live.cwd()),
    list: Effect.map(Clock.currentTimeMillis, (now) => [...open.values()].map((shell) => listed(shell, now))),
    count: slots,
    events: Stream.fromPubSub(facts),
    output: (handle, stream, { limit = 65_536, offset = 0 } = {}) =>
      store === undefined
        ? Effect.fail(new OutputStore.OutputNotFound({ handle }))
        : store.page(handle, stream, offset, limit)
  })
})

/** Live shells of this process. The scope's end closes them. */
export const layer = (settings: ShellSettings = {}): Layer.Layer<Shells, InvalidOption, ShellRecord.ShellRecord> =>
  Layer.scoped(Shells, make(settings))
