/** A Location whose commands run in a real sandbox, and a home with secrets beside it. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, type Scope } from "effect"
import * as Sandbox from "../../packages/core/src/child/Sandbox.ts"
import { makeLiveBench } from "../tools/LiveBench.ts"
import { makeWorkbench, temporaryFolder, textOf, type Options } from "../tools/Workbench.ts"

type Settings = Sandbox.SandboxSettings | ((beside: string) => Sandbox.SandboxSettings)
type Workbench = Effect.Effect.Success<ReturnType<typeof makeWorkbench>>

/** Makes a bench in a sandbox of one that runs commands. */
const confinedBy = Effect.fnUntraced(function* <B extends Workbench>(
  make: Effect.Effect<B, never, Scope.Scope>,
  settings: Settings
) {
  const beside = yield* temporaryFolder
  const given = typeof settings === "function" ? settings(beside) : settings
  const bench = yield* Effect.provide(make, yield* Layer.build(Sandbox.layer({ mode: "on", ...given })))
  writeFileSync(join(bench.outside, "secret"), "secret-beside")
  const at = (name: string) => join(bench.folder, name)
  const put = (name: string, text: string) => {
    mkdirSync(join(at(name), ".."), { recursive: true })
    writeFileSync(at(name), text)
  }
  const run = (command: string, timeout = 60) => bench.succeed("bash", { command, timeout })
  const said = (command: string) => Effect.map(run(command), textOf)
  return { ...bench, at, beside, put, run, said }
})

/** Commands of this bench run in a sandbox. `settings` sees the folder that the sandbox may name. */
export const makeConfined = (settings: Settings = {}, options: Options = {}) =>
  confinedBy(makeWorkbench(options), settings)

/** Commands of this bench run in a live shell in a sandbox. */
export const makeConfinedLive = (settings: Settings = {}, options: Options = {}) =>
  confinedBy(makeLiveBench(options), settings)

/** The command line of a sandbox whose program does not wait for the check of its mounts. */
export const unchecked = ({ launch }: Sandbox.Confined): ReadonlyArray<string> => [...launch.prefix.slice(0, -1), "go"]
