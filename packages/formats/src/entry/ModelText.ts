/** The texts that the model reads in place of messages that it has no form for. Spec: FM-16 in specs/formats.md. */
import type { MessageOf } from "./AgentMessage.ts"

/** The summary of a compaction that stands as a message of its own (CV-1). */
export const summaryText = (summary: string): string =>
  `This summary replaces the earlier part of the conversation:\n\n<summary>\n${summary}\n</summary>`

/** Files that a person mentioned (CV-3). Their pictures follow the text. */
export const fileMentionText = ({ files }: MessageOf<"fileMention">): string => {
  const blocks = files.map(({ content, path }) => `<file path="${path}">\n${content}\n</file>`)
  return ["<system-reminder>", ...blocks, "</system-reminder>"].join("\n")
}
