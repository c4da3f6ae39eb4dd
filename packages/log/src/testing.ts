/**
 * The contracts of the log's services as tests: functions that register the tests for one implementation, with
 * `@effect/vitest`. Daybook runs them in memory and on files; another implementation of `EventLog` runs them unchanged.
 *
 * @example
 * ```ts
 * import { eventLogContract, type LogStore } from "@daybook/log/testing"
 *
 * declare const postgres: LogStore<never, never>
 *
 * eventLogContract(postgres)
 * ```
 */
import type { SessionStore } from "./store/SessionStore.ts"
import { appendContract } from "./testing/AppendContract.ts"
import { feedContract } from "./testing/FeedContract.ts"
import { incarnationContract } from "./testing/IncarnationContract.ts"
import type { LogStore } from "./testing/LogStore.ts"
import { positionContract, writersContract } from "./testing/PositionContract.ts"
import { prunedFeedContract } from "./testing/PrunedFeedContract.ts"
import type { ReadModel } from "./testing/ReadModel.ts"
import { replayContract } from "./testing/ReplayContract.ts"
import { sessionsContract } from "./testing/SessionContract.ts"
import { tailContract } from "./testing/TailContract.ts"
import { transcriptContract } from "./testing/TranscriptContract.ts"

export { consumerContract, type ConsumerLayer } from "./testing/ConsumerContract.ts"
export { epochStoreContract } from "./testing/EpochContract.ts"
export { inboxContract, type InboxStore } from "./testing/InboxContract.ts"
export type { LogStore } from "./testing/LogStore.ts"
export { questionStoreContract } from "./testing/QuestionContract.ts"
export type { ReadModel } from "./testing/ReadModel.ts"
export { type OwnerStore, sessionOwnerContract } from "./testing/SessionOwnerContract.ts"

/** Registers every test of the contract of `SessionStore`. */
export const sessionStoreContract = <E>(store: ReadModel<SessionStore, E>): void => {
  sessionsContract(store)
  transcriptContract(store)
}

/** Registers every test of the event log's contract. Each test uses sessions of its own, so that they share a store. */
export const eventLogContract = <R, E>(store: LogStore<R, E>): void => {
  appendContract(store)
  tailContract(store)
  feedContract(store)
  prunedFeedContract(store)
  replayContract(store)
  incarnationContract(store)
  positionContract(store)
  writersContract(store)
}
