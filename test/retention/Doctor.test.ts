/** The contract `Doctor.ts`, in memory. */
import { memoryLog } from "../support/Database.ts"
import { verifyingPruned } from "./contract/Doctor.ts"

verifyingPruned(memoryLog)
