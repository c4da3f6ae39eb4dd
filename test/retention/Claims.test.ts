/** The contract `Claims.ts`, in memory. */
import { memoryLog } from "../support/Database.ts"
import { claims } from "./contract/Claims.ts"

claims(memoryLog)
