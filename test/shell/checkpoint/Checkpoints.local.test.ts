import { Effect } from "effect"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"
import { checkpointContract } from "../support/CheckpointContract.ts"

checkpointContract({ name: "local", transport: Effect.succeed(LocalTransport.makeUnconfined()) })
