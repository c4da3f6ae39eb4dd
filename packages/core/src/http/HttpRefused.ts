import { Predicate } from "effect"

/** What Daybook refuses of an HTTP answer: a redirect to another origin, or a body beyond its limit. Spec: LM-1, LM-10. */
export class HttpRefused extends Error {
  override readonly name = "HttpRefused"
  readonly code: "redirect_refused" | "answer_too_large"

  constructor(code: HttpRefused["code"], message: string) {
    super(message)
    this.code = code
  }
}

const maxDepth = 6

/** The refusal in an error or behind it: libraries wrap what `fetch` throws. */
export const refusalIn = (error: unknown, depth = 0): HttpRefused | undefined => {
  if (error instanceof HttpRefused) return error
  return depth < maxDepth && Predicate.hasProperty(error, "cause") ? refusalIn(error.cause, depth + 1) : undefined
}
