/** Says which MCP servers a run works without, each once. Pure. Spec: CL-542 in specs/cli.md. */
import type { McpStatus } from "@daybook/mcp/Mcp"
import { oneLine } from "./Plain.ts"

/** The sentence about a server that is missing or late; undefined for one that is connected or about to be. */
const sentenceOf = ({ details, name, state, tools }: McpStatus): string | undefined => {
  if (state === "connected" || details === undefined) return undefined
  const so = state === "failed" ? "the run goes on without its tools" : "its tools come when it has"
  const known = state === "connecting" && tools > 0 ? "its calls wait for it" : so
  return `MCP server "${name}": ${oneLine(details, 400)}; ${known}`
}

/** Returns the sentences about servers that were not mentioned before. */
export const makeNotes = () => {
  const said = new Set<string>()
  return (all: ReadonlyArray<McpStatus>): ReadonlyArray<string> =>
    all.flatMap((status) => {
      const sentence = said.has(status.name) ? undefined : sentenceOf(status)
      if (sentence === undefined) return []
      said.add(status.name)
      return [sentence]
    })
}
