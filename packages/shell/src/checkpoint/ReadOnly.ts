/**
 * Tells commands that certainly only read from all others, so that an automatic checkpoint can be left out. Any doubt counts as
 * a change. Pure. Spec: SL-164, SL-165 in specs/shell.md.
 */
import { type Grammar, readCommandLine, type SimpleCommand } from "@daybook/core/permission/CommandLine"

/** Commands that write no file and run no other command, whatever their options. */
const readers = new Set(
  (
    ": [ basename cat cd cksum cmp cut df dirname du echo egrep expr false fgrep fold grep groups head hexdump id ls " +
    "md5sum nl od paste pgrep printenv ps pwd readlink realpath seq sha1sum sha256sum sha512sum sleep stat strings tac " +
    "tail test tr true type uname uptime wc which whoami"
  ).split(" ")
)

const onlyReads = ({ assignments, redirects, substitutions, words, ...command }: SimpleCommand): boolean =>
  !command.defined &&
  assignments.length + redirects.length + substitutions.length === 0 &&
  words[0]?.fixed === true &&
  readers.has(words[0].text)

/** Whether each command of the line is a reader, without redirections, substitutions or assignments. */
export const isReadOnly = (grammar: Grammar, text: string): boolean => {
  const line = readCommandLine(grammar, text)
  return !("unread" in line) && line.loose.length === 0 && line.commands.every(onlyReads)
}

/** Whether a command may give the names of readers another meaning in its shell. */
export const mayRedefine = (text: string): boolean =>
  /\(\s*\)|\b(?:alias|function|eval|source|enable|hash|trap|exec|PATH|ENV|PROMPT_COMMAND)\b|(?:^|[\s;&|({!])\.\s/.test(
    text
  )
