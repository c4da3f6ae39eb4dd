/** Shows a tool call as one line. Pure. Spec: DI-26 in specs/discord.md. */
import { line, publishable } from "../text/Publishable.ts"

/** What says most about a call, in this order. */
const telling = ["command", "path", "filePath", "pattern", "query", "url", "description", "prompt", "name"]

const summary = (input: Readonly<Record<string, unknown>>): string => {
  const key = telling.find((name) => typeof input[name] === "string")
  return key === undefined ? (Object.keys(input).length === 0 ? "" : JSON.stringify(input)) : String(input[key])
}

/** The call without its state: the tool, and what it acts on. */
export const callText = (
  tool: string,
  input: Readonly<Record<string, unknown>>,
  known: ReadonlyArray<string>
): string => {
  const about = line(publishable(summary(input), known), 160)
  return `\`${line(tool, 40)}\`${about === "" ? "" : ` \`${about}\``}`
}
