/** The contract `Prune.ts`, in memory. */
import { memoryLog } from "../support/Database.ts"
import { pruning } from "./contract/Prune.ts"

pruning(memoryLog)
