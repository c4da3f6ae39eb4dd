import * as Harness from "../support/Harness.ts"
import { withdrawal } from "./contract/Withdraw.ts"

withdrawal(Harness)
