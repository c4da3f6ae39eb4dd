/** Lets a person type a prompt, with line editing and earlier prompts; a paste is one prompt. Spec: CL-264, CL-265. */
import { createInterface, type Key } from "node:readline"
import { Effect } from "effect"
import { visible } from "../render/Plain.ts"
import * as Terminal from "./Terminal.ts"

/** Marks pastes until `stop`. The terminal's keys must already be read by an editor on stdin. */
const marked = (output: NodeJS.WriteStream) => {
  let isUnderWay = false
  const look = (_: string | undefined, { name }: Key) => {
    if (name === "paste-start") isUnderWay = true
    if (name === "paste-end") isUnderWay = false
  }
  // Before the editor's own listener, which makes lines of the keys.
  process.stdin.prependListener("keypress", look)
  output.write("\u001b[?2004h")
  return {
    isUnderWay: () => isUnderWay,
    /** Asks the terminal for plain pastes again. */
    stop: () => {
      process.stdin.off("keypress", look)
      output.write("\u001b[?2004l")
    }
  }
}

/** The text of lines that were typed or pasted. The line end that ended a paste and the Enter after it are one. */
const textOf = (lines: ReadonlyArray<string>): string =>
  (lines.length > 1 && lines.at(-1) === "" ? lines.slice(0, -1) : lines).join("\n")

/** Earlier prompts that are recalled, at most, and the longest of them, in characters. */
export const [recallLimit, recallLength] = [500, 2_000]

/** Prompts of one line that the terminal shows as they are. */
export const recallable = (prompts: ReadonlyArray<string>): ReadonlyArray<string> =>
  prompts.filter((text) => text.length <= recallLength && !text.includes("\n") && visible(text) === text)

/** Where the terminal does not mark pastes, lines that arrive closer together were pasted, in milliseconds. */
const pasteGap = 30

/** Asks for a prompt; `earlier` is recalled with up-arrow, the newest first. `undefined` if the input ends. */
export const read = (earlier: ReadonlyArray<string>): Effect.Effect<string | undefined> =>
  Terminal.alone(
    Effect.async<string | undefined>((resume) => {
      const typed: Array<string> = []
      let timer: NodeJS.Timeout | undefined
      const editor = createInterface({
        input: process.stdin,
        output: process.stderr,
        terminal: true,
        prompt: "> ",
        history: [...recallable(earlier)],
        historySize: recallLimit,
        removeHistoryDuplicates: true
      })
      const paste = marked(process.stderr)
      const end = (text: string | undefined) => {
        clearTimeout(timer)
        paste.stop()
        editor.close()
        resume(Effect.succeed(text))
      }
      editor
        .on("line", (line) => {
          typed.push(line)
          clearTimeout(timer)
          if (paste.isUnderWay()) return
          // The rest of a paste stays in the editor: its own line end submits everything.
          timer = setTimeout(() => {
            if (editor.line === "") end(textOf(typed))
          }, pasteGap)
        })
        .on("SIGINT", () => process.kill(process.pid, "SIGINT"))
        .on("close", () => end(typed.length === 0 ? undefined : textOf(typed)))
      editor.prompt()
      return Effect.sync(() => {
        clearTimeout(timer)
        paste.stop()
        editor.removeAllListeners("close").close()
      })
    })
  )
