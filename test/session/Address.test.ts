import * as Harness from "../support/Harness.ts"
import { addressing } from "./contract/Address.ts"

addressing(Harness)
