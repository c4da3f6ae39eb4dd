/**
 * Keeps the files under a root equal to the log, from a cursor of its own. It holds the root, runs one operation at a
 * time, and takes the root again if its record was removed. `Export.ts` decides what is written and in which order,
 * `SessionWriter.ts` writes a session's folder, `Work.ts` an index, `Ledger.ts` records what was written, and
 * `Following.ts` is the loop. `ExporterThread.ts` runs all of this in a thread of its own. Spec: FI-60..FI-89, FI-100,
 * FI-124 in specs/files.md.
 */
import { realpath } from "node:fs/promises"
import { Context, Effect, Layer, PubSub, type Queue, Schedule, type Scope, ScopedRef } from "effect"
import { ConsumerStore } from "@daybook/log/consumer/ConsumerStore"
import { EventLog, type LogUnavailable, type SessionNotFound } from "@daybook/log/log/EventLog"
import { SessionStore } from "@daybook/log/store/SessionStore"
import { processUid } from "./disk/FileCalls.ts"
import type { SafeFilesOptions } from "./disk/SafeFiles.ts"
import * as Export from "./export/Export.ts"
import * as Following from "./export/Following.ts"
import {
  type ExportError,
  type Finding,
  type RootBusy,
  type RootOfAnotherStore,
  RootUnusable
} from "./layout/Errors.ts"
import type { SharedSpaces } from "./layout/Layout.ts"
import * as LedgerFile from "./record/LedgerFile.ts"
import { isGone, nameOf } from "./record/LedgerFile.ts"
import type { Ledger } from "./record/Ledger.ts"
import type { Exported } from "./ExporterRequests.ts"

/** The root of the exporter, and who may read below it. */
export interface ExporterOptions {
  /** The folder that holds the layout; created if absent. */
  readonly root: string
  /** The owner of sessions without an address; by default the user of this process. */
  readonly uid?: number | undefined
  /** Who may read each shared space, besides its owner. Only the owner reads a space that is not listed. */
  readonly shared?: SharedSpaces | undefined
  /** Runs before each file operation; an exception fails the operation. For fault tests. */
  readonly before?: SafeFilesOptions["before"]
}

/** What `Exporter` offers. */
export interface ExporterService {
  /** Brings all files to the end of the log and restores deleted or changed files. */
  readonly catchUp: Effect.Effect<Exported, ExportError>
  /** Brings one session's files to the end of its log, whatever the exporter's cursor is. */
  readonly exportSession: (sessionID: string) => Effect.Effect<void, ExportError | SessionNotFound>
  /** Renders one session or all again, compares every byte, and rewrites what differs. */
  readonly rebuild: (sessionID?: string) => Effect.Effect<Exported, ExportError | SessionNotFound>
  /** Waits until the files reflect this position. Returns at once while the exporter fails: no run waits for it. */
  readonly reached: (position: number) => Effect.Effect<void>
  readonly position: Effect.Effect<number, ExportError>
  readonly follow: Effect.Effect<never>
  /** Subscribes to findings until the scope closes; the newest 1,024 are kept. Each is also logged. */
  readonly findings: Effect.Effect<Queue.Dequeue<Finding>, never, Scope.Scope>
}

/**
 * Keeps the files of one store under one root.
 *
 * @example
 * ```ts
 * import { Exporter } from "@daybook/files"
 * import { Effect } from "effect"
 *
 * // Brings all files to the end of the log.
 * export const caughtUp = Effect.flatMap(Exporter, ({ catchUp }) => catchUp)
 * ```
 */
export class Exporter extends Context.Tag("@daybook/files/Exporter")<Exporter, ExporterService>() {
  /** An exporter over one root. Fails with `RootBusy` if another process has the root. It writes only on request. */
  static layer(
    options: ExporterOptions
  ): Layer.Layer<Exporter, RootBusy | RootOfAnotherStore | RootUnusable, EventLog | SessionStore> {
    return Layer.scoped(Exporter, make(options))
  }

  /** Takes the root only to remove the files of removed sessions. Other files stay as they are. */
  static removeFiles(options: ExporterOptions): Effect.Effect<void, ExportError, EventLog | SessionStore> {
    return Effect.scoped(
      Effect.gen(function* () {
        yield* Export.checkGroups(options.root, options.shared)
        const { work } = yield* take(options, yield* PubSub.sliding<Finding>(1))
        yield* work.removeFiles
      })
    )
  }

  /** Runs `follow` of the exporter in the context. */
  static get follow(): Effect.Effect<never, never, Exporter> {
    return Effect.flatMap(Exporter, ({ follow }) => follow)
  }
}

type OpenRoot = {
  readonly ledger: Ledger
  readonly status: ReturnType<typeof LedgerFile.makeFollowerStatus>
  readonly work: Export.Export
}

