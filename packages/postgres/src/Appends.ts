/**
 * Commits a batch of append requests in one transaction: it locks the log's head, so that positions are given in the
 * order of commits on every node, and writes events, heads and projections with a few statements over arrays. A refused
 * request does not affect the others. The queue is the log's `Writer.ts`. Spec: PG-3..PG-8 in specs/postgres.md, LG-1..LG-6,
 * LG-21, LG-22 in specs/log.md.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlError from "@effect/sql/SqlError"
import type { EventID, SessionID } from "@daybook/log/domain/Identifiers"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import * as LogAppends from "@daybook/log/log/Appends"
import * as EventLoop from "@daybook/log/support/EventLoop"
import { forAtMost } from "@daybook/log/support/ForAtMost"
import { type Requests, type Result, type Suspects, unanswered } from "@daybook/log/log/Appends"
import type { NewEvent } from "@daybook/log/log/EventRow"
import { incarnationOf } from "@daybook/log/log/Heads"
import * as SqlHook from "@daybook/log/log/SqlHook"
import { reasonOf } from "@daybook/log/storage/Transaction"
import { numbered } from "@daybook/log/storage/Dialect"
import { Array as Arr, Cause, Clock, Effect, Exit, Option } from "effect"
import { type Answer, connectionOf, type Line, patience, pauses, type Sent } from "./Connections.ts"
import * as Events from "./Events.ts"
import { type Batch, type HeadRow, type Mark, type Numbers } from "./Events.ts"
import { writes } from "./Tables.ts"

/** What runs beside the log's own statements, and the client whose statements it writes. */
export interface Projecting {
  readonly projectors: ReadonlyArray<LogAppends.Projector>
  readonly sql: SqlClient.SqlClient
}

/** Where appends are written. */
export interface Target extends Projecting {
  readonly line: Line
  readonly idAt: (created: number, position: number) => EventID
  readonly types: Events.Types
  readonly marks: ReturnType<typeof makeMarks>
  /** The statement that tells the other nodes. */
  readonly notice: (position: number, sessions: ReadonlyArray<SessionID>) => Sent
  readonly memory: ReturnType<typeof makeMemory>
}

/** What a transaction knows, and goes back to when a part of it is undone. */
interface State {
  readonly numbers: Numbers
  readonly heads: ReadonlyMap<string, HeadRow>
}

interface Transaction {
  state: State
  /** The sessions whose events are written, or were, before they were undone. */
  readonly sessions: Set<SessionID>
}

/** The numbers of this log's commits. */
export const makeMarks = (writer: string) => {
  /** The number of the writer's row; undefined if a commit left it open. */
  let last: number | undefined = 0
  let given = 0
  /** Learns the row's number, which no earlier commit changes any more. */
  const settle = async ({ line }: Pick<Target, "line">): Promise<number> => {
    const [answer] = await line.begin([Events.settle(writer)])
    return (last = Events.numberOf(answer))
  }
  return {
    settle,
    /** Marks the next commit. */
    next: (): Mark => ({ writer, before: last ?? 0, number: (given += 2) }),
    isOpen: () => last === undefined,
    /** The row has this number now, or it is open. */
    keep: (number: number | undefined): void => void (last = number)
  }
}

/** Heads that are remembered: of the sessions that appended last. */
const mostHeads = 2_000

