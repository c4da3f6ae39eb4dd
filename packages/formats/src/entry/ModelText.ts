/** The texts that the model reads in place of messages that it has no form for. Spec: FM-40..FM-43 in specs/formats.md. */
import type { MessageOf } from "./AgentMessage.ts"

type Execution = MessageOf<"bashExecution"> | MessageOf<"pythonExecution">

/** Longer than any run of backticks inside, so that the text cannot end the fence. */
const fenced = (text: string, language = ""): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length))
  const fence = "`".repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}

const outcomeOf = ({ cancelled, exitCode }: Execution): string => {
  if (cancelled === true) return "\n\n(cancelled)"
  return typeof exitCode === "number" && exitCode !== 0 ? `\n\n(exit code ${exitCode})` : ""
}

/** A command or code that the person ran, with its output and outcome (CV-2). */
export const executionText = (message: Execution): string => {
  const { fullOutputPath, output, truncated } = message
  const ran =
    message.role === "bashExecution" ? `Ran \`${message.command}\`` : `Ran code:\n${fenced(message.code, "python")}`
  const shown = output === undefined || output === null || output === "" ? "(no output)" : fenced(output)
  const where = typeof fullOutputPath === "string" ? `; the whole output is in ${fullOutputPath}` : ""
  return `${ran}\n${shown}${outcomeOf(message)}${truncated === true ? `\n\n(output truncated${where})` : ""}`
}

const roles = {
  compaction: "This summary replaces the earlier part of the conversation:",
  branch: "This summary describes a branch of the conversation that was left:"
}

/** A summary as the model reads it (CV-1). */
export const summaryText = (kind: keyof typeof roles, summary: string): string =>
  `${roles[kind]}\n\n<summary>\n${summary}\n</summary>`

/** Files that a person mentioned, as the model reads them (CV-3). */
export const fileMentionText = ({ files }: MessageOf<"fileMention">): string =>
  `<system-reminder>\n${files.map(({ content, path }) => `<file path="${path}">\n${content}\n</file>`).join("\n")}\n</system-reminder>`
