/**
 * Reads commands at the terminal, one after another, with line editing and a history. Between two reads the terminal is as
 * outside of the editor: Ctrl-C is a signal, and keys wait for the next read. Spec: SL-190, SL-191 in specs/shell.md.
 */
import { createInterface } from "node:readline"
import { Effect } from "effect"

/** A line; `cleared` after Ctrl-C; `end` after Ctrl-D on an empty line, or at the end of the input. */
export type Typed = { readonly line: string } | "cleared" | "end"

export interface LineEditor {
  readonly read: (prompt: string) => Effect.Effect<Typed>
}

const historySize = 1_000

/** An editor on stdin and stdout, which must be a terminal, until the scope ends. */
export const make = Effect.gen(function* () {
  const editor = createInterface({
    input: process.stdin,
    output: process.stdout,
    terminal: true,
    historySize,
    removeHistoryDuplicates: true
  })
  // Pasted lines that are not read yet.
  const typed: Array<Typed> = []
  let waiting: ((typed: Typed) => void) | undefined
  let ended = false
  const give = (next: Typed) => {
    const take = waiting
    waiting = undefined
    if (take === undefined) typed.push(next)
    else take(next)
  }
  editor
    .on("line", (line) => give({ line }))
    .on("SIGINT", () => {
      // To the end of the line, then delete to its beginning.
      editor.write(null, { ctrl: true, name: "e" })
      editor.write(null, { ctrl: true, name: "u" })
      process.stdout.write("^C\n")
      give("cleared")
    })
    .on("close", () => {
      ended = true
      give("end")
    })
  editor.pause()
  process.stdin.setRawMode(false)
  yield* Effect.addFinalizer(() => Effect.sync(() => editor.removeAllListeners("close").close()))

  const release = () => {
    if (ended) return
    editor.pause()
    process.stdin.setRawMode(false)
  }
  // The rest of a paste is shown again behind the next prompt.
  const hideRest = Effect.sync(() => {
    if (editor.line !== "") process.stdout.write("\r\u001b[J")
  })
  const next = (prompt: string) =>
    Effect.async<Typed>((resume) => {
      const early = typed.shift()
      if (early !== undefined) return resume(Effect.succeed(early))
      if (ended) return resume(Effect.succeed("end"))
      waiting = (given) => {
        release()
        resume(Effect.succeed(given))
      }
      process.stdin.setRawMode(true)
      editor.setPrompt(prompt)
      editor.prompt(true)
      return Effect.sync(() => {
        waiting = undefined
        release()
      })
    })
  return { read: (prompt) => Effect.zipLeft(next(prompt), hideRest) } satisfies LineEditor
})
