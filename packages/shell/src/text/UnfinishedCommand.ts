/**
 * Whether a person who types a command has to go on: a quote, a here-document, a group or a list is open, or the line ends with
 * a backslash. Pure. Spec: SL-191 in specs/shell.md.
 */
import type { SyntaxNode } from "unbash"
import type { Grammar } from "@daybook/core/permission/CommandLine"

/** A longer text is complete: no person types it, and parsing takes quadratic time in the number of here-documents. */
const longest = 16_384

const hasOpenHereDocument = (grammar: Grammar, node: SyntaxNode): boolean => {
  if (node.type === "HereDoc" && node.closing === undefined) return true
  let open = false
  grammar.forEachChild(node, (child) => {
    open ||= hasOpenHereDocument(grammar, child)
  })
  return open
}

export const isUnfinished = (grammar: Grammar, text: string): boolean => {
  if (text.length > longest) return false
  const script = grammar.parse(text)
  const { commands, errors = [] } = script
  // In a comment, a backslash is one of its characters.
  const last = commands.at(-1)
  if (/(?:^|[^\\])(?:\\\\)*\\$/.test(text) && last !== undefined && last.end === text.length) return true
  if (errors.some(({ message }) => message.startsWith("unexpected"))) return false
  const end = text.trimEnd().length
  if (errors.some(({ message, pos }) => message.startsWith("unterminated") || pos >= end)) return true
  return errors.length === 0 && hasOpenHereDocument(grammar, script)
}
