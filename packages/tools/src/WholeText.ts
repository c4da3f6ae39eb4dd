/** Reads the complete text of a file before a change. Bounded. Spec: TO-55. */
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { tryFile } from "@daybook/core/workspace/FileFailure"
import type { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import type { Target } from "@daybook/core/workspace/Target"

/** Larger files cannot be edited. */
export const maximumTextBytes = 10 * 1024 * 1024

const refuse = (message: string) => new ToolFailure({ type: "edit.refused", message })

/** Whether every line of a text ends in CR LF. */
export const isCrlf = (content: string) => content.includes("\r\n") && !/(^|[^\r])\n/.test(content)

/** A file's text, including a byte order mark, and its stats. Fails if it is not UTF-8. */
export const readWholeText = (files: LocationFiles["Type"], target: Target) =>
  Effect.scoped(
    Effect.gen(function* () {
      const name = JSON.stringify(target.resource)
      const { handle, stats } = yield* files.open(target)
      if (stats.size > maximumTextBytes) {
        return yield* refuse(`${name} has ${stats.size} bytes; at most ${maximumTextBytes} can be edited`)
      }
      const bytes = yield* tryFile("read", target.resource, () => handle.readFile())
      const text = yield* Effect.try({
        try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes),
        catch: () => refuse(`${name} is not UTF-8 text, so it cannot be edited`)
      })
      return { text, stats }
    })
  )