/** Takes the root with its lock, and makes the work on its files. */
const take = Effect.fnUntraced(function* (
  options: ExporterOptions,
  findings: PubSub.PubSub<Finding>
): Effect.fn.Return<OpenRoot, RootBusy | RootOfAnotherStore | RootUnusable, EventLog | SessionStore | Scope.Scope> {
  const [log, store] = [yield* EventLog, yield* SessionStore]
  const { modes, root } = yield* Export.openFolder(options.root, options.shared)
  const taken = yield* Export.open({ root, before: options.before }, modes, log)
  const report = (finding: Finding) =>
    Effect.zipRight(
      Effect.logWarning(`${root}/${finding.path}: ${finding.details}`),
      Effect.asVoid(PubSub.publish(findings, finding))
    )
  const uid = options.uid ?? process.getuid?.() ?? 0
  return {
    ledger: taken.ledger,
    status: LedgerFile.makeFollowerStatus(taken.files, processUid),
    work: Export.make(taken, { log, store, modes, report, uid })
  }
})

const make = Effect.fn("Exporter.make")(function* (
  options: ExporterOptions
): Effect.fn.Return<
  Exporter["Type"],
  RootBusy | RootOfAnotherStore | RootUnusable,
  EventLog | SessionStore | Scope.Scope
> {
  const log = yield* EventLog
  const findings = yield* PubSub.sliding<Finding>(1_024)
  yield* Effect.addFinalizer(() => PubSub.shutdown(findings))
  yield* Export.checkGroups(options.root, options.shared)
  const context = yield* Effect.context<EventLog | SessionStore>()
  /** The root with its lock, and the work on its files. */
  const taking = Effect.provide(take(options, findings), context)
  const held = yield* ScopedRef.fromAcquire(taking)
  /** Whether the root was taken again since the follower last wrote its status. */
  let takenAgain = false

  /** Takes the root again if the record was removed or replaced, because its lock no longer protects the root (FI-100). */
  const current = Effect.gen(function* () {
    const { ledger, work } = yield* held
    if (yield* ledger.isHeld) return work
    yield* Effect.logWarning(
      `the exporter's record under ${options.root} was removed or replaced: taking the root again and comparing all files with the log`
    )
    yield* ScopedRef.set(held, taking)
    takenAgain = true
    return (yield* held).work
  })

  const permits = yield* Effect.makeSemaphore(1)
  const alone = <A, E>(use: (work: Export.Export) => Effect.Effect<A, E>) =>
    permits.withPermits(1)(Effect.flatMap(current, use))

  const position = Effect.flatMap(held, ({ ledger }) => Effect.map(ledger.cursor, ({ position }) => position))
  const following = yield* Following.make({
    log,
    position,
    first: alone(({ catchUp }) => catchUp),
    batch: alone(({ pull }) =>
      Effect.map(pull, (pulled) => {
        const anew = takenAgain
        takenAgain = false
        return { ...pulled, anew }
      })
    ),
    retry: alone(({ retryBehind }) => retryBehind),
    sweep: alone(({ sweepSome }) => sweepSome),
    // If another process has the root, only that process writes the status.
    say: (state) =>
      Effect.flatMap(held, ({ ledger, status }) =>
        Effect.whenEffect(
          status.write(state),
          Effect.orElseSucceed(ledger.isHeld, () => false)
        )
      )
  })

  return {
    catchUp: Effect.withSpan(
      alone(({ catchUp }) => catchUp),
      "Exporter.catchUp"
    ),
    exportSession: (id) => alone(({ exportSession }) => exportSession(id)),
    rebuild: (id) => alone(({ rebuild }) => rebuild(id)),
    reached: following.reached,
    position,
    follow: following.follow,
    findings: PubSub.subscribe(findings)
  }
})

// Keeps a prune from removing events that the files do not have yet, by a consumer that outlives the process.

/** How often the position is stored: each time is a commit. */
const every = "30 seconds"

/** Forgets the holds of removed roots. */
const forgetGone = Effect.fnUntraced(function* ({ list, remove }: typeof ConsumerStore.Service) {
  for (const { name } of yield* list) if (yield* isGone(name)) yield* remove(name)
})

const makeHold = Effect.fn("Hold.make")(function* (root: string) {
  const [exporter, consumers] = [yield* Exporter, yield* ConsumerStore]
  yield* forgetGone(consumers)
  const real = yield* Effect.tryPromise({
    try: () => realpath(root),
    catch: (error) => new RootUnusable({ root, details: String(error) })
  })
  const claim = yield* Effect.catchTags(
    consumers.claim({ name: nameOf(real), sessionID: undefined, start: "beginning" }),
    // It follows the feed, and so does every hold.
    { ConsumerMismatch: Effect.die, SessionNotFound: Effect.die }
  )
  let stored = claim.place.cursor
  const store = Effect.gen(function* () {
    const position = yield* exporter.position
    // It goes back if the record was removed: the files are then compared with the whole log.
    if (position === stored) return
    yield* consumers.commit(claim, { ...claim.place, cursor: position }, Effect.void)
    stored = position
  }).pipe(
    Effect.catchAll((error) =>
      Effect.logWarning(
        `what the files under ${root} still need of the log is not known to retention: ${error.message}`
      )
    )
  )
  yield* Effect.addFinalizer(() => store)
  yield* Effect.forkScoped(Effect.repeat(store, Schedule.spaced(every)))
})

/** Holds events for the exporter of this root in the context, also while no exporter runs, until the root is removed. */
export const layerHold = (root: string): Layer.Layer<never, RootUnusable | LogUnavailable, Exporter | ConsumerStore> =>
  Layer.scopedDiscard(makeHold(root))
