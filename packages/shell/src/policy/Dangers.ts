/**
 * Commands that a policy refuses although no list names them: forced recursive removal, `dd`, `mkfs`, ending the system,
 * and downloads that a shell executes. Judges names and words, not texts: `echo dd` is fine. Pure. Spec: SL-55.
 */
import { baseName } from "@daybook/core/permission/CommandWrappers"
import type { VisibleLine } from "./VisibleCommands.ts"

const ending = new Set("halt poweroff reboot shutdown".split(" "))
const downloading = new Set("curl fetch wget".split(" "))

const isOption = (word: string, letter: RegExp, long: string): boolean =>
  word.startsWith("--") ? word.length > 3 && long.startsWith(word) : word.startsWith("-") && letter.test(word)

/** Why the command is dangerous; undefined if it is not. */
const dangerOf = (words: ReadonlyArray<string>): string | undefined => {
  const name = baseName(words[0] ?? "")
  const end = words.indexOf("--")
  const options = words.slice(1, end < 0 ? undefined : end)
  const has = (letter: RegExp, long: string) => options.some((word) => isOption(word, letter, long))
  if (name === "rm" && has(/[rR]/, "--recursive") && has(/f/, "--force")) return "forced recursive removal"
  if (name === "dd" || /^mkfs(?:\.|$)/.test(name)) return `${name} overwrites disks`
  if (ending.has(name)) return `${name} ends the system`
  if (name === "systemctl" && options.some((word) => ending.has(word))) return "systemctl ends the system"
  if ((name === "init" || name === "telinit") && /^[06]$/.test(words[1] ?? "")) return `${name} ends the system`
  return undefined
}

/** Why a line is dangerous; undefined if nothing of it is. */
export const danger = ({ commands, possible }: VisibleLine): string | undefined => {
  const downloads = commands.some(({ name }) => downloading.has(name))
  if (downloads && commands.some(({ executesUnseen }) => executesUnseen)) return "a shell executes what is downloaded"
  for (const words of [...commands.map((command) => command.words), ...possible]) {
    const found = dangerOf(words)
    if (found !== undefined) return found
  }
  return undefined
}
