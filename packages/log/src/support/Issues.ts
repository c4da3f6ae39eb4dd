/** Describes schema violations in a sentence for a person or a model. */
import { ParseResult } from "effect"

const maximumIssues = 5
const maximumMessage = 1_000

/** Truncates the text to a thousand characters. */
export const clip = (text: string): string =>
  text.length <= maximumMessage ? text : `${text.slice(0, maximumMessage)}...`

/** Describes each issue by its field and what the field expects. `whole` names the value itself. */
export const describeIssues = (error: ParseResult.ParseError, whole: string): string => {
  const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
  const lines = issues.slice(0, maximumIssues).map(({ message, path }) => {
    const field = path.length === 0 ? whole : `"${path.map(String).join(".")}"`
    return field === "" ? clip(message) : `${field}: ${clip(message)}`
  })
  const more = issues.length > maximumIssues ? [`and ${issues.length - maximumIssues} more`] : []
  return [...lines, ...more].join("; ")
}
