/** The contract of live shells, in a real sandbox on this machine. */
import { describe } from "vitest"
import { liveShellContract } from "../support/LiveShellContract.ts"
import { processes } from "../support/Processes.ts"
import { sandboxed, sharedFolder } from "../support/Sandboxed.ts"
import { lacks } from "../../support/Parts.ts"

describe.skipIf(lacks("bubblewrap")).concurrent("in a sandbox", () => {
  const shared = sharedFolder()
  liveShellContract({ name: "sandbox", transport: sandboxed([shared]), processes, folder: "/usr", shared })
})
