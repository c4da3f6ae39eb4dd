import * as Harness from "../support/Harness.ts"
import { admission } from "./contract/Inbox.ts"

admission(Harness)
