/** Asks the person at the terminal whether a tool may do what it wants to do. Spec: CL-35..CL-37 in specs/cli.md. */
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core"
import { Effect, Layer } from "effect"
import * as Question from "./Question.ts"
import { exact } from "./render/Visible.ts"

const numbered = (text: string): string =>
  text
    .split("\n")
    .map((line, at) => `  ${at + 1}  ${exact(line)}\n`)
    .join("")

/** What is shown before the answer is typed. Pure. */
export const question = (request: PermissionRequest): Question.Question => {
  const always = request.always.length === 0 ? "" : `, [a]lways (${request.always.map(exact).join(", ")})`
  return {
    shown: `\n${exact(request.permission)}: ${exact(request.title)}\n${request.resources.map(numbered).join("")}`,
    prompt: `[y]es once${always}, [n]o and stop, or words to correct: `
  }
}

/** What was typed, as an answer. Nothing typed is a no; the end of the input is nobody. Pure. */
export const answer = (line: string | undefined, request: PermissionRequest): Answer => {
  if (line === undefined) return Answer.Unavailable()
  const words = line.trim()
  switch (words.toLowerCase()) {
    case "y":
    case "yes":
      return Answer.Once()
    case "a":
    case "always":
      // Not offered, and so no more than a word: a misunderstanding must not allow anything.
      return request.always.length === 0 ? Answer.Correct({ message: words }) : Answer.Always()
    case "":
    case "n":
    case "no":
      return Answer.Decline()
    default:
      return Answer.Correct({ message: words })
  }
}

/** Without a terminal, nobody is there. */
export const layer: Layer.Layer<PermissionAsker> = Layer.succeed(
  PermissionAsker,
  PermissionAsker.of({
    ask: (request) => Effect.map(Question.together(Question.line(question(request))), (line) => answer(line, request))
  })
)
