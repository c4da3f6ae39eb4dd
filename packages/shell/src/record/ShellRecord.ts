/**
 * Records what happens to live shells as events of a session. It redacts nothing: `ShellFact.ts` says what callers pass.
 * Without a database, `none` takes the facts. Spec: SL-100, SL-103, SL-104, SL-107.
 */
import { Identifiers, type SessionID } from "@daybook/log/domain/Identifiers"
import type { Location } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { type AppendError, EventLog, type ReadError } from "@daybook/log/log/EventLog"
import { Array as Arr, Context, Effect, Layer, Schema } from "effect"
import { closed, type ShellFact } from "./ShellFact.ts"
import * as ShellList from "./ShellList.ts"

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

/** Stores facts about live shells, in the order in which they are written. */
export class ShellRecord extends Context.Tag("@daybook/shell/ShellRecord")<
  ShellRecord,
  {
    /** The session that holds the facts; undefined if none does. */
    readonly sessionID?: SessionID
    /** Stores the fact durably. Texts in it must be redacted already. */
    readonly write: (fact: ShellFact) => Effect.Effect<void, ShellRecordFailed>
  }
>() {}

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

/**
 * Records in an existing session, which one process at a time uses for its shells. Shells that an earlier process left open
 * in it are closed as `lost` with the first fact.
 */
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
