/** The contracts of the stores beside a log, whichever database keeps it. */
import type { SqlClient } from "@effect/sql"
import { Layer } from "effect"
import {
  consumerContract,
  epochStoreContract,
  inboxContract,
  questionStoreContract,
  sessionStoreContract
} from "../contracts/Contracts.ts"
import type { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { derive, derived, derivedTable } from "./Derived.ts"

type Log = EventLog | SqlClient.SqlClient | Layer.Layer.Context<typeof Store.layerStore>

/** Registers every test of those contracts. */
export const storeContracts = <E>(name: string, log: Layer.Layer<Log, E>): void => {
  const layer = Layer.provideMerge(Store.layerStore, log)
  inboxContract({ name, layer })
  consumerContract({ name, layer: Layer.provideMerge(derivedTable, layer), derive, derived })
  sessionStoreContract({ name, layer })
  questionStoreContract({ name, layer })
  epochStoreContract({ name, layer })
}
