import * as Harness from "../support/Harness.ts"
import { removal } from "./contract/Removed.ts"

removal(Harness)
