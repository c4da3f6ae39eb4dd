/** A Location whose commands run in a real sandbox, and a home with secrets beside it. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import * as Sandbox from "../../packages/core/src/child/Sandbox.ts"
import { makeWorkbench, temporaryFolder, textOf, type Options } from "../tools/Workbench.ts"

/** Commands of this bench run in a sandbox. `settings` sees the folder that the sandbox may name. */
export const makeConfined = Effect.fnUntraced(function* (
  settings: Sandbox.SandboxSettings | ((beside: string) => Sandbox.SandboxSettings) = {},
  options: Options = {}
) {
  const beside = yield* temporaryFolder
  const given = typeof settings === "function" ? settings(beside) : settings
  const bench = yield* Effect.provide(
    makeWorkbench(options),
    yield* Layer.build(Sandbox.layer({ mode: "on", ...given }))
  )
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
