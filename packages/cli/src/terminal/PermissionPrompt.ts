/** Asks the person at the terminal for permission to run a tool call. Spec: CL-35..CL-37, CL-155..CL-158. */
import { Effect, Layer } from "effect"
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core/permission/PermissionAsker"
import { alwaysText, answerPrompt, questionPages, questionText, type Size } from "../render/PermissionText.ts"
import { type Style, styleOf } from "../render/Style.ts"
import * as Question from "./Question.ts"

/** A typed reply: an answer, or a request to show more first. */
export type Typed = Answer | "view" | "always"

/** Parses a typed line. An empty line declines; the end of the input means that no one is there. Pure. */
export const typed = (line: string | undefined, request: PermissionRequest): Typed => {
  if (line === undefined) return Answer.Unavailable()
  const words = line.trim()
  // An answer that is not offered is plain text: a misunderstanding must not allow anything.
  const lasting = request.always.length > 0
  switch (words.toLowerCase()) {
    case "y":
    case "yes":
      return Answer.Once()
    case "s":
    case "session":
      return lasting ? Answer.Session() : Answer.Correct({ message: words })
    case "a":
    case "always":
      return lasting ? "always" : Answer.Correct({ message: words })
    case "v":
    case "view":
      return "view"
    case "":
    case "n":
    case "no":
      return Answer.Decline()
    default:
      return Answer.Correct({ message: words })
  }
}

/** Asks for one line at the terminal. */
export type Ask = (question: Question.Question) => Effect.Effect<string | undefined>

const view = (ask: Ask, pages: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    for (const [at, shown] of pages.entries()) {
      const more = at < pages.length - 1 ? "Enter shows more, q goes back" : "Enter goes back"
      const line = yield* ask({ shown, prompt: `${at + 1} of ${pages.length}: ${more}: ` })
      if (line === undefined || line.trim() !== "") return
    }
  })

/** Shows the pattern, which is saved as shown or as retyped; `undefined` returns to the question. */
const always = (ask: Ask, request: PermissionRequest, size: () => Size) =>
  Effect.map(
    ask({
      shown: alwaysText(request, size()),
      prompt: "Enter saves this, b goes back; or type another pattern (* is any text): "
    }),
    (line) => {
      const pattern = line?.trim()
      if (pattern === undefined) return Answer.Unavailable()
      if (pattern === "") return Answer.Always()
      return pattern.toLowerCase() === "b" ? undefined : Answer.AlwaysFor({ resources: [pattern] })
    }
  )

/** Asks until an answer is given. */
export const decide = (ask: Ask, request: PermissionRequest, size: () => Size, style: Style): Effect.Effect<Answer> =>
  Effect.gen(function* () {
    for (;;) {
      const said = typed(
        yield* ask({ shown: questionText(request, size(), style), prompt: answerPrompt(request) }),
        request
      )
      if (said === "view") yield* view(ask, questionPages(request, size(), style))
      else if (said === "always") {
        const answer = yield* always(ask, request, size)
        if (answer !== undefined) return answer
      } else return said
    }
  })

const terminalSize = (): Size => ({ columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 })

/** Asks at the terminal; without one, the answer is that no one is there. */
export const layer: Layer.Layer<PermissionAsker> = Layer.succeed(
  PermissionAsker,
  PermissionAsker.of({
    ask: (request) =>
      Question.together(
        Effect.suspend(() => decide(Question.line, request, terminalSize, styleOf(process.env, Question.canAsk())))
      )
  })
)
