import * as Harness from "../support/Harness.ts"
import { admission } from "./contract/Inbox.ts"
import { inboxBounds } from "./contract/InboxBounds.ts"

admission(Harness)
inboxBounds(Harness)
