/** `daybook export`: writes a session as a log of another tool, or as a document. Spec: CL-230..CL-239. */
import { Effect } from "effect"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import { UsageError } from "../support/Errors.ts"

/** The formats, each with what it is. */
export const formats = ["entries", "pi", "thread", "jsonl", "markdown", "html"] as const

const format = Flags.choice("format", formats, "what to write")
const out = Flags.text("out", "FILE", "write to this file; - or none is stdout")
const redact = Flags.toggle("redact", "replace secrets, and say how many")
const force = Flags.toggle("force", "replace the file if it exists")

export const exportVerb = verb({
  name: "export",
  summary: "write a session as a log of another tool or as a document",
  words: "SESSION",
  details: [
    "SESSION is an id or a title. entries is the log of xcsh, pi that of pi, thread a thread log; jsonl has a message per " +
      "line, markdown and html are for reading.",
    "A session that was imported from the same format is written as its log was, record by record, followed by what was " +
      "done since. What a format cannot hold is listed on stderr, or with --json as a line of JSON there."
  ],
  given: { session: Flags.one("SESSION"), format, out, redact, force, json: Flags.json },
  examples: [
    ["daybook export fix --format markdown", "prints the session called fix"],
    ["daybook export ses_01 --format pi --out fix.jsonl", "writes a log that pi opens"],
    ["daybook export ses_01 --format html --redact --out fix.html", "writes a page without secrets"]
  ],
  run: ({ format, out, ...given }) =>
    Effect.gen(function* () {
      if (format === undefined) {
        return yield* new UsageError({ message: `say what to write: --format ${formats.join("|")}` })
      }
      const file = out === "-" ? undefined : out
      const work = yield* Effect.promise(() => import("../host/ExportWork.ts"))
      yield* work.run({ ...given, format: format, file })
    })
})
