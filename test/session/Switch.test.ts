import * as Harness from "../support/Harness.ts"
import { switching } from "./contract/Switch.ts"

switching(Harness)
