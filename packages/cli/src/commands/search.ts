/** `daybook search`: finds texts in all sessions. Spec: CL-250..CL-253. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import { UsageError } from "../support/Errors.ts"

const limit = Flags.integer("limit", "N", "at most N sessions (default: 10)", 1)
const cursor = Flags.text("cursor", "C", "the page after the one that printed this cursor")
const rebuild = Flags.toggle("rebuild", "first build the index again from the log")

export const search = verb({
  name: "search",
  summary: "find prompts, answers and tool output in all sessions",
  words: "QUERY...",
  details: [
    'A text matches if it contains all words, in any order. "Two words" in quotes must stand next to each other, word* also ' +
      "finds longer words, and -word excludes. Case and accents do not matter. Filters: role:user, role:assistant, " +
      "role:reasoning or role:tool; tool:NAME; model:NAME; session:ID or session:TITLE; title:TEXT; cwd:DIR with the folders " +
      "below it; after: and before: a date, a time (UTC) or an age such as 7d. A filter that is given twice accepts both values.",
    "Sessions with the most relevant and most recent texts come first, each with up to three of them. The number before a " +
      "text is its event: daybook context SESSION --at N shows what the model was shown then, and daybook messages SESSION " +
      "--after N continues there.",
    "The first search builds an index beside the database; later ones add what is new. It holds words and no text, and " +
      "daybook remove erases a session from it. Only the first 64 Ki characters of a text are searched. Put -- before a query " +
      "that begins with a dash."
  ],
  given: { words: Flags.many("QUERY"), limit, cursor, rebuild, json: Flags.json },
  examples: [
    ["daybook search login timer", "the texts with both words"],
    [`daybook search '"connection refused" tool:bash after:7d'`, "what commands printed in the last week"],
    ["daybook search migrat* cwd:. role:user", "prompts of this folder about migrations"],
    ["daybook search --json deploy model:claude | jq -r .sessionID", "the ids of the sessions"]
  ],
  overServer: true,
  run: (given) =>
    Effect.gen(function* () {
      if (given.words.join("").trim() === "" && !given.rebuild) {
        return yield* new UsageError({
          message: "say what to search: daybook search WORDS; see daybook search --help"
        })
      }
      const work = yield* Effect.promise(() => import("../host/SearchWork.ts"))
      yield* work.run({
        query: given.words.join(" "),
        limit: given.limit ?? 10,
        cursor: given.cursor,
        rebuild: given.rebuild,
        json: given.json
      })
    })
})
