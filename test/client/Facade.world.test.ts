/** The contracts of the facade, unchanged, through a server and a client over TCP. */
import { branching } from "../branches/contract/Branching.ts"
import { forking } from "../branches/contract/Forking.ts"
import { addressing } from "../session/contract/Address.ts"
import { asking } from "../session/contract/Ask.ts"
import { creation } from "../session/contract/Create.ts"
import { admission } from "../session/contract/Inbox.ts"
import { inboxBounds } from "../session/contract/InboxBounds.ts"
import { misuse } from "../session/contract/Misuse.ts"
import { naming } from "../session/contract/Named.ts"
import { origin } from "../session/contract/Origin.ts"
import { paging } from "../session/contract/Paging.ts"
import { promptBounds } from "../session/contract/PromptBounds.ts"
import { removal } from "../session/contract/Removed.ts"
import { switching } from "../session/contract/Switch.ts"
import { withdrawal } from "../session/contract/Withdraw.ts"
import * as OverTcp from "./support/OverTcp.ts"

creation(OverTcp)
addressing(OverTcp)
naming(OverTcp)
origin(OverTcp)
switching(OverTcp)
paging(OverTcp)
admission(OverTcp)
inboxBounds(OverTcp)
promptBounds(OverTcp)
withdrawal(OverTcp)
asking(OverTcp)
misuse(OverTcp)
removal(OverTcp)
branching(OverTcp)
forking(OverTcp)
