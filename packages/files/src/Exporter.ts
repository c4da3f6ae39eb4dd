/**
 * The exporter: keeps the files under a root as the log says, from a cursor of its own. It holds the root, does one thing
 * at a time, and takes the root again when its record was removed. `Export.ts` decides what is to be done and in which
 * order; `SessionWriter.ts` writes one session's folder, `IndexWriter.ts` one index, `Ledger.ts` keeps what was written, and
 * `Following.ts` repeats it. Spec: FI-60..FI-89 in specs/files.md.
 */
import { EventLog, SessionStore, type SessionNotFound } from "@daybook/core"
import { Context, Effect, Layer, PubSub, ScopedRef, type Queue, type Scope } from "effect"
import type { ExportError, Finding, RootBusy, RootOfAnotherStore, RootUnusable } from "./Errors.ts"
import * as Export from "./Export.ts"
import { processUid } from "./FileCalls.ts"
import * as FollowerStatus from "./FollowerStatus.ts"
import * as Following from "./Following.ts"
import type { SharedSpaces } from "./Layout.ts"
import * as Root from "./Root.ts"
import type { SafeFilesOptions } from "./SafeFiles.ts"

/** Where the files lie, and whose they are. */
export interface ExporterOptions {
  /** The folder that holds the layout. It is made when it is not there. */
  readonly root: string
  /** Whose sessions without an address are: this process's user, if not given. */
  readonly uid?: number | undefined
  /** Who may read a shared space beside its owner. A space that is not named is its owner's alone. */
  readonly shared?: SharedSpaces | undefined
  /** Called before each operation on a file; what it throws is that operation's failure. For tests of failing disks. */
  readonly before?: SafeFilesOptions["before"]
}

/** How far an export came. */
export interface Exported {
  /** The last event that the files tell of, over all sessions. */
  readonly position: number
  /** Sessions that were brought up to date. */
  readonly sessions: number
}

/** The files of one store under one root. */
export class Exporter extends Context.Tag("@daybook/files/Exporter")<
  Exporter,
  {
    /** Brings all files to the end of the log, and puts back what was deleted or changed since it was written. */
    readonly catchUp: Effect.Effect<Exported, ExportError>
    /** Brings one session's files to the end of its log at once, wherever the others are. */
    readonly exportSession: (sessionID: string) => Effect.Effect<void, ExportError | SessionNotFound>
    /** Renders anew, compares every byte, and rewrites what differs; all sessions, or one. */
    readonly rebuild: (sessionID?: string) => Effect.Effect<Exported, ExportError | SessionNotFound>
    /**
     * Waits until the files tell of the event at this position. After a failure, which is logged, it returns at once:
     * nobody's run hangs on a full disk.
     */
    readonly reached: (position: number) => Effect.Effect<void>
    /** Keeps the files current for as long as it runs: at most a batch each 50 ms, again after a failure. */
    readonly follow: Effect.Effect<never>
    /** Listens, until the scope closes, to what is found of other hands; the newest 1,024 are kept. Each is logged as well. */
    readonly findings: Effect.Effect<Queue.Dequeue<Finding>, never, Scope.Scope>
  }
>() {
  /** The exporter of the store over one root; fails at once where another keeps it. It writes when it is asked to. */
  static layer(
    options: ExporterOptions
  ): Layer.Layer<Exporter, RootBusy | RootOfAnotherStore | RootUnusable, EventLog | SessionStore> {
    return Layer.scoped(Exporter, make(options))
  }

  /** Keeps the files current for as long as it runs. */
  static get follow(): Effect.Effect<never, never, Exporter> {
    return Effect.flatMap(Exporter, ({ follow }) => follow)
  }
}

const make = Effect.fn("Exporter.make")(function* (
  options: ExporterOptions
): Effect.fn.Return<
  Exporter["Type"],
  RootBusy | RootOfAnotherStore | RootUnusable,
  EventLog | SessionStore | Scope.Scope
> {
  const [log, store] = [yield* EventLog, yield* SessionStore]
  const findings = yield* PubSub.sliding<Finding>(1_024)
  yield* Effect.addFinalizer(() => PubSub.shutdown(findings))
  yield* Root.checkGroups(options.root, options.shared)
  /** The root with its lock, and the work on its files. */
  const taking = Effect.gen(function* () {
    const { modes, root } = yield* Root.openFolder(options.root, options.shared)
    const taken = yield* Root.open({ root, before: options.before }, modes, log)
    const report = (finding: Finding) =>
      Effect.zipRight(
        Effect.logWarning(`${root}/${finding.path}: ${finding.details}`),
        Effect.asVoid(PubSub.publish(findings, finding))
      )
    const uid = options.uid ?? process.getuid?.() ?? 0
    return {
      ledger: taken.ledger,
      status: FollowerStatus.make(taken.files, processUid),
      work: Export.make(taken, { log, store, modes, report, uid })
    }
  })
  const held = yield* ScopedRef.fromAcquire(taking)
  /** Whether the root was taken again since the follower last said what it does. */
  let takenAgain = false

  /** A record that was removed or replaced locks the root no more: before anything is written it is taken again. */
  const current = Effect.gen(function* () {
    const { ledger, work } = yield* held
    if (yield* ledger.isHeld) return work
    yield* Effect.logWarning(
      `the exporter's record under ${options.root} was removed or replaced: the root is taken again, and all files are compared with the log`
    )
    yield* ScopedRef.set(held, taking)
    takenAgain = true
    return (yield* held).work
  })

  const permits = yield* Effect.makeSemaphore(1)
  /** One at a time: what writes, and what looks at what was written. */
  const alone = <A, E>(use: (work: Export.Export) => Effect.Effect<A, E>) =>
    permits.withPermits(1)(Effect.flatMap(current, use))

  const following = yield* Following.make({
    log,
    position: Effect.flatMap(held, ({ ledger }) => Effect.map(ledger.cursor, ({ position }) => position)),
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
    // Under a root that another process took, it is that one's to say.
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
    follow: following.follow,
    findings: PubSub.subscribe(findings)
  }
})
