import * as Harness from "../support/Harness.ts"
import { stopping } from "./contract/Stop.ts"

stopping(Harness)
