import * as Harness from "../support/Harness.ts"
import { deletion } from "./contract/Deletion.ts"

deletion(Harness)
