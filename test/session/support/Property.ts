/** The property over `drive`: bounded here, long in test/long. DAYBOOK_SEED repeats a run. */
import { Effect, FastCheck, Logger, LogLevel } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { commands, drive, type Command } from "./Drive.ts"

const inFolder = async (script: ReadonlyArray<Command>) => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-model-"))
  try {
    await Effect.runPromise(
      // Failed drains are part of the commands, and logged as such.
      Effect.timeoutFail(Logger.withMinimumLogLevel(drive(folder, script), LogLevel.None), {
        duration: "20 seconds",
        onTimeout: () => new Error("the runtime does not come to where the model is")
      })
    )
  } catch (error) {
    // Said at once: looking for the shortest such sequence takes a while.
    console.log(`${String(error)}\n${JSON.stringify(script)}`)
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Resolves when every sequence of commands agreed; rejects with the seed and the shortest that did not. */
export const holdsFor = async ({ length, runs }: { readonly runs: number; readonly length: number }) => {
  const given = process.env["DAYBOOK_SEED"]
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given)
  console.log(`seed ${seed}: ${runs} sequences of up to ${length} commands`)
  await FastCheck.assert(FastCheck.asyncProperty(commands(length), inFolder), { numRuns: runs, seed })
}
