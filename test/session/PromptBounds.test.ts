import * as Harness from "../support/Harness.ts"
import { promptBounds } from "./contract/PromptBounds.ts"

promptBounds(Harness)
