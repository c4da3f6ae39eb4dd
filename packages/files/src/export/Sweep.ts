/** Retries sessions that are behind, and restores changed files. Spec: FI-71, FI-86, FI-90 in specs/files.md. */
import { Effect } from "effect"
import type { SessionRecord } from "../record/Records.ts"
import * as IndexWriter from "./IndexWriter.ts"
import { attempt, finish, type Work, writeIndexes } from "./Work.ts"

/** Failed sessions that one retry takes. */
const behindAtOnce = 64
/** Sessions whose stamps are compared at a time. */
export const sweptAtOnce = 256
/** Sessions and indexes that one background sweep checks. */
const lookedAtOnce = 128
const indexesAtOnce = 8

/** Retries sessions that are behind, from the log. */
export const retryBehind = (work: Work) =>
  Effect.gen(function* () {
    const ids = yield* work.tracker.ledger.behind(behindAtOnce)
    for (const id of ids) {
      const again = Effect.zipRight(work.writer.advance(id), work.writer.finish(id, { atEnd: true }))
      yield* attempt(
        work,
        id,
        Effect.catchIf(
          again,
          // It was removed while its export failed.
          (error) => error._tag === "SessionNotFound" && error.removed !== true,
          () => work.writer.drop(id)
        )
      )
    }
    yield* writeIndexes(work, work.writer.dueIndexes())
  })

/** Compares the stamps of all files and restores the sessions and indexes that changed. */
export const sweep = (work: Work) =>
  Effect.gen(function* () {
    const put: Array<string> = []
    for (let after = ""; ;) {
      const records = yield* work.tracker.ledger.sessions(after, sweptAtOnce)
      const intact = yield* Effect.forEach(
        records,
        (record) =>
          Effect.map(
            Effect.catchTag(work.writer.intact(record), "PathRefused", () => Effect.succeed(false)),
            (intact) => ({ id: record.id, intact })
          ),
        { concurrency: 8 }
      )
      const broken = intact.filter(({ intact }) => !intact).map(({ id }) => id)
      yield* finish(work, broken, true)
      put.push(...broken)
      const last = records.at(-1)
      if (last === undefined) break
      after = last.id
    }
    yield* writeIndexes(work, [...work.writer.dueIndexes(), ...(yield* work.tracker.ledger.indexes)])
    return put
  })

const sweepSessions = (work: Work, after: string) =>
  Effect.gen(function* () {
    const records = yield* work.tracker.ledger.sessions(after, lookedAtOnce)
    const last = records.at(-1)
    work.round = last === undefined ? { indexes: "" } : { sessions: last.id }
    const broken: Array<SessionRecord> = []
    for (const record of records) {
      // `retryBehind` handles it.
      if (record.behind) continue
      const intact = Effect.catchTag(work.writer.intact(record), "PathRefused", () => Effect.succeed(false))
      if (!(yield* intact)) broken.push(record)
    }
    yield* finish(
      work,
      broken.map(({ id }) => id),
      true
    )
    yield* writeIndexes(work, [...work.writer.dueIndexes(), ...broken.map(({ index }) => index)])
    return broken.length > 0
  })

const sweepIndexes = (work: Work, after: string) =>
  Effect.gen(function* () {
    const indexes = (yield* work.tracker.ledger.indexes).filter((index) => index > after).slice(0, indexesAtOnce)
    const last = indexes.at(-1)
    work.round = last === undefined ? { sessions: "" } : { indexes: last }
    for (const index of indexes) {
      const intact = Effect.catchTag(IndexWriter.intact(work.tracker, index), "PathRefused", () =>
        Effect.succeed(false)
      )
      if (!(yield* intact)) yield* writeIndexes(work, [index])
    }
    return false
  })

/** Checks the next few sessions or indexes, so that time and memory do not depend on their number. */
export const sweepSome = (work: Work) =>
  Effect.suspend(() =>
    "sessions" in work.round ? sweepSessions(work, work.round.sessions) : sweepIndexes(work, work.round.indexes)
  )
