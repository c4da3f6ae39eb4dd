/** The contract of checkpoints, over SSH to a real OpenSSH server. */
import { Effect } from "effect"
import { describe } from "vitest"
import * as SshTransport from "../../packages/shell/src/transport/SshTransport.ts"
import { checkpointContract } from "../shell/support/CheckpointContract.ts"
import { shared } from "../shell/support/Shared.ts"
import * as Sshd from "../shell/support/Sshd.ts"
import { lacks } from "../support/Parts.ts"

describe.skipIf(lacks("sshd"))("over SSH", () => {
  const server = shared(Sshd.make())
  const transport = Effect.flatMap(server, ({ settings, target }) =>
    Effect.catchTag(SshTransport.make(target(), settings), "InvalidOption", Effect.die)
  )
  checkpointContract({ name: "ssh", transport })
})
