/** Transports to this machine in a real sandbox, which share a writable folder. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { afterAll } from "vitest"
import * as Sandbox from "../../../packages/core/src/child/Sandbox.ts"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"

/** A transport into a sandbox that may write the folders. */
export const sandboxed = (writable: ReadonlyArray<string>, settings: Sandbox.SandboxSettings = {}) =>
  Effect.flatMap(Layer.build(Sandbox.layer({ mode: "on", ...settings })), (context) =>
    LocalTransport.make({ transport: "local" }, { sandbox: Context.get(context, Sandbox.Sandbox), writable })
  )

/** A folder until the end of the enclosing `describe`. */
export const sharedFolder = () => {
  const shared = mkdtempSync(join(tmpdir(), "daybook-shared-"))
  afterAll(() => rmSync(shared, { recursive: true, force: true }))
  return shared
}
