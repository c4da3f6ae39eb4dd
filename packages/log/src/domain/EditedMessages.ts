/**
 * Applies the edits of the context: the messages as the model is shown them. What people read, the log and exports in the
 * source's format keep the message as it was. Pure. Spec: CP-440, CP-441.
 */
import { Struct } from "effect"
import type { AssistantMessage, ContextEdit, Message, Part, ToolPart } from "./Message.ts"
import type { ToolContent } from "./Values.ts"

/** Stands in place of a result that was removed: providers refuse a call without a result. */
const removedResult: ReadonlyArray<ToolContent> = [{ type: "text", text: "[The result was removed from the context.]" }]

const textOf = (content: ReadonlyArray<ToolContent>): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

const editedResult = (part: ToolPart, edit: ContextEdit | undefined): ToolPart => {
  if (edit === undefined) return part
  const { content = removedResult } = edit
  // Each of these holds the result in another form.
  const rest = Struct.omit(part, "outputPaths", "result", "structured")
  return part.state === "error" && part.error !== undefined
    ? { ...rest, content: [], error: { ...part.error, message: textOf(content) } }
    : { ...rest, content }
}

const isResultOf =
  (part: ToolPart) =>
  ({ callID }: ContextEdit): boolean =>
    callID === part.id

/** The parts of an answer with another content: its texts first, then the calls that stay. */
const editedParts = (message: AssistantMessage, { calls = [], content = [] }: ContextEdit): ReadonlyArray<Part> => [
  { type: "text", id: "edited", text: textOf(content) },
  ...message.content.flatMap((part): ReadonlyArray<Part> => {
    if (part.type !== "tool") return []
    const kept = calls.find(({ callID }) => callID === part.id)
    return kept === undefined ? [] : [{ ...part, input: kept.input }]
  })
]

const editedAnswer = (message: AssistantMessage, edits: ReadonlyArray<ContextEdit>): Message => {
  const own = edits.findLast(({ callID }) => callID === undefined)
  const parts = own === undefined ? message.content : editedParts(message, own)
  return {
    ...Struct.omit(message, "edits"),
    content: parts.map((part) => (part.type === "tool" ? editedResult(part, edits.findLast(isResultOf(part))) : part))
  }
}

const editedOf = (message: Message): Message | undefined => {
  const { edits = [] } = message
  const own = edits.findLast(({ callID }) => callID === undefined)
  if (own !== undefined && own.content === undefined) return undefined
  if (message.type === "assistant") return editedAnswer(message, edits)
  if (own?.content === undefined || (message.type !== "user" && message.type !== "synthetic")) return message
  const { createdAt, id, seq, type, withheld } = message
  const shown = withheld === undefined ? {} : { withheld }
  const text = textOf(own.content)
  const files = own.content.filter((part) => part.type === "file")
  return type === "synthetic" && files.length === 0
    ? { type, id, seq, createdAt, text, ...shown }
    : { type: "user", id, seq, createdAt, text, ...(files.length === 0 ? {} : { files }), ...shown }
}

/** Messages keep their identity, on which later steps rely. */
const known = new WeakMap<Message, ReadonlyArray<Message>>()

const shownOf = (message: Message): ReadonlyArray<Message> => {
  if (message.edits === undefined) return [message]
  const before = known.get(message)
  if (before !== undefined) return before
  const edited = editedOf(message)
  const shown = edited === undefined ? [] : [edited]
  known.set(message, shown)
  return shown
}

/** The messages as the model is shown them; a removed one is left out. */
export const edited = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> =>
  messages.some(({ edits }) => edits !== undefined) ? messages.flatMap(shownOf) : messages
