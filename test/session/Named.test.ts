import * as Harness from "../support/Harness.ts"
import { naming } from "./contract/Named.ts"

naming(Harness)
