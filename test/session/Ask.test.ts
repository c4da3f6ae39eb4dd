import * as Harness from "../support/Harness.ts"
import { asking } from "./contract/Ask.ts"

asking(Harness)
