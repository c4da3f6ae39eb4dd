/** The contract of live shells, in a real sandbox on this machine. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { afterAll, describe } from "vitest"
import * as Sandbox from "../../../packages/core/src/child/Sandbox.ts"
import * as SandboxedTransport from "../../../packages/shell/src/transport/SandboxedTransport.ts"
import { liveShellContract } from "../support/LiveShellContract.ts"
import { processes } from "../support/Processes.ts"

describe.runIf(process.platform === "linux").concurrent("in a sandbox", () => {
  const shared = mkdtempSync(join(tmpdir(), "daybook-shared-"))
  afterAll(() => rmSync(shared, { recursive: true, force: true }))
  const transport = Effect.flatMap(Layer.build(Sandbox.layer({ mode: "on" })), (context) =>
    SandboxedTransport.make(
      { transport: "local" },
      { sandbox: Context.get(context, Sandbox.Sandbox), writable: [shared] }
    )
  )
  liveShellContract({ name: "sandbox", transport, processes, folder: "/usr", shared })
})
