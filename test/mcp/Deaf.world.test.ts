/** In the suite `world`, because the SDK waits four seconds of real time before it kills a process. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { makeLifeline } from "../tools/Lifeline.ts"
import { temporaryFolder } from "../tools/Workbench.ts"
import { makeMcp } from "./support/Servers.ts"

it.scoped("MC-4: its end ends their processes, even one that does not listen", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const lifeline = yield* makeLifeline(folder)
    const deaf =
      "process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6);" +
      `require('node:fs').writeSync(require('node:fs').openSync(${JSON.stringify(join(folder, "life"))}, 'w'), 'here')`
    const scope = yield* Scope.make()
    yield* Scope.extend(makeMcp({ deaf: { command: process.execPath, args: ["-e", deaf] } }), scope)
    assert.strictEqual(yield* lifeline.first, "here")
    yield* Scope.close(scope, Exit.void)
    yield* lifeline.ended
  })
)
