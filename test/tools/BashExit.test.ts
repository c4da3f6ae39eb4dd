import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { join, resolve } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "esbuild"
import { makeLifeline } from "./Lifeline.ts"
import { temporaryFolder } from "./Workbench.ts"

/** Built where the workspace's packages are found, since Node 20 does not read TypeScript. */
const bundle = Effect.acquireRelease(
  Effect.promise(async () => {
    const cache = resolve("node_modules/.cache")
    mkdirSync(cache, { recursive: true })
    const folder = mkdtempSync(join(cache, "daybook-exit-"))
    const outfile = join(folder, "host.mjs")
    await build({
      entryPoints: [join(import.meta.dirname, "exitDuringCommand.ts")],
      outfile,
      bundle: true,
      platform: "node",
      format: "esm",
      packages: "external"
    })
    return { folder, outfile }
  }),
  ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

it.scopedLive("TO-119, TO-62: a host that exits in the middle of a command takes the command's processes with it", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const { outfile } = yield* bundle
    const life = yield* makeLifeline(folder)
    const code = yield* Effect.async<number | null>((resume) => {
      spawn(process.execPath, [outfile, folder], { stdio: "ignore" }).on("exit", (exit) => resume(Effect.succeed(exit)))
    })
    assert.strictEqual(code, 7)
    yield* life.ended
  })
)

it.scopedLive("TO-119: a host that is killed in the middle of a command takes the command's processes with it", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const { outfile } = yield* bundle
    const life = yield* makeLifeline(folder)
    const host = spawn(process.execPath, [outfile, folder, "stays"], { stdio: ["ignore", "pipe", "ignore"] })
    yield* Effect.async<void>((resume) => void host.stdout.once("data", () => resume(Effect.void)))
    host.kill("SIGKILL")
    yield* life.ended
  })
)
