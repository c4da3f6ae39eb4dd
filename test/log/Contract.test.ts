/** The contract of the event log, on every store. */
import { eventLogContract } from "@daybook/log/testing"
import { stores } from "../support/Database.ts"
import { contents } from "../support/Logs.ts"

for (const [name, layer] of Object.entries(stores)) eventLogContract({ name, layer, contents })
