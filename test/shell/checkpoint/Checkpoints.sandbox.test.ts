/** The contract of checkpoints, of a shell in a real sandbox on this machine. */
import { describe } from "vitest"
import { checkpointContract } from "../support/CheckpointContract.ts"
import { sandboxed, sharedFolder } from "../support/Sandboxed.ts"

describe.runIf(process.platform === "linux")("in a sandbox", () => {
  const shared = sharedFolder()
  checkpointContract({ name: "sandbox", transport: sandboxed([shared]), base: shared })
})
