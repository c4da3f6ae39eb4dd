/** The contract of live shells, with `sh` on this machine, which has no bash. */
import { describe } from "vitest"
import { liveShellContract } from "../shell/support/LiveShellContract.ts"
import { processes } from "../shell/support/Processes.ts"
import { withoutBash } from "../shell/support/WithoutBash.ts"

describe.concurrent("SL-12: without bash", () => {
  liveShellContract({
    name: "sh",
    transport: withoutBash,
    processes,
    folder: "/usr",
    closable: "3 4 5 9",
    execFails: "true",
    stopsLists: false
  })
})
