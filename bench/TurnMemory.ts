/** Measures the resident memory of a runtime after many turns with an instant model, in a process of its own. */
import { spawnSync } from "node:child_process"
import { tmpdir } from "node:os"
import { Effect, Layer, Schema } from "effect"
import { Sessions } from "../packages/core/src/session/Sessions.ts"
import * as Daybook from "../packages/embedded/src/Daybook.ts"
import { freshFile } from "./Stores.ts"
import { model } from "./Turn.ts"

const Resident = Schema.parseJson(Schema.Struct({ resident: Schema.Number, heap: Schema.Number }))
export type Resident = typeof Resident.Type

/** Turns of one session; then the next begins. */
const turnsOfSession = 100

/** Runs the turns and prints the memory of this process. */
export const child = (filename: string, turns: number): Promise<void> =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    for (let done = 0; done < turns; done += turnsOfSession) {
      const { id } = yield* sessions.create({ location: { directory: tmpdir() } })
      for (let turn = done; turn < Math.min(turns, done + turnsOfSession); turn++) {
        yield* sessions.prompt({ sessionID: id, prompt: { text: "And what does the next workspace hold?" } })
        yield* sessions.wait(id)
      }
    }
    const { heapUsed, rss } = process.memoryUsage()
    console.log(JSON.stringify({ resident: rss, heap: heapUsed }))
  }).pipe(Effect.provide(Layer.provide(Daybook.layer({ filename }), model)), Effect.scoped, Effect.runPromise)

/** Bytes after the turns; nothing asks the collector to run. */
export const measure = (directory: string, turns: number): Resident => {
  const code = `const { turnsInChild } = await import(${JSON.stringify(import.meta.url)})
    await turnsInChild(...JSON.parse(process.argv[1]))`
  const words = ["--input-type=module", "--eval", code, JSON.stringify([freshFile(directory), turns])]
  const { stderr, stdout } = spawnSync(process.execPath, words, { encoding: "utf8" })
  if (stdout === "") throw new Error(`the turns ended without a result: ${stderr}`)
  return Schema.decodeUnknownSync(Resident)(stdout)
}
