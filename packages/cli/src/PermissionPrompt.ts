/** Asks the person at the terminal whether a tool may do what it wants to do. Spec: CL-35..CL-37, CL-155..CL-158. */
import { Answer, PermissionAsker, type PermissionRequest } from "@daybook/core"
import { Effect, Layer } from "effect"
import * as Question from "./Question.ts"
import { alwaysText, answerPrompt, questionPages, questionText, type Size } from "./render/PermissionText.ts"
import { styleOf, type Style } from "./render/Style.ts"

/** What was typed: an answer, or what to show before one. */
export type Typed = Answer | "view" | "always"

/** Reads what was typed. Nothing typed is a no; the end of the input is nobody. Pure. */
export const typed = (line: string | undefined, request: PermissionRequest): Typed => {
  if (line === undefined) return Answer.Unavailable()
  const words = line.trim()
  // Not offered, and so no more than a word: a misunderstanding must not allow anything.
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

/** The pattern is shown, and saved as it is, or as it is typed anew; `undefined` goes back to the question. */
const always = (ask: Ask, request: PermissionRequest, size: Size) =>
  Effect.map(
    ask({
      shown: alwaysText(request, size),
      prompt: "Enter saves this, b goes back; or type a pattern in its place (* is any text): "
    }),
    (line) => {
      const pattern = line?.trim()
      if (pattern === undefined) return Answer.Unavailable()
      if (pattern === "") return Answer.Always()
      return pattern.toLowerCase() === "b" ? undefined : Answer.AlwaysFor({ resources: [pattern] })
    }
  )

/** Asks until there is an answer. */
export const decide = (ask: Ask, request: PermissionRequest, size: Size, style: Style): Effect.Effect<Answer> =>
  Effect.gen(function* () {
    for (;;) {
      const said = typed(
        yield* ask({ shown: questionText(request, size, style), prompt: answerPrompt(request) }),
        request
      )
      if (said === "view") yield* view(ask, questionPages(request, size, style))
      else if (said === "always") {
        const answer = yield* always(ask, request, size)
        if (answer !== undefined) return answer
      } else return said
    }
  })

const terminalSize = (): Size => ({ columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 })

/** Without a terminal, nobody is there. */
export const layer: Layer.Layer<PermissionAsker> = Layer.succeed(
  PermissionAsker,
  PermissionAsker.of({
    ask: (request) =>
      Question.together(
        Effect.suspend(() => decide(Question.line, request, terminalSize(), styleOf(process.env, Question.canAsk())))
      )
  })
)
