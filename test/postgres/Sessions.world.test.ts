/** The contracts of the facade, on PostgreSQL. */
import { describe } from "vitest"
import { branching } from "../branches/contract/Branching.ts"
import { forking } from "../branches/contract/Forking.ts"
import { addressing } from "../session/contract/Address.ts"
import { asking } from "../session/contract/Ask.ts"
import { creation } from "../session/contract/Create.ts"
import { deciding } from "../session/contract/Decisions.ts"
import { execution } from "../session/contract/Execution.ts"
import { admission } from "../session/contract/Inbox.ts"
import { inboxBounds } from "../session/contract/InboxBounds.ts"
import { misuse } from "../session/contract/Misuse.ts"
import { naming } from "../session/contract/Named.ts"
import { origin } from "../session/contract/Origin.ts"
import { paging } from "../session/contract/Paging.ts"
import { promptBounds } from "../session/contract/PromptBounds.ts"
import { recovery } from "../session/contract/Recovery.ts"
import { removal } from "../session/contract/Removed.ts"
import { stopping } from "../session/contract/Stop.ts"
import { switching } from "../session/contract/Switch.ts"
import { withdrawal } from "../session/contract/Withdraw.ts"
import { lacks } from "../support/Parts.ts"
import { runtimes } from "./support/Runtimes.ts"

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  for (const contract of [
    creation,
    addressing,
    naming,
    origin,
    paging,
    promptBounds,
    admission,
    inboxBounds,
    withdrawal,
    switching,
    misuse,
    execution,
    stopping,
    asking,
    removal,
    branching,
    forking,
    recovery,
    deciding
  ]) {
    contract(runtimes)
  }
})
