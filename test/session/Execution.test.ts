import * as Harness from "../support/Harness.ts"
import { execution } from "./contract/Execution.ts"

execution(Harness)
