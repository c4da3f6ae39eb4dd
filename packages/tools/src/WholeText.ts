/** Reads the complete text of a file before a change, and encodes it after. Bounded. Spec: TO-55, TO-540. */
import { Effect, Option } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { type Target, tryFile } from "@daybook/core/workspace/FileFailure"
import type { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { maximumTextBytes } from "@daybook/core/workspace/TextPage"
import {
  decodeText,
  encodeText,
  encodingNames,
  missingIn,
  type TextEncoding
} from "@daybook/core/workspace/TextEncoding"

const refuse = (message: string) => new ToolFailure({ type: "edit.refused", message })

/** Whether every line of a text ends in CR LF. */
export const isCrlf = (content: string) => content.includes("\r\n") && !/(^|[^\r])\n/.test(content)

/** A file's text, including a byte order mark, its encoding and its stats. Fails if it is no text. */
export const readWholeText = (files: LocationFiles["Type"], target: Target) =>
  Effect.scoped(
    Effect.gen(function* () {
      const name = JSON.stringify(target.resource)
      const { handle, stats } = yield* files.open(target)
      if (stats.size > maximumTextBytes) {
        return yield* refuse(`${name} has ${stats.size} bytes; at most ${maximumTextBytes} can be edited`)
      }
      const bytes = yield* tryFile("read", target.resource, () => handle.readFile())
      const decoded = decodeText(bytes)
      if (decoded === undefined) {
        return yield* refuse(`${name} is not text in UTF-8, UTF-16 or Latin-1, so it cannot be edited`)
      }
      return { ...decoded, stats }
    })
  )

/** The bytes of a file's new text in its encoding. Fails if the encoding does not have one of the characters. */
export const encodeWholeText = (
  resource: string,
  encoding: TextEncoding,
  text: string
): Effect.Effect<Uint8Array, ToolFailure> =>
  Option.match(encodeText(encoding, text), {
    onNone: () =>
      refuse(
        `${JSON.stringify(resource)} is ${encodingNames[encoding]}, which does not have the character ` +
          `${JSON.stringify(missingIn(encoding, text))}; use another one, or convert the file to UTF-8 first. Nothing was changed.`
      ),
    onSome: Effect.succeed
  })
