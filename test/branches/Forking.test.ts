import * as Harness from "../support/Harness.ts"
import { forking } from "./contract/Forking.ts"

forking(Harness)
