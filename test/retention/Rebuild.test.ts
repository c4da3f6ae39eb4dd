/** The contract `Rebuild.ts`, in memory. */
import { memoryLog } from "../support/Database.ts"
import { rebuildingPruned } from "./contract/Rebuild.ts"

rebuildingPruned(memoryLog)
