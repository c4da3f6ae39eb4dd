/** Says which text of an event is searched, and who wrote the text. Pure. Spec: SE-10, SE-11. */
import { Option, Schema } from "effect"
import type { SessionID } from "../domain/Identifiers.ts"
import * as Registry from "../events/Registry.ts"
import type { DurableType, EventIn, SessionEvent } from "../events/SessionEvents.ts"

/** Who wrote a text: a person's prompt, the model's answer, its reasoning, or a tool: calls, results, shell commands. */
export const Role = Schema.Literal("user", "assistant", "reasoning", "tool")
export type Role = typeof Role.Type

/** The text of one event. */
export interface Document {
  readonly sessionID: SessionID
  readonly seq: number
  readonly position: number
  readonly created: number
  readonly role: Role
  readonly text: string
  /** The assistant message that it belongs to: it knows the model. */
  readonly messageID?: string
  /** The call that it belongs to. */
  readonly callID?: string
  readonly tool?: string
}

/** Characters of a text that are indexed; the rest of a longer one is not found. */
export const textLimit = 65_536

/** The strings, numbers and keys of a call's input, one a line. */
const leaves = (input: unknown): string => {
  const [found, open]: [Array<string>, Array<unknown>] = [[], [input]]
  let size = 0
  for (let next = open.pop(); next !== undefined && size < textLimit; next = open.pop()) {
    if (typeof next === "object" && next !== null) open.push(...Object.values(next).toReversed())
    else {
      found.push(String(next))
      size += found.at(-1)?.length ?? 0
    }
  }
  return found.join("\n")
}

type Content = Extract<SessionEvent, { readonly type: "session.next.tool.success" }>["data"]["content"]

const shown = (content: Content): string =>
  content
    .flatMap((part) => (part.type === "text" ? [part.text] : part.name === undefined ? [] : [part.name]))
    .join("\n")

type DocumentText = Pick<Document, "role" | "text" | "messageID" | "callID" | "tool">

const found = (event: SessionEvent): DocumentText | undefined => {
  switch (event.type) {
    case "session.next.prompt.admitted":
    case "session.next.prompted":
      return { role: "user", text: event.data.prompt.text }
    case "session.next.text.ended":
      return { role: "assistant", text: event.data.text, messageID: event.data.assistantMessageID }
    case "session.next.reasoning.ended":
      return { role: "reasoning", text: event.data.text, messageID: event.data.assistantMessageID }
    case "session.next.tool.called": {
      const { assistantMessageID: messageID, callID, input, tool } = event.data
      return { role: "tool", text: leaves(input), messageID, callID, tool }
    }
    case "session.next.tool.success": {
      const { assistantMessageID: messageID, callID, content } = event.data
      return { role: "tool", text: shown(content), messageID, callID }
    }
    case "session.next.tool.failed": {
      const { assistantMessageID: messageID, callID, error } = event.data
      return { role: "tool", text: error.message, messageID, callID }
    }
    case "session.next.shell.started":
      return { role: "tool", text: event.data.command, tool: "shell" }
    case "session.next.shell.ended":
      return { role: "tool", text: event.data.output, tool: "shell" }
    default:
      // Retention drops them, and the index holds only texts that it keeps. A model's commands are found by their calls.
      event satisfies EventIn<
        "about" | "prompts" | "steps" | "requests" | "texts" | "calls" | "compactions" | "tree" | "decisions" | "shells"
      >
      return undefined
  }
}

const types: ReadonlySet<string> = new Set<DurableType>([
  "session.next.prompt.admitted",
  "session.next.prompted",
  "session.next.text.ended",
  "session.next.reasoning.ended",
  "session.next.tool.called",
  "session.next.tool.success",
  "session.next.tool.failed",
  "session.next.shell.started",
  "session.next.shell.ended"
])

/** The stored names of events that may have a document. */
export const storedNames: ReadonlyArray<string> = Registry.storedNames().filter((name) =>
  types.has(Registry.splitStored(name).type)
)

/** The document of an event; none if it has no text. */
export const documentOf = (event: SessionEvent): Option.Option<Document> => {
  const of = found(event)
  if (of === undefined || of.text === "") return Option.none()
  const { created, position, seq, sessionID } = event
  return Option.some({ sessionID, seq, position, created, ...of, text: of.text.slice(0, textLimit) })
}
