/** The contract of live shells, over SSH to a real OpenSSH server. */
import { Effect } from "effect"
import { describe } from "vitest"
import * as SshTransport from "../../../packages/shell/src/transport/SshTransport.ts"
import { liveShellContract } from "../support/LiveShellContract.ts"
import { processes } from "../support/Processes.ts"
import { shared } from "../support/Shared.ts"
import * as Sshd from "../support/Sshd.ts"
import { lacks } from "../../support/Parts.ts"

describe.skipIf(lacks("sshd"))("over SSH", () => {
  const server = shared(Sshd.make())
  const transport = Effect.flatMap(server, ({ settings, target }) =>
    Effect.catchTag(SshTransport.make(target(), settings), "InvalidOption", Effect.die)
  )
  liveShellContract({ name: "ssh", transport, processes, folder: "/usr" })
})
