/** The contracts of the log's services, on every store. */
import { join } from "node:path"
import { Context, Effect, Layer, TestServices } from "effect"
import { eventLogContract, sessionOwnerContract } from "../contracts/Contracts.ts"
import * as SqlSessionOwner from "../../packages/log/src/coordination/SqlSessionOwner.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { fileLog, logAt, memoryLog, temporaryDatabase, temporaryFolder } from "../support/Database.ts"
import { contents } from "../support/Logs.ts"
import { retention } from "../support/Pruning.ts"
import { storeContracts } from "../support/StoreContracts.ts"

/** Several logs on one file. */
const shared = Effect.map(temporaryDatabase, (filename) =>
  Effect.map(Layer.build(logAt(filename)), (context) => Context.get(context, EventLog))
)

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
