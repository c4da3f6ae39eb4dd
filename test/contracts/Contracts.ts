/**
 * The contracts of the log's services as tests: functions that register the tests for one implementation. Daybook runs
 * them in memory and on files; another implementation of `EventLog` runs them unchanged.
 */
import type { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { appendContract } from "./AppendContract.ts"
import { feedContract } from "./FeedContract.ts"
import { incarnationContract } from "./IncarnationContract.ts"
import type { LogStore } from "./LogStore.ts"
import { positionContract, writersContract } from "./PositionContract.ts"
import { prunedFeedContract } from "./PrunedFeedContract.ts"
import type { ReadModel } from "./ReadModel.ts"
import { replayContract } from "./ReplayContract.ts"
import { sessionsContract } from "./SessionContract.ts"
import { tailContract } from "./TailContract.ts"
import { transcriptContract } from "./TranscriptContract.ts"

export { consumerContract, type ConsumerLayer } from "./ConsumerContract.ts"
export { epochStoreContract } from "./EpochContract.ts"
export { inboxContract, type InboxStore } from "./InboxContract.ts"
export type { LogStore } from "./LogStore.ts"
export { questionStoreContract } from "./QuestionContract.ts"
export type { ReadModel } from "./ReadModel.ts"
export { type OwnerStore, sessionOwnerContract } from "./SessionOwnerContract.ts"

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
