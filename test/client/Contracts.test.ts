/**
 * Contracts of a log, with its tails and its feed read through a server and a client over TCP. `test/long/RemoteLog.test.ts` adds
 * those of tails.
 */
import { incarnationContract } from "../../packages/log/src/testing/IncarnationContract.ts"
import { replayContract } from "../../packages/log/src/testing/ReplayContract.ts"
import { contents } from "../support/Logs.ts"
import { layer } from "./support/RemoteLog.ts"

replayContract({ name: "over TCP", layer, contents })
incarnationContract({ name: "over TCP", layer, contents })
