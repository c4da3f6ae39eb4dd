/** What documents of all formats show of prompts and tool calls. Pure. Spec: FM-170. */
import type { ToolPart, UserMessage } from "@daybook/log/domain/Message"
import type { ToolContent } from "@daybook/log/domain/Values"
import { timeText } from "@daybook/transcript/row/Rows"

/** The time to the minute, in UTC. */
export const minuteText = (ms: number): string => `${timeText(ms).slice(0, 16).replace("T", " ")} UTC`

/** Something that a prompt refers to: a file, a picture, an agent. */
export interface Attached {
  readonly kind: string
  readonly name: string
  /** Absent: the document has only the name. */
  readonly content?: ToolContent
}

/** What a prompt came with. Before its expansion only names are known. */
export const attachedTo = ({ expansion, files = [] }: UserMessage): ReadonlyArray<Attached> =>
  expansion === undefined
    ? files.map(({ mime, name, uri }) => ({
        kind: "file",
        name: name ?? nameOf(uri),
        content: { type: "file" as const, uri, mime }
      }))
    : expansion.parts.map(({ content, kind, name }) => ({ kind, name, content }))

/** A URI without its data. */
export const nameOf = (uri: string): string => (uri.startsWith("data:") ? uri.slice(0, uri.indexOf(",") + 1) : uri)

/** The input of a call as indented JSON, or as the text that it is so far. */
export const inputOf = ({ input, raw }: ToolPart): string =>
  input === undefined ? (raw ?? "") : JSON.stringify(input, null, 2)

/** The first words of a call's input. */
export const hintOf = ({ input, raw }: ToolPart): string => {
  if (input === undefined) return raw ?? ""
  const values = Object.values(input).filter((value) => typeof value === "string")
  return values.length > 0 ? values.join(" ") : JSON.stringify(input)
}