/** What this node's last commits left. While no other node appends, a transaction supposes it, and writes before it has read. */
export const makeMemory = () => {
  const heads = new Map<string, HeadRow>()
  let last: Numbers = { position: -1, session: -1 }
  let isAlone = false
  return {
    /** What a transaction on these sessions reads if no other node has appended. */
    suppose: (sessionIDs: ReadonlyArray<SessionID>): State | undefined => {
      const own = Arr.filterMap(sessionIDs, (id) => Option.fromNullable(heads.get(id)))
      if (!isAlone || own.length < sessionIDs.length) return undefined
      return { numbers: last, heads: new Map(own.map((head) => [head.session_id, head])) }
    },
    /** A transaction has read these numbers. */
    read: (numbers: Numbers): void => {
      isAlone = numbers.position === last.position && numbers.session === last.session
    },
    /** A transaction has committed this. */
    keep: (state: State): void => {
      last = state.numbers
      for (const [id, head] of state.heads) {
        heads.delete(id)
        heads.set(id, head)
      }
      for (const id of heads.keys()) {
        if (heads.size <= mostHeads) break
        heads.delete(id)
      }
    },
    forget: (): void => {
      isAlone = false
      heads.clear()
    }
  }
}

const rollBack = async ({ line }: Target): Promise<void> => {
  try {
    await line.send([{ text: "ROLLBACK" }])
  } catch {
    line.drop()
  }
}

const sessionsOf = (requests: Requests) => Arr.dedupe(requests.map(({ sessionID }) => sessionID))

/** Begins a transaction: from now on no other node appends. */
const begin = async ({ line, memory }: Target, requests: Requests): Promise<Transaction> => {
  const [, numbers, heads] = await line.begin([
    { text: "BEGIN" },
    Events.lock,
    Events.selectHeads(sessionsOf(requests))
  ])
  const state = { numbers: Events.numbersOf(numbers), heads: Events.headsOf(heads) }
  memory.read(state.numbers)
  return { state, sessions: new Set() }
}

/** The events of all requests at their places, in memory. Requests that contradict their head are answered. */
interface Placed {
  readonly answers: ReadonlyArray<Result>
  readonly events: ReadonlyArray<SessionEvent>
  readonly rows: ReadonlyArray<NewEvent>
  readonly heads: ReadonlyMap<string, HeadRow>
  readonly moved: ReadonlyMap<string, HeadRow>
  readonly numbers: Numbers
}

const place = ({ idAt }: Target, { heads: before, numbers: given }: State, requests: Requests): Placed => {
  const [heads, moved] = [new Map(before), new Map<string, HeadRow>()]
  const [answers, events, rows]: [Array<Result>, Array<SessionEvent>, Array<NewEvent>] = [[], [], []]
  let { position, session: last } = given
  for (const request of requests) {
    const { drafts, sessionID } = request
    const head = heads.get(sessionID)
    const contradicted = LogAppends.conflict(request, head)
    if (contradicted !== undefined) {
      answers.push(Exit.fail(contradicted))
      continue
    }
    const session = head?.session ?? (last += 1)
    const incarnation = incarnationOf(head, position + 1)
    const seq = (head?.seq ?? -1) + drafts.length
    const own = LogAppends.placed(request, { position, seq, session }, idAt, rows)
    position += drafts.length
    const next = { owner_id: null, owner_epoch: 0, ...head, session, session_id: sessionID, seq, incarnation }
    heads.set(sessionID, next)
    moved.set(sessionID, next)
    for (const event of own) events.push(event)
    answers.push(Exit.succeed({ incarnation, events: own }))
  }
  return { answers, events, rows, heads, moved, numbers: { position, session: last } }
}

const keysOf = (heads: ReadonlyMap<string, HeadRow>) => new Map([...heads].map(([id, { session }]) => [id, session]))

/** The queries of the hooks of requests that were not refused. Throws `HookFailed`, or a defect, when one refuses. */
const hooksOf = (requests: Requests, answers: ReadonlyArray<Result>) =>
  requests.flatMap(({ commit, sessionID }, index) => {
    const answer = answers[index]
    if (commit === undefined || answer === undefined || Exit.isFailure(answer)) return []
    const { query, refusalOf } = SqlHook.questionOf(commit)
    const { parameters, text } = query(sessionID)
    const sent: Sent = { text: numbered(text), values: parameters }
    const check = ({ rows }: Answer) => {
      const refusal = refusalOf(rows, sessionID)
      if (refusal !== undefined) throw new LogAppends.HookFailed(refusal)
    }
    return [{ sent, check }]
  })

