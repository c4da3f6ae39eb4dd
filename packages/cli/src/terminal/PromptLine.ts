/**
 * Lets a person type a prompt at the terminal, with line editing and earlier prompts. Pasted lines become one prompt. Spec:
 * CL-264, CL-265.
 */
import { createInterface } from "node:readline"
import { Effect } from "effect"
import { visible } from "../render/Visible.ts"
import * as Paste from "./Paste.ts"
import * as Terminal from "./Terminal.ts"

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
      const paste = Paste.marked(process.stderr)
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
            if (editor.line === "") end(Paste.textOf(typed))
          }, pasteGap)
        })
        .on("SIGINT", () => process.kill(process.pid, "SIGINT"))
        .on("close", () => end(typed.length === 0 ? undefined : Paste.textOf(typed)))
      editor.prompt()
      return Effect.sync(() => {
        clearTimeout(timer)
        paste.stop()
        editor.removeAllListeners("close").close()
      })
    })
  )
