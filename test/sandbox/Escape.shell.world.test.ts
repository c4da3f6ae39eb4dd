/** The escape suite, of commands of a live shell. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import * as Sandbox from "../../packages/core/src/child/Sandbox.ts"
import { ShellRecord } from "../../packages/shell/src/record/ShellRecord.ts"
import * as Shells from "../../packages/shell/src/Shells.ts"
import { temporaryFolder } from "../tools/Workbench.ts"
import type { Bench } from "./EscapeBench.ts"
import { escapeSuite } from "./EscapeSuite.ts"

const bounds: ReadonlyArray<string | undefined> = ["processes", "memory"]

/** A live shell in the folder. A command after its end runs in another one, as an agent would do. */
const makeShell = (shells: Shells.Shells["Type"], folder: string) => {
  const open = Effect.orDie(shells.create({ target: { transport: "local", cwd: folder }, writable: [folder] }))
  let id: string | undefined
  const run: Bench["run"] = Effect.fnUntraced(function* (command) {
    id ??= yield* open
    const budget = { max_chars: 1_000_000 }
    const result = yield* Effect.orDie(shells.exec(id, command, { timeoutSeconds: 60, budget }))
    if (result.closed !== undefined) id = undefined
    const { closed, exit_code, sandbox = "", stderr, stdout } = result
    return {
      exitCode: exit_code,
      stopped: bounds.includes(closed) ? closed : undefined,
      text: [stdout, stderr, sandbox].map((each) => (each === "" ? "" : `${each}\n`)).join("")
    }
  })
  return { run, close: Effect.suspend(() => (id === undefined ? Effect.void : Effect.asVoid(shells.destroy(id)))) }
}

escapeSuite("live shell", (settings = {}) =>
  Effect.gen(function* () {
    const [root, beside] = [yield* temporaryFolder, yield* temporaryFolder]
    const [folder, outside] = [join(root, "project"), join(root, "outside")]
    for (const each of [folder, outside]) mkdirSync(each)
    writeFileSync(join(outside, "secret"), "secret-beside")
    const given = typeof settings === "function" ? settings(beside) : settings
    const context = yield* Layer.build(
      Shells.layer({ policy: { allowDangerous: true } }).pipe(
        Layer.provide([
          Sandbox.layer({ mode: "on", ...given }),
          Layer.succeed(ShellRecord, { write: () => Effect.void })
        ])
      )
    ).pipe(Effect.orDie)
    const { close, run } = makeShell(Context.get(context, Shells.Shells), folder)
    const at = (name: string) => join(folder, name)
    const put = (name: string, text: string) => {
      mkdirSync(join(at(name), ".."), { recursive: true })
      writeFileSync(at(name), text)
    }
    return {
      folder,
      outside,
      beside,
      at,
      put,
      run,
      said: (command) => Effect.map(run(command), ({ text }) => text),
      close
    }
  })
)
