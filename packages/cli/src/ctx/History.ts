/**
 * Renders rows of `messages.jsonl`. Pure. A row of a later version may have unknown kinds of blocks and fields: they are named,
 * not refused. Spec: CL-107 in specs/cli.md (FL-4, DC-15).
 */
import type { Block, MessageRow } from "@daybook/transcript/row/Rows"
import { bytes, oneLine } from "../render/Plain.ts"
import { visible } from "../render/Visible.ts"

type Fields = { readonly [key: string]: unknown }

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isBlocks = (value: unknown): value is ReadonlyArray<Fields> =>
  Array.isArray(value) && value.every((each) => isFields(each) && typeof each["type"] === "string")

/** The fields of a row that are shown. They are checked by hand, because loading the schemas takes longer than reading. */
interface Row {
  readonly role: string
  readonly time: string
  readonly name: string
  readonly model: string
  readonly content: ReadonlyArray<Fields>
  readonly error: string | undefined
}

const text = (value: unknown): string => (typeof value === "string" ? value : "")

/** The row of a line, or `undefined` if the line is not a row. */
export const parseRow = (line: string): Row | undefined => {
  let row: unknown
  try {
    row = JSON.parse(line)
  } catch {
    return undefined
  }
  if (!isFields(row) || typeof row["role"] !== "string") return undefined
  const { content, error, model, name, role, time } = row
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content
  if (!isBlocks(blocks)) return undefined
  return {
    role,
    time: text(time),
    name: text(name),
    model: text(model),
    content: blocks,
    error: isFields(error) ? text(error["message"]) : undefined
  }
}

// The compiler checks that these names are those of the rows' schema.
const kind = (type: Block["type"]): string => type
const role = (name: MessageRow["role"]): string => name

const head = ({ model, role, time }: Row): string => {
  const when = time.slice(0, 19).replace("T", " ")
  return `## ${oneLine(role)}${model === "" ? "" : ` (${oneLine(model)})`}  ${oneLine(when)}`
}

const media = (block: Fields): string => {
  const size = typeof block["bytes"] === "number" ? `, ${bytes(block["bytes"])}` : ""
  return oneLine(`[media] ${text(block["name"]) || text(block["uri"])} (${text(block["media_type"])}${size})`, 400)
}

/** The result of a call, truncated to one line; the file has all of it. */
const result = (block: Fields): string => {
  const content = block["content"]
  const parts = isBlocks(content) ? content : [{ type: "text", text: text(content) }]
  const words = parts.map((part) => (part["type"] === kind("media") ? media(part) : text(part["text"]))).join("\n")
  return oneLine(words.trim(), 120)
}

const block = (item: Fields): string => {
  switch (item["type"]) {
    case kind("text"):
      return text(item["text"]).trimEnd()
    case kind("media"):
      return media(item)
    case kind("tool_call"):
      return `→ ${oneLine(text(item["name"]))} ${oneLine(JSON.stringify(item["input"]) ?? "", 160)}`
    case kind("tool_result"):
      return result(item)
    default:
      return `[${oneLine(text(item["type"]))}]`
  }
}

/** One row of the conversation, followed by an empty line. A terminal gets no control characters. */
export const rowText = (row: Row, terminal: boolean): string => {
  const safe = (words: string) => (terminal ? visible(words) : words)
  if (row.role === role("tool")) {
    const failed = row.content.some((item) => item["is_error"] === true)
    return `${failed ? "!" : "←"} ${oneLine(row.name)} ${row.content.map(block).join(" ")}`.trimEnd() + "\n\n"
  }
  const error = row.error === undefined ? [] : [`! ${oneLine(row.error, 400)}`]
  const body = safe([...row.content.map(block), ...error].filter((part) => part !== "").join("\n\n"))
  return `${head(row)}\n${body === "" ? "" : `\n${body}\n`}\n`
}
