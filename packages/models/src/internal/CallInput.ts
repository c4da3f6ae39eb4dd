/** The input of a tool call as a provider writes it. Spec: MD-13 in specs/models.md. */

/** A call's input as a JSON value; `{}` if empty, the text itself if it is not JSON. */
export const parseOrText = (input: string): unknown => {
  if (input.trim() === "") return {}
  try {
    return JSON.parse(input)
  } catch {
    return input
  }
}
