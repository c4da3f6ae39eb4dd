/** The contract `Branches.ts`, in memory. */
import { memoryLog } from "../support/Database.ts"
import { branches } from "./contract/Branches.ts"

branches(memoryLog)