/** The statements that write placed events and their rows; each fails if it finds other rows than the events suppose. */
const writesOf = (before: Numbers, { events, heads, moved, numbers, rows }: Placed, insert: (batch: Batch) => Sent) =>
  Arr.isNonEmptyReadonlyArray(events)
    ? [
        insert({ before, numbers, heads: [...moved.values()], rows }),
        ...writes(LogAppends.changesOf(events), keysOf(heads))
      ]
    : []

/** Runs the projectors in order, on the connection of the transaction. Throws what the first failure says. */
const runProjectors = async ({ line, projectors, sql }: Target, events: ReadonlyArray<SessionEvent>): Promise<void> => {
  for (const projector of projectors) {
    const exit = await Effect.runPromiseExit(LogAppends.projecting(projector, sql, connectionOf(line), events))
    if (Exit.isFailure(exit)) throw Cause.squash(exit.cause)
  }
}

/**
 * Writes all requests, in order, checks hooks, then runs projectors. A request with a stale `expectedSeq` or a stale owner
 * gets its error and writes nothing. Throws what refuses any of the others, and what fails.
 */
const writeAll = async (target: Target, transaction: Transaction, requests: Requests) => {
  const placed = place(target, transaction.state, requests)
  const { answers, events, heads, numbers, rows } = placed
  await target.types.learn(target.line, rows)
  const written = writesOf(transaction.state.numbers, placed, (batch) => Events.insert(target.types, batch))
  if (written.length === 0) return answers
  const hooks = hooksOf(requests, answers)
  const answered = await target.line.send([...written, ...hooks.map(({ sent }) => sent)])
  for (const [index, { check }] of hooks.entries()) {
    const answer = answered[written.length + index]
    if (answer !== undefined) check(answer)
  }
  await runProjectors(target, events)
  transaction.state = { numbers, heads }
  for (const { sessionID } of events) transaction.sessions.add(sessionID)
  return answers
}

/** Runs work in a savepoint. What it throws undoes only its own writes. */
const inSavepoint = async <A>(target: Target, transaction: Transaction, work: () => Promise<A>): Promise<A> => {
  const before = transaction.state
  await target.line.send([{ text: "SAVEPOINT daybook" }])
  try {
    const done = await work()
    await target.line.send([{ text: "RELEASE daybook" }])
    return done
  } catch (thrown) {
    transaction.state = before
    target.types.forget()
    await target.line.send([{ text: "ROLLBACK TO daybook" }, { text: "RELEASE daybook" }])
    throw thrown
  }
}

/** Writes the requests except the refused ones, which are found by halves. Throws if the database fails. */
const writeApart = async (target: Target, transaction: Transaction, requests: Requests) => {
  try {
    return await inSavepoint(target, transaction, () => writeAll(target, transaction, requests))
  } catch (thrown) {
    if (!LogAppends.isRefusal(thrown)) throw thrown
    if (requests.length === 1) return [LogAppends.failureOf(requests[0].sessionID, thrown)]
    return await writeHalves(target, transaction, requests)
  }
}

const writeHalves = async (target: Target, transaction: Transaction, requests: Requests) => {
  const results: Array<Result> = []
  for (const half of LogAppends.halves(requests)) results.push(...(await writeApart(target, transaction, half)))
  return results
}

/** Writes the suspects after the others, each separately, and returns the results in request order. */
const writeSplit = async (target: Target, transaction: Transaction, requests: Requests, suspects: Suspects) => {
  const [trusted, suspected] = Arr.partition(requests, ({ sessionID }) => suspects.has(sessionID))
  const found = new Map<LogAppends.Request, Result>()
  for (const group of [trusted, ...suspected.map((request) => [request])]) {
    if (!Arr.isNonEmptyArray(group)) continue
    const results = await writeApart(target, transaction, group)
    group.forEach((request, index) => found.set(request, results[index] ?? unanswered))
  }
  return requests.map((request) => found.get(request) ?? unanswered)
}

