/**
 * Reads a secret: at the terminal without echo, or as the first line of stdin. It is never an argument, which other processes
 * could see. Spec: SL-181 in specs/shell.md.
 */
import { Effect } from "effect"
import { UsageError } from "../support/Errors.ts"
import { standard } from "../support/Stream.ts"
import * as Keyboard from "./Keyboard.ts"
import * as Question from "./Question.ts"
import * as Terminal from "./Terminal.ts"

const longest = 65_536

/** The first line of stdin. */
export const fromStdin: Effect.Effect<string, UsageError> = Effect.tryPromise({
  try: async () => {
    let text = ""
    process.stdin.setEncoding("utf8")
    for await (const chunk of process.stdin) {
      text += String(chunk)
      if (text.includes("\n") || text.length > longest) break
    }
    return text.split("\n")[0]?.replace(/\r$/, "") ?? ""
  },
  catch: (cause) => new UsageError({ message: `stdin cannot be read: ${String(cause)}` })
}).pipe(
  Effect.filterOrFail(
    (secret) => secret !== "" && secret.length <= longest,
    () => new UsageError({ message: "expected the password as the first line of stdin" })
  )
)

/** Enter and Ctrl-D. */
const ends = ["\r", "\n", "\u0004"]

/** The text after its backspaces and Ctrl-U are applied. */
const edited = (typed: string): string => {
  let text = ""
  for (const key of typed) {
    if (key === "\u007f" || key === "\b") text = Array.from(text).slice(0, -1).join("")
    else if (key === "\u0015") text = ""
    else text += key
  }
  return text
}

/** Asks at the terminal; the keys are not shown. */
export const ask = (prompt: string): Effect.Effect<string, UsageError> => {
  if (!Question.canAsk()) {
    return Effect.fail(new UsageError({ message: "no terminal to ask for the password: give --password-stdin" }))
  }
  const { stderr } = standard()
  const read = Effect.async<string>((resume) => {
    let typed = ""
    const stop = Keyboard.standard.listen("unseen", (keys) => {
      typed += keys ?? "\r"
      const end = Math.min(...ends.map((key) => typed.indexOf(key)).filter((at) => at >= 0))
      if (end === Infinity && typed.length <= longest) return
      stop()
      stderr.write("\n", () => undefined)
      resume(Effect.succeed(edited(typed.slice(0, end))))
    })
    // From now on keys are not shown.
    stderr.write(prompt, () => undefined)
    return Effect.sync(stop)
  })
  return Effect.filterOrFail(
    Terminal.alone(read),
    (secret) => secret !== "",
    () => new UsageError({ message: "no password was given" })
  )
}
