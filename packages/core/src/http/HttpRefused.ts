import { Predicate } from "effect"

/** A refused HTTP response: a redirect to another origin, or a body beyond its limit. Spec: LM-1, LM-10. */
export class HttpRefused extends Error {
  override readonly name = "HttpRefused"
  readonly code: "redirect_refused" | "answer_too_large"

  constructor(code: HttpRefused["code"], message: string) {
    super(message)
    this.code = code
  }
}

const maxDepth = 6

/** Finds a refusal in an error or its causes, because libraries wrap what `fetch` throws. */
export const refusalIn = (error: unknown, depth = 0): HttpRefused | undefined => {
  if (error instanceof HttpRefused) return error
  return depth < maxDepth && Predicate.hasProperty(error, "cause") ? refusalIn(error.cause, depth + 1) : undefined
}
