/** Says what a user message of a rollout is: a prompt, a text that Codex added, or a command that a person ran. FM-151. */

/** What texts that Codex adds as user messages start with. */
const added =
  /^(?:<(?:environment_context|environments_instructions|user_instructions|turn_aborted|permissions instructions|collaboration_mode|subagent_notification|skills_instructions|apps_instructions|plugins_instructions|realtime_conversation|personality_spec|model_switch|hook_prompt|goal_context|codex_internal_context|skill|recommended_plugins|token_budget|INSTRUCTIONS)[\s>]|# AGENTS\.md instructions|Warning: (?:apply_patch was requested|The maximum number of unified exec))/

export type UserMessage =
  | { readonly is: "prompt" }
  | { readonly is: "note" }
  | { readonly is: "command"; readonly command: string; readonly output: string; readonly exitCode: number | undefined }

const between = (text: string, open: string, close: string): string => {
  const start = text.indexOf(open)
  const end = start < 0 ? -1 : text.lastIndexOf(close)
  return end < start + open.length ? "" : text.slice(start + open.length, end).replace(/^\n|\n$/g, "")
}

/** The folder that an environment context names: older rollouts have it nowhere else. */
export const folderOf = (text: string): string | undefined => {
  if (!text.trimStart().startsWith("<environment_context>")) return undefined
  const tagged = between(text, "<cwd>", "</cwd>").trim()
  if (tagged.startsWith("/")) return tagged
  const [, listed] = /^Current working directory: (.+)$/m.exec(text.slice(0, 10_000)) ?? []
  return listed?.trim()
}

export const userMessageOf = (given: string): UserMessage => {
  const text = given.trimStart()
  if (added.test(text)) return { is: "note" }
  if (!text.startsWith("<user_shell_command>")) return { is: "prompt" }
  const result = between(text, "<result>", "</result>")
  const [, code] = /^Exit code: (-?\d{1,9})$/m.exec(result) ?? []
  const output = result.indexOf("Output:\n")
  return {
    is: "command",
    command: between(
      text.slice(0, text.indexOf("<result>") < 0 ? undefined : text.indexOf("<result>")),
      "<command>",
      "</command>"
    ),
    output: output < 0 ? result : result.slice(output + "Output:\n".length),
    exitCode: code === undefined ? undefined : Number(code)
  }
}
