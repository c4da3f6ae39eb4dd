/**
 * Says what a user record's text is: a person's prompt, a command that a person ran, a command's output, or a text that
 * Claude Code added. Pure. Spec: FM-136 in specs/formats.md.
 */
import { Option } from "effect"

/** What a text of a user record means. */
export type Meaning =
  | { readonly is: "prompt" }
  | { readonly is: "note" }
  | { readonly is: "interruption" }
  /** A command with its arguments. A slash command may be a prompt: its output or its absence decides. */
  | { readonly is: "command"; readonly command: string; readonly slash: boolean }
  | { readonly is: "output"; readonly output: string }

/** What texts that Claude Code adds start with. */
const added =
  /^(?:<(?:task-notification|system-reminder|local-command-caveat|user-prompt-submit-hook|cross-session-message|teammate-message|channel)[\s>]|Caveat: The messages below)/

/** The text between the first `<name>` and the next `</name>`, in one pass each. */
const inside = (text: string, name: string): Option.Option<string> => {
  const open = text.indexOf(`<${name}>`)
  const start = open + name.length + 2
  const end = open < 0 ? -1 : text.indexOf(`</${name}>`, start)
  return end < 0 ? Option.none() : Option.some(text.slice(start, end))
}

const starts = (text: string, ...names: ReadonlyArray<string>) => names.some((name) => text.startsWith(`<${name}>`))

const joined = (text: string, names: ReadonlyArray<string>): string =>
  names
    .flatMap((name) => Option.toArray(inside(text, name)))
    .filter((part) => part !== "")
    .join("\n")

export const meaningOf = (given: string): Meaning => {
  const text = given.trimStart()
  if (text.startsWith("[Request interrupted by user")) return { is: "interruption" }
  if (added.test(text)) return { is: "note" }
  if (starts(text, "bash-input")) {
    return { is: "command", command: Option.getOrElse(inside(text, "bash-input"), () => text), slash: false }
  }
  if (starts(text, "bash-stdout", "bash-stderr")) {
    return { is: "output", output: joined(text, ["bash-stdout", "bash-stderr"]) }
  }
  if (starts(text, "local-command-stdout", "local-command-stderr")) {
    return { is: "output", output: joined(text, ["local-command-stdout", "local-command-stderr"]) }
  }
  const name = starts(text, "command-name", "command-message", "command-args")
    ? inside(text, "command-name")
    : Option.none<string>()
  if (Option.isNone(name)) return { is: "prompt" }
  const words = `${name.value.startsWith("/") ? "" : "/"}${name.value} ${joined(text, ["command-args"])}`
  return { is: "command", command: words.trim(), slash: true }
}
