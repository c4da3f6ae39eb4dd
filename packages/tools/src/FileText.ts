/** Reads the whole text of a file before a change, and replaces the file after it. Spec: TO-51..TO-56, TO-540. */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { Effect, Option } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { tryFile, type Target, type WritableTarget } from "@daybook/core/workspace/FileFailure"
import type { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import {
  decodeText,
  encodeText,
  encodingNames,
  missingIn,
  type TextEncoding
} from "@daybook/core/workspace/TextEncoding"
import { maximumTextBytes } from "@daybook/core/workspace/TextPage"
import { mark } from "@daybook/log/support/Redaction"

// Reads the complete text of a file before a change, and encodes it after.

export const refuse = (message: string) => new ToolFailure({ type: "edit.refused", message })

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

// Refuses to write back a text that was shown redacted: the mark would replace the secret in the file.

const marksIn = (text: string): number => text.split(mark).length - 1

/** Whether the text contains the mark at all. */
export const isMarked = (text: string): boolean => text.includes(mark)

/** Fails if the new text of a file has more marks than the old one. `name` is the file as the model knows it. */
export const refuseRedacted = (name: string, before: string, after: string): Effect.Effect<void, ToolFailure> =>
  marksIn(after) <= marksIn(before)
    ? Effect.void
    : new ToolFailure({
        type: "edit.refused",
        message:
          `${JSON.stringify(name)} would contain ${mark} where it has none: the mark replaces a secret in what was ` +
          `shown. Leave the text around the secret unchanged. Nothing was changed.`
      })

// Replaces a file's content atomically, and keeps the file's mode.

/** Resolves the target again after the question; fails if its path now leads elsewhere. */
export const confirm = Effect.fnUntraced(function* (files: LocationFiles["Type"], allowed: WritableTarget) {
  const now = yield* files.resolveWritable(allowed.resource)
  return now.real === allowed.real
    ? now
    : yield* new ToolFailure({
        type: "path.outside",
        message: `${JSON.stringify(allowed.resource)} was replaced by a symbolic link meanwhile; nothing was written`
      })
})

export const writeAtomically = Effect.fn("AtomicWrite.write")(function* (
  files: LocationFiles["Type"],
  target: WritableTarget,
  content: Uint8Array
) {
  const name = target.resource
  const at = yield* files.hold(path.dirname(target.real), name)
  const temporary = at(`.${randomUUID()}.tmp`)
  yield* Effect.acquireUseRelease(
    tryFile("write", name, () => fs.open(temporary, "wx", 0o666)),
    (handle) =>
      tryFile("write", name, async () => {
        await handle.writeFile(content)
        if (target.stats !== undefined) await handle.chmod(target.stats.mode & 0o7777)
        await handle.sync()
        await fs.rename(temporary, at(path.basename(target.real)))
      }),
    (handle) =>
      Effect.promise(async () => {
        await handle.close()
        // After the rename there is nothing to remove.
        await fs.rm(temporary, { force: true })
      })
  )
}, Effect.scoped)
