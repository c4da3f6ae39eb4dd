/** Asks the person at the terminal whether a tool may do what it wants to do. Spec: CL-35..CL-37 in specs/cli.md. */
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core"
import { Effect, Layer } from "effect"
import * as Question from "./Question.ts"
import { oneLine } from "./render/Plain.ts"

/** What is shown before the answer is typed. Pure. */
export const question = (request: PermissionRequest): string => {
  const resources = request.resources.map((resource) => `  ${oneLine(resource, 400)}\n`).join("")
  const always = request.always.length === 0 ? "" : `, [a]lways (${oneLine(request.always.join(", "), 120)})`
  return (
    `\n${request.permission}: ${oneLine(request.title, 400)}\n${resources}` +
    `[y]es once${always}, [n]o and stop, or words to correct: `
  )
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
    ask: (request) => Effect.map(Question.ask(question(request)), (line) => answer(line, request))
  })
)
