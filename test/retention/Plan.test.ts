/** The contract `Plan.ts`, in memory. */
import { memoryLog } from "../support/Database.ts"
import { planning } from "./contract/Plan.ts"

planning(memoryLog)
