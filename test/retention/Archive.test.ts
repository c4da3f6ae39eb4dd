/** The contract `Archive.ts`, in memory. */
import { memoryLog } from "../support/Database.ts"
import { archives } from "./contract/Archive.ts"

archives(memoryLog)
