import { Effect } from "effect"
import { describe } from "vitest"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"
import { liveShellContract } from "../support/LiveShellContract.ts"
import { processes } from "../support/Processes.ts"

const local = LocalTransport.make()

describe.concurrent("with its own control stream", () => {
  liveShellContract({ name: "local", transport: Effect.succeed(local), processes, folder: "/usr" })
})

describe.concurrent("with the keeper's fifo", () => {
  const transport = Effect.succeed({ ...local, controlled: false, runControlled: local.run })
  liveShellContract({ name: "local, fifo", transport, processes, folder: "/usr" })
})
