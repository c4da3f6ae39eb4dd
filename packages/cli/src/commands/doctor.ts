/** `daybook doctor`: is the database sound, and can the models be reached. Spec: CL-19. */
import { Command } from "@effect/cli"
import { Effect, Stream } from "effect"
import type { Check } from "../Checkup.ts"
import * as DatabasePath from "../DatabasePath.ts"
import { DatabaseUnsound, ModelUnreachable } from "../Errors.ts"
import * as Flags from "../Flags.ts"
import { Output } from "../Output.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import type { Verb } from "../Verb.ts"

const line = (check: Check): string => {
  const fix = check.fix === undefined ? "" : `; ${check.fix}`
  return `${check.verdict.padEnd(7)}  ${check.about.padEnd(10)}  ${oneLine(`${check.says}${fix}`, 400)}\n`
}

const run = Effect.fn("Command.doctor")(function* (json: boolean) {
  const output = yield* Output
  const checkup = yield* Effect.promise(() => import("../Checkup.ts"))
  const write = (check: Check) => output.write(json ? `${jsonLine(check, output.terminal)}\n` : line(check))
  yield* write({ about: "node", verdict: "ok", says: process.version })
  const path = yield* DatabasePath.path
  let wrong = 0
  if (yield* DatabasePath.exists) {
    yield* Stream.runForEach(checkup.database(path), (check) => {
      if (check.verdict === "error") wrong += 1
      return write(check)
    })
    if (wrong === 0) yield* write({ about: "database", verdict: "ok", says: path })
  } else {
    yield* write({ about: "database", verdict: "ok", says: `${path} is not there yet; daybook prompt makes it` })
  }
  const models = yield* checkup.models
  yield* Effect.forEach(models, write)
  if (wrong > 0) return yield* new DatabaseUnsound({ message: `${path} is not sound: see above` })
  const unreachable = models.filter(({ verdict }) => verdict === "error").map(({ about }) => about)
  if (unreachable.length > 0) {
    return yield* new ModelUnreachable({ message: `not usable as it is: ${unreachable.join(", ")}` })
  }
})

export const doctor = {
  name: "doctor",
  summary: "check the database and the models, and say what to do",
  words: "",
  details: [
    "Each line is ok, warning or error. The database is checked as a file, for its settings, and session by session: that " +
      "sequences have no gap, that every event can be read, and that what is shown equals what the events say. Nothing is " +
      "changed. Each configured provider is asked for its list of models. The exit code is 6 when the database is not " +
      "sound, else 5 when a provider cannot be used."
  ],
  flags: [Flags.json],
  examples: [["daybook doctor", "every check on a line"]],
  command: Command.make("doctor", { json: Flags.json.options }, ({ json }) => run(json))
} satisfies Verb
