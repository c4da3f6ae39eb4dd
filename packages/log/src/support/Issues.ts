/** Describes schema violations in sentences for a person or a model. */
import { Array, ParseResult } from "effect"

export type Issue = Pick<ParseResult.ArrayFormatterIssue, "message" | "path">

const maximumIssues = 5
const maximumMessage = 1_000

/** Truncates the text to a thousand characters. */
export const clip = (text: string) => (text.length <= maximumMessage ? text : `${text.slice(0, maximumMessage)}...`)

/** The schema library's sentence for a value of another kind. */
const expectation = /^Expected ([\s\S]+), actual ([\s\S]*)$/

/** The library prints the whole schema of a structure. */
const kindOf = (expected: string): string => {
  if (expected.startsWith("{ ")) return "an object"
  return expected.startsWith("ReadonlyArray<") ? "an array" : expected
}

/** One message for the alternatives of a field, absence excluded. */
const joined = (messages: ReadonlyArray<string>): string => {
  const helpful = messages.filter((message) => !message.startsWith("Expected undefined, "))
  const distinct = [...new Set(helpful.length === 0 ? messages : helpful)]
  const parts = distinct.flatMap((message) => {
    const [, expected = "", actual = ""] = expectation.exec(message) ?? []
    return expected === "" ? [] : [{ expected: kindOf(expected), actual }]
  })
  if (parts.length < distinct.length) return distinct.join("; ")
  const kinds = new Set(parts.map(({ expected }) => expected))
  return `Expected ${[...kinds].join(" or ")}, actual ${parts[0]?.actual}`
}

/** One issue for each field, without the texts of whole schemas. The first of its issues gives the rest. */
export const byField = <I extends Issue>(issues: ReadonlyArray<I>): ReadonlyArray<I> =>
  Object.values(Array.groupBy(issues, ({ path }) => JSON.stringify(path.map(String)))).map((same) => ({
    ...same[0],
    message: clip(joined(same.map(({ message }) => message)))
  }))

/** The field of an issue, for people. `whole` names the value itself. */
const fieldOf = ({ path }: Issue, whole: string) => (path.length === 0 ? whole : `"${path.map(String).join(".")}"`)

/** A sentence for each field, the first five of them. */
export const sentences = (issues: ReadonlyArray<Issue>, whole: string): string => {
  const fields = byField(issues)
  const lines = fields.slice(0, maximumIssues).map((issue) => {
    const field = fieldOf(issue, whole)
    return field === "" ? issue.message : `${field}: ${issue.message}`
  })
  const more = fields.length > maximumIssues ? [`and ${fields.length - maximumIssues} more`] : []
  return [...lines, ...more].join("; ")
}

/** Says what each wrong field expects. `whole` names the value itself. */
export const describeIssues = (error: ParseResult.ParseError, whole: string): string =>
  sentences(ParseResult.ArrayFormatter.formatErrorSync(error), whole)
