/** The contract of checkpoints, of a shell in a real sandbox on this machine. */
import { Effect } from "effect"
import { describe } from "vitest"
import { temporaryFolder } from "../tools/Workbench.ts"
import { checkpointContract } from "../shell/support/CheckpointContract.ts"
import { sandboxed } from "../shell/support/Sandboxed.ts"
import { lacks } from "../support/Parts.ts"

describe.skipIf(lacks("bubblewrap"))("in a sandbox", () => {
  checkpointContract({
    name: "sandbox",
    transport: Effect.flatMap(temporaryFolder, (folder) => sandboxed([folder])),
    base: ({ sandbox }) => sandbox?.cwd ?? "/nowhere"
  })
})
