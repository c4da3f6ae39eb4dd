/** Some contracts of the facade, unchanged, through a server and a client over TCP; `test/long` has all of them. */
import { branching } from "../branches/contract/Branching.ts"
import { asking } from "../session/contract/Ask.ts"
import { creation } from "../session/contract/Create.ts"
import { execution } from "../session/contract/Execution.ts"
import { admission } from "../session/contract/Inbox.ts"
import * as OverTcp from "./support/OverTcp.ts"

creation(OverTcp)
admission(OverTcp)
execution(OverTcp)
asking(OverTcp)
branching(OverTcp)
