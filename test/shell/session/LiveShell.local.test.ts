import { readdirSync, readFileSync } from "node:fs"
import { Effect } from "effect"
import { describe } from "vitest"
import * as LocalTransport from "../../../packages/shell/src/transport/LocalTransport.ts"
import { liveShellContract } from "../support/LiveShellContract.ts"

/** Running processes with this text in their arguments. */
const processes = (text: string) =>
  Effect.sync(() =>
    readdirSync("/proc").flatMap((name) => {
      if (!/^\d+$/.test(name)) return []
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim()
        return line === text ? [Number(name)] : []
      } catch {
        // It has ended in between.
        return []
      }
    })
  )

const local = LocalTransport.make()

describe.concurrent("with its own control stream", () => {
  liveShellContract({ name: "local", transport: Effect.succeed(local), processes, folder: "/usr" })
})

describe.concurrent("with the keeper's fifo", () => {
  const transport = Effect.succeed({ ...local, controlled: false, runControlled: local.run })
  liveShellContract({ name: "local, fifo", transport, processes, folder: "/usr" })
})
