import * as Harness from "../support/Harness.ts"
import { origin } from "./contract/Origin.ts"

origin(Harness)
