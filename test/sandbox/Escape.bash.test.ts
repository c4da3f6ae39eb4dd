/** The escape suite, of commands of the tool `bash`. */
import { Effect } from "effect"
import { textOf } from "../tools/Workbench.ts"
import { makeConfined } from "./Confined.ts"
import { escapeSuite } from "./EscapeSuite.ts"

const text = (value: unknown) => (typeof value === "string" ? value : undefined)

escapeSuite("bash", (settings) =>
  Effect.map(makeConfined(settings), (bench) => ({
    ...bench,
    run: (command) =>
      Effect.map(Effect.orDie(bench.run(command)), (output) => ({
        exitCode: typeof output.structured["exitCode"] === "number" ? output.structured["exitCode"] : null,
        stopped: text(output.structured["stopped"]),
        text: textOf(output)
      })),
    said: (command) => Effect.orDie(bench.said(command)),
    close: Effect.void
  }))
)
