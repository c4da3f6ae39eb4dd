/** `daybook shell exec`: runs a command in a live shell. Spec: SL-182..SL-184 in specs/shell.md. */
import { Effect } from "effect"
import * as Flags from "../../arguments/Flags.ts"
import { verb } from "../../arguments/Verb.ts"

const timeout = Flags.integer("timeout", "SECONDS", "stop the command after that long (default and most: 3600)", 1)
const grep = Flags.text("grep", "PATTERN", "only lines that match a pattern of RE2's syntax")
const context = Flags.integer("context", "N", "with --grep: also N lines before and after each match", 0)
const head = Flags.integer("head", "N", "only the first N lines; with --tail, both ends", 1)
const tail = Flags.integer("tail", "N", "only the last N lines", 1)
const maxChars = Flags.integer("max-chars", "N", "at most N characters of each stream (default here: 100000)", 1)
const stdin = Flags.toggle("stdin", "send this command's stdin, as text; the command's input is empty without it")

export const exec = verb({
  name: "exec",
  summary: "runs a command in a shell",
  words: "ID -- COMMAND",
  details: [
    "Runs a command in an open shell, after the commands before it, and prints its output and errors while it runs, without " +
      "terminal sequences and secrets. Several words are joined with spaces, as ssh does; quote the command to keep the shell " +
      "that you type in from reading it. The exit code is the command's: 124 after a timeout, 130 after Ctrl-C, which stops " +
      "the command and leaves the shell. The exit codes of daybook itself come with a sentence that begins with daybook:.",
    "With --grep, --head, --tail or --max-chars, the part of the output that they keep is printed at the end; daybook shell " +
      "output prints all of it. With --json, the whole result is one line of JSON."
  ],
  given: {
    id: Flags.one("ID"),
    words: Flags.many("COMMAND"),
    timeout,
    grep,
    context,
    head,
    tail,
    maxChars,
    stdin,
    json: Flags.json
  },
  examples: [
    ["daybook shell exec 1_local -- 'cd /srv && make'", "runs it there, and stays in /srv"],
    [
      "daybook shell exec 1_local --grep 'error|warning' --context 2 -- make",
      "only those lines, with lines around them"
    ],
    ["daybook shell exec 1_ssh_build@host --stdin -- 'cat >notes' <notes", "sends a file"]
  ],
  run: (given) =>
    Effect.gen(function* () {
      const { run } = yield* Effect.promise(() => import("../../host/ShellExec.ts"))
      yield* run(given)
    })
})
