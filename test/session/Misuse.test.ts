import * as Harness from "../support/Harness.ts"
import { misuse } from "./contract/Misuse.ts"

misuse(Harness)
