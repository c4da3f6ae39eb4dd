/** Runs the property over `drive`: short in the quick suite, long in test/long. */
import { Effect, FastCheck, Logger, LogLevel } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { commands, drive, type Command } from "./Drive.ts"

const inFolder = async (script: ReadonlyArray<Command>) => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-model-"))
  try {
    await Effect.runPromise(
      // The commands make drains fail on purpose, and each failure would be logged.
      Effect.timeoutFail(Logger.withMinimumLogLevel(drive(folder, script), LogLevel.None), {
        duration: "20 seconds",
        onTimeout: () => new Error("the runtime does not reach the state of the model")
      })
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Resolves when runtime and model agree on every sequence of commands; rejects with the first that differs. */
export const holdsFor = ({ length, runs }: { readonly runs: number; readonly length: number }) =>
  FastCheck.assert(FastCheck.asyncProperty(commands(length), inFolder), { numRuns: runs })
