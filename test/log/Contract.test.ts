/** The contract of the event log, on every store. */
import { eventLogContract } from "@daybook/log/testing"
import { Context, Effect, Layer } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { fileLog, logAt, memoryLog, temporaryDatabase } from "../support/Database.ts"
import { contents } from "../support/Logs.ts"

/** Several logs on one file. */
const shared = Effect.map(temporaryDatabase, (filename) =>
  Effect.map(Layer.build(logAt(filename)), (context) => Context.get(context, EventLog))
)

eventLogContract({ name: "memory", layer: memoryLog, contents })
eventLogContract({ name: "file", layer: fileLog, contents, shared })
