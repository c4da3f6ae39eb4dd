/** The contracts of the log's services, on every store. */
import { join } from "node:path"
import { Context, Effect, Layer, TestServices } from "effect"
import { eventLogContract, sessionOwnerContract } from "../contracts/Contracts.ts"
import * as SqlSessionOwner from "../../packages/log/src/coordination/SqlSessionOwner.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { atOnce } from "../../packages/log/src/retention/Pace.ts"
import { restore } from "../../packages/log/src/retention/Retention.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { fileLog, logAt, memoryLog, temporaryDatabase, temporaryFolder } from "../support/Database.ts"
import { contents } from "../support/Logs.ts"
import { begun, pruned } from "../support/Pruning.ts"
import { storeContracts } from "../support/StoreContracts.ts"

/** Several logs on one file. */
const shared = Effect.map(temporaryDatabase, (filename) =>
  Effect.map(Layer.build(logAt(filename)), (context) => Context.get(context, EventLog))
)

const retention = {
  begin: (sessionID: SessionID, turns: number) => begun(sessionID, turns, 1),
  prune: (sessionID: SessionID, to?: number) =>
    Effect.gen(function* () {
      const { path } = yield* pruned(sessionID, to === undefined ? {} : { to }, yield* temporaryFolder)
      return path === undefined ? Effect.void : restore(path, { pace: atOnce })
    })
}

eventLogContract({ name: "memory", layer: memoryLog, contents, retention })
eventLogContract({ name: "file", layer: fileLog, contents, shared, retention })

storeContracts("memory", memoryLog)
storeContracts("file", fileLog)

sessionOwnerContract({
  name: "file",
  two: Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const opened = Layer.build(
      Layer.fresh(Layer.provideMerge(SqlSessionOwner.layer({ leaseMs: 3_000 }), Store.layer({ filename })))
    )
    // The log's background uses the machine's time: only leases are under test.
    const live = TestServices.provideLive(opened)
    return { one: yield* live, other: yield* live }
  })
})
