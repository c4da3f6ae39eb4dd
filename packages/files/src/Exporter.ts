/**
 * The exporter: keeps the files under a root as the log says, from a cursor of its own. This file is the contract; what
 * keeps it is `internal/`-like beside it: `Ledger.ts` (what was written), `SessionWriter.ts` (one session's folder),
 * `IndexWriter.ts` (one house's index). Spec: FI-60..FI-89 in specs/files.md.
 */
import type { EventLog, SessionNotFound, SessionStore } from "@daybook/core"
import { Context, Effect, Layer, type Stream } from "effect"
import type { ExportError, Finding, RootBusy, RootOfAnotherStore, RootUnusable } from "./Errors.ts"
import type { SharedSpaces } from "./Layout.ts"

/** Where the files lie, and whose they are. */
export interface ExporterOptions {
  /** The folder that holds the layout. It is made when it is not there. */
  readonly root: string
  /** Whose sessions without an address are: this process's user, if not given. */
  readonly uid?: number | undefined
  /** Who may read a shared space beside its owner. A space that is not named is its owner's alone. */
  readonly shared?: SharedSpaces | undefined
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
    /** What was found of other hands from now on. Each is logged as well. */
    readonly findings: Stream.Stream<Finding>
  }
>() {
  /** The exporter of the store over one root; fails at once where another keeps it. It writes when it is asked to. */
  static layer(
    options: ExporterOptions
  ): Layer.Layer<Exporter, RootBusy | RootOfAnotherStore | RootUnusable, EventLog | SessionStore> {
    return Layer.die(`not yet: ${options.root}`)
  }

  /** Keeps the files current for as long as it runs. */
  static get follow(): Effect.Effect<never, never, Exporter> {
    return Effect.flatMap(Exporter, ({ follow }) => follow)
  }
}
