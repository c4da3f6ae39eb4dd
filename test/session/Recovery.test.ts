import * as Harness from "../support/Harness.ts"
import { recovery } from "./contract/Recovery.ts"

recovery(Harness)
