/** The escape suite, of commands of the tool `bash` in the session's live shell. */
import { Effect } from "effect"
import { textOf } from "../tools/LiveBench.ts"
import { sessionID } from "../tools/Workbench.ts"
import { makeConfinedLive } from "./Confined.ts"
import { escapeSuite } from "./EscapeSuite.ts"

const text = (value: unknown) => (typeof value === "string" ? value : undefined)

escapeSuite("bash in a live shell", (settings) =>
  Effect.map(makeConfinedLive(settings), (bench) => ({
    ...bench,
    run: (command) =>
      Effect.map(Effect.orDie(bench.run(command)), (output) => ({
        exitCode: typeof output.structured["exitCode"] === "number" ? output.structured["exitCode"] : null,
        stopped: text(output.structured["stopped"]),
        text: textOf(output)
      })),
    said: (command) => Effect.map(Effect.orDie(bench.run(command)), textOf),
    close: Effect.asVoid(Effect.orDie(bench.log.remove(sessionID)))
  }))
)
