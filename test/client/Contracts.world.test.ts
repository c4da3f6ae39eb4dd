/**
 * The contracts of a log, with its tails and its feed read through a server and a client over TCP. Live deltas have another
 * contract over HTTP (HT-46), and pages a smaller bound: both stay local.
 */
import { incarnationContract } from "../contracts/IncarnationContract.ts"
import { replayContract } from "../contracts/ReplayContract.ts"
import { tailContract } from "../contracts/TailContract.ts"
import { layer } from "./support/RemoteLog.ts"
import { contents } from "../support/Logs.ts"

tailContract({ name: "over TCP", layer, contents })
replayContract({ name: "over TCP", layer, contents })
incarnationContract({ name: "over TCP", layer, contents })
