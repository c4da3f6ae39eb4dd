import * as Harness from "../support/Harness.ts"
import { branching } from "./contract/Branching.ts"

branching(Harness)