const isAway = (error: SqlError.SqlError): boolean => reasonOf(error) === "away"

/** Whether the failure may pass: a deadlock, a restart of the server. */
const isPassing = (error: unknown): error is SqlError.SqlError =>
  error instanceof SqlError.SqlError && ["away", "busy"].includes(reasonOf(error))

/** The connection broke during a commit, so nobody knows whether it took place. */
class Doubt {
  readonly number: number
  readonly results: ReadonlyArray<Result>
  readonly cause: SqlError.SqlError
  constructor(number: number, results: ReadonlyArray<Result>, cause: SqlError.SqlError) {
    this.number = number
    this.results = results
    this.cause = cause
  }
}

/** The statements that commit, under a number of the writer, and tell the other nodes. */
const closing = ({ notice }: Target, mark: Mark, { state, sessions }: Transaction): ReadonlyArray<Sent> => [
  Events.mark(mark),
  notice(state.numbers.position, [...sessions]),
  { text: "COMMIT" }
]

/** Sends statements that commit. Throws `Doubt` if it is not known whether the commit took place. */
const commitWith = async (
  { marks }: Target,
  { number }: Mark,
  results: ReadonlyArray<Result>,
  send: () => Promise<unknown>
) => {
  try {
    await send()
    marks.keep(number)
  } catch (thrown) {
    marks.keep(undefined)
    throw thrown instanceof SqlError.SqlError && isAway(thrown) ? new Doubt(number, results, thrown) : thrown
  }
}

/** Opens a transaction, works in it, and commits it. What fails is undone, but for a commit in doubt. */
const transact = async (
  target: Target,
  requests: Requests,
  work: (transaction: Transaction) => Promise<ReadonlyArray<Result>>
): Promise<ReadonlyArray<Result>> => {
  target.types.begin()
  try {
    const transaction = await begin(target, requests)
    const results = await work(transaction)
    // Every request was refused, or contradicted its head.
    if (!results.some(Exit.isSuccess)) {
      await rollBack(target)
      return results
    }
    const mark = target.marks.next()
    await commitWith(target, mark, results, () => target.line.send(closing(target, mark, transaction)))
    target.types.keep()
    target.memory.keep(transaction.state)
    return results
  } catch (thrown) {
    target.memory.forget()
    if (!(thrown instanceof Doubt)) await rollBack(target)
    throw thrown
  }
}

/**
 * Commits the requests to the heads that this node remembers, in one round trip instead of three. Returns undefined, with
 * nothing written, if a head is not as remembered or a request is refused: a transaction that reads first then decides.
 * Hooks and projectors need such a transaction.
 */
const commitAhead = async (target: Target, requests: Requests): Promise<ReadonlyArray<Result> | undefined> => {
  const { line, marks, memory, notice, projectors, types } = target
  if (projectors.length > 0 || requests.some(({ commit }) => commit !== undefined)) return
  const sessionIDs = sessionsOf(requests)
  const supposed = line.isConnected() ? memory.suppose(sessionIDs) : undefined
  if (supposed === undefined) return
  const placed = place(target, supposed, requests)
  const { answers, heads } = placed
  if (!answers.every(Exit.isSuccess) || !types.know(placed.rows)) return
  const state = { numbers: placed.numbers, heads }
  const mark = marks.next()
  const told = notice(state.numbers.position, sessionIDs)
  try {
    const statements = [
      { text: "BEGIN" },
      ...writesOf(supposed.numbers, placed, (batch) => Events.insertAt(types, supposed.heads, batch, mark, told)),
      { text: "COMMIT" }
    ]
    await commitWith(target, mark, answers, () => line.begin(statements))
    memory.keep(state)
    return answers
  } catch (thrown) {
    memory.forget()
    if (thrown instanceof Doubt) throw thrown
    marks.keep(mark.before)
    return undefined
  }
}

