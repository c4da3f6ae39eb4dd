import { deciding } from "../session/contract/Decisions.ts"
import * as Harness from "../support/Harness.ts"

deciding(Harness)
