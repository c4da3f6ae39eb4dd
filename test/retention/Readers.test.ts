/** The contract `Readers.ts`, in memory. */
import { memoryLog } from "../support/Database.ts"
import { readers } from "./contract/Readers.ts"

readers(memoryLog)