/** Commits the requests in one transaction; after a refusal in a second one, by halves. Throws if the database fails. */
const commitNow = async (target: Target, suspects: Suspects, requests: Requests): Promise<ReadonlyArray<Result>> => {
  if (target.marks.isOpen()) await target.marks.settle(target)
  const isSuspected = requests.some(({ sessionID }) => suspects.has(sessionID))
  if (isSuspected && requests.length > 1) {
    return await transact(target, requests, (transaction) => writeSplit(target, transaction, requests, suspects))
  }
  const ahead = isSuspected ? undefined : await commitAhead(target, requests)
  if (ahead !== undefined) return ahead
  try {
    return await transact(target, requests, (transaction) => writeAll(target, transaction, requests))
  } catch (thrown) {
    if (thrown instanceof Doubt || !LogAppends.isRefusal(thrown)) throw thrown
    if (requests.length === 1) return [LogAppends.failureOf(requests[0].sessionID, thrown)]
    return await transact(target, requests, (transaction) => writeHalves(target, transaction, requests))
  }
}

/** The server may need this long to see that a writer is gone. Longer than a transaction may stand idle. */
const doubtPatience = forAtMost("30 seconds")(pauses)

/** The server's clock is not the test's. */
const live = Clock.make()

/** Finds out whether a commit took place. If not, it never will. */
const resolve = (target: Target, { number, results }: Doubt) =>
  Effect.tryPromise({
    try: async () => (await target.marks.settle(target)) > number,
    catch: (thrown) => thrown
  }).pipe(
    Effect.retry({ schedule: doubtPatience, while: isPassing }),
    Effect.map((isStored) => (isStored ? results : undefined))
  )

/** Writes the requests once, and resolves the doubt of a broken connection: what did not take place failed as away. */
const attempt = (target: Target, suspects: Suspects, requests: Requests) =>
  Effect.tryPromise({ try: () => commitNow(target, suspects, requests), catch: (thrown) => thrown }).pipe(
    Effect.catchIf(
      (thrown) => thrown instanceof Doubt,
      (doubt) =>
        Effect.matchEffect(resolve(target, doubt), {
          // Still unknown: an append that is tried again might be stored twice.
          onFailure: () =>
            Effect.succeed(requests.map(({ sessionID }) => LogAppends.failureOf(sessionID, doubt.cause))),
          onSuccess: (results) => (results === undefined ? Effect.fail(doubt.cause) : Effect.succeed(results))
        })
    ),
    Effect.catchAll((thrown) => (thrown instanceof SqlError.SqlError ? Effect.fail(thrown) : Effect.die(thrown)))
  )

/** Tries again while the database is away or busy; after another failure each request is written alone (LG-22). */
const patiently = (target: Target, suspects: Suspects, requests: Requests): Effect.Effect<ReadonlyArray<Result>> =>
  attempt(target, suspects, requests).pipe(
    Effect.retry({ schedule: patience, while: isPassing }),
    Effect.withClock(live),
    Effect.catchAll((error) =>
      requests.length === 1 || isPassing(error)
        ? Effect.succeed(requests.map(({ sessionID }) => LogAppends.failureOf(sessionID, error)))
        : Effect.map(
            Effect.forEach(requests, (request) => patiently(target, suspects, [request])),
            Arr.flatten
          )
    )
  )

/** Commits the requests that wait once the event loop has brought what it has, and returns their results in order. */
export const commit =
  (target: Target) =>
  (suspects: Suspects, requests: () => ReadonlyArray<LogAppends.Request>): Effect.Effect<ReadonlyArray<Result>> =>
    Effect.zipRight(
      EventLoop.turn,
      Effect.suspend(() => {
        const all = requests()
        return Arr.isNonEmptyReadonlyArray(all) ? patiently(target, suspects, all) : Effect.succeed([])
      })
    )
