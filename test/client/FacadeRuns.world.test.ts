/** The contracts of runs, unchanged, through a server and a client over TCP. */
import { deletion } from "../session/contract/Deletion.ts"
import { execution } from "../session/contract/Execution.ts"
import { recovery } from "../session/contract/Recovery.ts"
import { stopping } from "../session/contract/Stop.ts"
import * as OverTcp from "./support/OverTcp.ts"

execution(OverTcp)
stopping(OverTcp)
recovery(OverTcp)
deletion(OverTcp)
