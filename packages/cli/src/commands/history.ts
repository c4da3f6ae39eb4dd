/** `daybook history`: lists earlier prompts. Spec: CL-263. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import { verb } from "../arguments/Verb.ts"

const limit = Flags.integer("limit", "N", "at most N prompts (default: 50)", 1)
const cwd = Flags.text("cwd", "DIR", "only prompts of this folder")

export const history = verb({
  name: "history",
  summary: "list earlier prompts, the newest first",
  words: "[WORDS...]",
  details: [
    "With WORDS, it lists the prompts that have a word beginning with each of them. Prompts that repeat the next one are left " +
      "out, and so are those that agents gave each other. A prompt is on one line; --json prints it whole, with its session and " +
      "the number of its event.",
    "daybook prompt without text, on a terminal, asks for one line, and up-arrow recalls these prompts."
  ],
  given: { words: Flags.many("WORDS"), limit, cwd, json: Flags.json },
  examples: [
    ["daybook history", "the last 50 prompts"],
    ["daybook history --cwd . test fail", "prompts of this folder with words such as tests and failing"],
    ["daybook history --json --limit 1 | jq -r .text", "the last prompt, whole"]
  ],
  overServer: true,
  run: (given) =>
    Effect.gen(function* () {
      const cwd = given.cwd
      const directory = cwd === undefined ? undefined : yield* Folder.selected(cwd)
      const work = yield* Effect.promise(() => import("../host/SearchWork.ts"))
      yield* work.history({
        words: given.words.join(" "),
        directory,
        limit: given.limit ?? 50,
        json: given.json
      })
    })
})
