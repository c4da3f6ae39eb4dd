/** The contract of live shells, over SSH to a real OpenSSH server. */
import { Effect } from "effect"
import { describe } from "vitest"
import * as SshTransport from "../../packages/shell/src/transport/SshTransport.ts"
import { hasSshd } from "../shell/support/Installed.ts"
import { liveShellContract } from "../shell/support/LiveShellContract.ts"
import { processes } from "../shell/support/Processes.ts"
import { shared } from "../shell/support/Shared.ts"
import * as Sshd from "../shell/support/Sshd.ts"

describe.runIf(hasSshd)("over SSH", () => {
  const server = shared(Sshd.make())
  const transport = Effect.flatMap(server, ({ settings, target }) =>
    Effect.catchTag(SshTransport.make(target(), settings), "InvalidOption", Effect.die)
  )
  liveShellContract({ name: "ssh", transport, processes, folder: "/usr" })
})
