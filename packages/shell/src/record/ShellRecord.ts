/**
 * Records what happens to live shells as events of a session. It redacts nothing: callers pass redacted texts.
 * Without a database, `none` takes the facts. Spec: SL-100..SL-104, SL-107, SL-580, SL-581 in specs/shell.md.
 */
import { Array as Arr, Context, Effect, Layer, Schema } from "effect"
import { Identifiers, type SessionID } from "@daybook/log/domain/Identifiers"
import type { Location } from "@daybook/log/domain/Values"
import type { ShellCloseReason, ShellType } from "@daybook/log/events/LiveShellEvents"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { type AppendError, EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { beginningOf, endOf } from "@daybook/log/support/Text"
import type { ExecResult, Unrecorded } from "../domain/ExecResult.ts"
import type { CommandBlocked } from "../domain/ShellError.ts"
import type { Target } from "../domain/Target.ts"
import * as ShellList from "./ShellList.ts"

// What happened to a live shell, as an event to append; callers pass redacted texts.

/** A fact about one shell, not yet stored. */
export type ShellFact = Extract<Draft, { readonly type: ShellType }>

/** Maximum UTF-16 code units of a recorded command, or of one of its outputs. */
export const longestOutput = 100_000
/** Maximum UTF-16 code units of a title, a folder, a reason or a label. */
export const longestLine = 4_096

/** Both ends of a longer text, with a line between them that says how much is missing. Splits no surrogate pair. */
const bounded = (text: string, limit = longestOutput): string => {
  if (text.length <= limit) return text
  const half = Math.floor((limit - 64) / 2)
  const [head, tail] = [beginningOf(text, half), endOf(text, half)]
  return `${head}\n[${text.length - head.length - tail.length} characters are not recorded]\n${tail}`
}

const line = (text: string): string => bounded(text, longestLine)

/** What the target is connected to; undefined for this machine. */
const titleOf = (target: Target): string | undefined => {
  switch (target.transport) {
    case "local":
      return undefined
    case "ssh":
      return `${target.user}@${target.host}:${target.port ?? 22}`
    case "docker":
      return target.container
  }
}

/** The shell opened. `cwd` is its first working folder, if it is known. */
export const opened = (shellID: string, target: Target, cwd?: string): ShellFact => {
  const title = titleOf(target)
  return draft("session.next.shell.opened", {
    shellID,
    transport: target.transport,
    ...(title === undefined ? {} : { title }),
    ...(cwd === undefined ? {} : { cwd: line(cwd) })
  })
}

/** The command ended with this result. The result of the tool call `callID` has the output. */
export const executed = (shellID: string, command: string, result: ExecResult, callID?: string): ShellFact => {
  const { cwd, duration_ms, exit_code, late_output, output, stderr, stdout, timed_out, truncated } = result
  const isLong = [stdout, stderr, late_output ?? ""].some((text) => text.length > longestOutput)
  return draft("session.next.shell.executed", {
    shellID,
    command: bounded(command),
    stdout: bounded(stdout),
    stderr: bounded(stderr),
    exitCode: exit_code,
    durationMs: duration_ms,
    cwd: line(cwd),
    truncated: truncated || isLong,
    ...(timed_out === true ? { timedOut: true as const } : {}),
    ...(late_output === undefined || callID !== undefined ? {} : { lateOutput: bounded(late_output) }),
    ...(output === undefined ? {} : { output }),
    ...(callID === undefined ? {} : { callID })
  })
}

/** A policy refused the command. */
export const blocked = (shellID: string, command: string, { policy, reason }: CommandBlocked): ShellFact =>
  draft("session.next.shell.blocked", { shellID, command: bounded(command), policy, reason: line(reason) })

export const checkpointed = (shellID: string, checkpointID: string, label?: string): ShellFact =>
  draft("session.next.shell.checkpointed", {
    shellID,
    checkpointID,
    ...(label === undefined ? {} : { label: line(label) })
  })

/** The workspace is as it was at the checkpoint. */
export const restored = (shellID: string, checkpointID: string, filesChanged: number): ShellFact =>
  draft("session.next.shell.restored", { shellID, checkpointID, filesChanged })

export const closed = (shellID: string, reason: ShellCloseReason): ShellFact =>
  draft("session.next.shell.closed", { shellID, reason })

/** Nothing runs, because the facts of the shell cannot be stored. */
export class ShellRecordFailed extends Schema.TaggedError<ShellRecordFailed>("@daybook/shell/ShellRecordFailed")(
  "ShellRecordFailed",
  {
    sessionID: Schema.String,
    /**
     * `no session`: it does not exist or was removed, so that nothing can be recorded. `unavailable`: the database may
     * take a later fact. `invalid`: the fact does not fit its schema.
     */
    reason: Schema.Literal("no session", "unavailable", "invalid"),
    details: Schema.String
  }
) {
  override get message() {
    return `nothing ran: live shells cannot be recorded in ${this.sessionID}: ${this.details}`
  }
}

/** What `ShellRecord` offers. */
export interface Service {
  /** The session that holds the facts; undefined if none does. */
  readonly sessionID?: SessionID
  /** Stores the fact durably. Texts in it must be redacted already. */
  readonly write: (fact: ShellFact) => Effect.Effect<void, ShellRecordFailed>
}

/** Stores facts about live shells, in the order in which they are written. */
export class ShellRecord extends Context.Tag("@daybook/shell/ShellRecord")<ShellRecord, Service>() {}

/** Forgets every fact: live shells without a database. */
export const none: Layer.Layer<ShellRecord> = Layer.succeed(ShellRecord, ShellRecord.of({ write: () => Effect.void }))

const reasonOf = ({ _tag }: AppendError | ReadError): ShellRecordFailed["reason"] => {
  if (_tag === "SessionNotFound" || _tag === "EventRefused") return "no session"
  return _tag === "InvalidDurableEvent" ? "invalid" : "unavailable"
}

/** The closes of shells that an earlier process left open in the session. Reads its whole log. */
const closesOfLeft = Effect.fnUntraced(function* (log: EventLog["Type"], sessionID: SessionID) {
  let list = ShellList.initial
  let page = yield* Effect.catchTag(log.read({ sessionID }), "CursorExpired", ({ floor }) =>
    log.read({ sessionID, after: floor })
  )
  while (true) {
    list = page.events.reduce(ShellList.evolve, list)
    if (!page.hasMore) return ShellList.open(list).map(({ shellID }) => closed(shellID, "lost"))
    page = yield* log.read({ sessionID, after: page.cursor, incarnation: page.incarnation })
  }
})

/** Appends facts to the session, before the first one the drafts of `begin`, in the same append. */
const make = Effect.fnUntraced(function* (
  sessionID: SessionID,
  begin: Effect.Effect<ReadonlyArray<Draft>, AppendError | ReadError>
) {
  const log = yield* EventLog
  const beginning = yield* Effect.makeSemaphore(1)
  let hasBegun = false

  const rest = (fact: ShellFact) => log.append(sessionID, [fact])

  const first = (fact: ShellFact) =>
    beginning.withPermits(1)(
      Effect.gen(function* () {
        // Another fact may have begun the record while this one waited.
        if (hasBegun) return yield* rest(fact)
        const drafts = Arr.append(yield* begin, fact)
        // An interruption between the two would begin the record again.
        return yield* Effect.uninterruptible(
          Effect.tap(log.append(sessionID, drafts), () => Effect.sync(() => (hasBegun = true)))
        )
      })
    )

  const write = Effect.fn("ShellRecord.write")((fact: ShellFact) =>
    Effect.suspend(() => (hasBegun ? rest(fact) : first(fact))).pipe(
      Effect.mapError((error) => new ShellRecordFailed({ sessionID, reason: reasonOf(error), details: error.message })),
      Effect.asVoid
    )
  )
  return {
    write,
    /** The next fact begins the record again. */
    again: Effect.sync(() => void (hasBegun = false))
  }
})

/** Records in an existing session. Shells that an earlier process left open are closed as `lost` first. */
export const inSession = (sessionID: SessionID): Effect.Effect<ShellRecord["Type"], never, EventLog> =>
  Effect.flatMap(EventLog, (log) => {
    // Read once: after a failed append, the shells of this process may be in the log.
    let left: ReadonlyArray<Draft> | undefined
    const begin = Effect.suspend(() =>
      left === undefined
        ? Effect.tap(closesOfLeft(log, sessionID), (closes) => Effect.sync(() => (left = closes)))
        : Effect.succeed(left)
    )
    return Effect.map(make(sessionID, begin), ({ write }) => ShellRecord.of({ sessionID, write }))
  })

/** `inSession` as a layer. */
export const layer = ({ sessionID }: { readonly sessionID: SessionID }): Layer.Layer<ShellRecord, never, EventLog> =>
  Layer.effect(ShellRecord, inSession(sessionID))

/**
 * Records in a session of its own, which is created with the first fact: a host without shells leaves no session. After its removal,
 * the next fact creates it again, with the openings of the shells that are open.
 */
export const layerOwn = (options: {
  readonly location: Location
  /** `Live shells` by default. */
  readonly title?: string
}): Layer.Layer<ShellRecord, never, EventLog | Identifiers> =>
  Layer.effect(
    ShellRecord,
    Effect.gen(function* () {
      const log = yield* EventLog
      const sessionID = yield* (yield* Identifiers).session
      const { location, title = "Live shells" } = options
      const openings = new Map<string, ShellFact>()
      // A failed append may have created the session.
      const begin = Effect.map(log.latest(sessionID), (latest) =>
        latest < 0 ? [draft("session.created", { location, title }), ...openings.values()] : []
      )
      const { again, write } = yield* make(sessionID, begin)
      const stored = (fact: ShellFact) =>
        Effect.sync(() => {
          if (fact.type === "session.next.shell.opened") openings.set(fact.data.shellID, fact)
          if (fact.type === "session.next.shell.closed") openings.delete(fact.data.shellID)
        })
      return ShellRecord.of({
        sessionID,
        write: (fact) =>
          write(fact).pipe(
            Effect.catchIf(
              ({ reason }) => reason === "no session",
              () => Effect.zipRight(again, write(fact))
            ),
            Effect.tap(stored(fact))
          )
      })
    })
  )

// Records what happens in one shell: a fact that cannot be stored waits, and nothing else runs in the shell before it
// is stored.

/** What a result says after a failure of the record. */
export const unrecorded = (failure: ShellRecordFailed | undefined): Unrecorded =>
  failure === undefined ? {} : { recorded: false, not_recorded: failure.details }

export interface Recording {
  /** Stores what waits. Fails as long as that is not possible: nothing may run then. */
  readonly ready: Effect.Effect<void, ShellRecordFailed>
  /** Stores what has happened. Returns why it is not stored yet. */
  readonly add: (fact: ShellFact) => Effect.Effect<ShellRecordFailed | undefined>
}

/** Records one fact after the other: the caller writes in turn. */
export const makeRecording = (write: (fact: ShellFact) => Effect.Effect<void, ShellRecordFailed>): Recording => {
  let waiting: ReadonlyArray<ShellFact> = []
  const ready: Recording["ready"] = Effect.suspend(() => {
    const [first, ...rest] = waiting
    if (first === undefined) return Effect.void
    // An interruption between the two would store the fact twice.
    const stored = Effect.uninterruptible(Effect.tap(write(first), () => Effect.sync(() => (waiting = rest))))
    return Effect.zipRight(stored, ready)
  })
  return {
    ready,
    add: (fact) =>
      Effect.suspend(() => (waiting.length === 0 ? write(fact) : Effect.zipRight(ready, write(fact)))).pipe(
        Effect.as(undefined),
        Effect.catchAll((failure) =>
          Effect.sync(() => {
            // What does not fit its schema never will.
            if (failure.reason !== "invalid") waiting = [...waiting, fact]
            return failure
          })
        )
      )
  }
}
