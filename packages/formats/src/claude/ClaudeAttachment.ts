/** Says what an attachment of Claude Code showed the model, if a log keeps it. Pure. Spec: FM-141. */
import { Predicate } from "effect"
import type { Content } from "../conversation/Conversation.ts"
import { contentOf } from "./ClaudeContent.ts"
import type { Attachment } from "./ClaudeRecord.ts"

export interface Attached {
  /** A person wrote it while the model worked. */
  readonly person: boolean
  readonly content: Content
}

const note = (text: string): Attached => ({ person: false, content: [{ type: "text", text }] })

const textOf = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

const field = (value: unknown, name: string): unknown =>
  Predicate.isReadonlyRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined

/** Undefined: the attachment shows the model nothing, or the log does not say what. */
export const attachedOf = (given: Attachment): Attached | undefined => {
  const { commandMode, content, filename, path, prompt, snippet, type } = given
  switch (type) {
    case "queued_command":
      return { person: commandMode === undefined || commandMode === "prompt", content: contentOf(prompt) }
    case "edited_text_file": {
      const changed = textOf(snippet)
      return changed === undefined ? undefined : note(`${filename ?? "A file"} was changed:\n${changed}`)
    }
    case "file":
    case "nested_memory": {
      const text = textOf(field(field(content, "file"), "content")) ?? textOf(field(content, "content"))
      return text === undefined ? undefined : note(`${filename ?? path ?? "A file"}:\n${text}`)
    }
    case "hook_additional_context":
    case "critical_system_reminder":
      return { person: false, content: contentOf(content) }
    default:
      return undefined
  }
}
