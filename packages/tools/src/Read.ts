/** The tool `read`: a page of a text file, a binary file as base64, a folder's children. Spec: TO-13, TO-31..TO-36. */
import * as path from "node:path"
import * as Tool from "@effect/ai/Tool"
import { Effect, Option, Schema } from "effect"
import { InstructionDiscovery } from "@daybook/core/context/InstructionDiscovery"
import { literal } from "@daybook/core/domain/Rule"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import type { ToolOutput } from "@daybook/core/domain/ToolOutput"
import { Permission } from "@daybook/core/permission/Permission"
import { pictureFormat } from "@daybook/core/picture/PictureFormat"
import { sourceBytes } from "@daybook/core/picture/Pictures"
import { mediaMime } from "@daybook/core/prompt/FilePart"
import { define } from "@daybook/core/tool/ToolDefinition"
import { type OpenFile, spellings, type Target, tryFile } from "@daybook/core/workspace/FileFailure"
import { directoryContent, DirectoryResult, listDirectory, note, pastEnd } from "@daybook/core/workspace/FolderPage"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { type DecodedText, encodingNames, type TextEncoding } from "@daybook/core/workspace/TextEncoding"
import {
  looksLikeText,
  pageLimits,
  pageOf,
  readBounded,
  readEncoded,
  readPage,
  type TextPage
} from "@daybook/core/workspace/TextPage"
import { outputLimits } from "@daybook/core/workspace/ToolOutputStore"
import { optional } from "@daybook/log/support/Optional"

const position = Schema.Int.pipe(Schema.positive())
const TextResult = Schema.Struct({
  type: Schema.Literal("text"),
  path: Schema.String,
  offset: position,
  lines: Schema.Int,
  next: optional(position),
  notices: Schema.Array(Schema.String),
  text: Schema.String
})

const BinaryResult = Schema.Struct({
  type: Schema.Literal("binary"),
  path: Schema.String,
  mime: Schema.String,
  bytes: Schema.Int,
  base64: Schema.String
})

const ReadTool = Tool.make("read", {
  description:
    `Reads a file or lists a folder of the working directory. Text comes in pages of at most ${pageLimits.lines} lines; ` +
    "continue with the offset that the result names. Other files come complete. Folders list their direct children.",
  parameters: {
    path: Schema.NonEmptyString.annotations({
      description: `Path relative to the working directory; "." is the directory itself. In a reference: "name:path"`
    }),
    offset: optional(position).annotations({ description: "First line or entry to show, counted from 1" }),
    limit: optional(Schema.Int.pipe(Schema.between(1, pageLimits.lines))).annotations({
      description: "How many lines or entries to show"
    })
  },
  success: Schema.Union(TextResult, BinaryResult, DirectoryResult)
})
type Result = typeof ReadTool.successSchema.Type

const mimes: Readonly<Record<string, string>> = {
  ".zip": "application/zip",
  ".gz": "application/gzip",
  ".mp3": "audio/mpeg",
  ".wav": "audio/wav",
  ".mp4": "video/mp4"
}

const sampleBytes = 8 * 1024

const readText = Effect.fnUntraced(function* (
  target: Target,
  { handle }: OpenFile,
  head: Uint8Array,
  offset: number,
  limit: number
) {
  const page = yield* readPage(handle, target.resource, offset, limit)
  const other = page.replaced ? yield* readEncoded(handle, target.resource, head) : undefined
  return yield* other === undefined ? shownPage(target, page, offset) : shownOther(target, other, offset, limit)
})

/** A page of a text in another encoding. */
const shownOther = (target: Target, { encoding, text }: DecodedText, offset: number, limit: number) =>
  shownPage(target, pageOf(text, offset, limit), offset, encoding)

const shownPage = Effect.fnUntraced(function* (
  target: Target,
  page: TextPage,
  offset: number,
  encoding: TextEncoding = "utf-8"
) {
  if (page.lines === 0 && offset > Math.max(page.seen, 1)) {
    return yield* pastEnd(target, "lines", page.seen, offset)
  }
  const notices: Array<string> = []
  if (page.lines === 0) notices.push("The file is empty.")
  if (page.clipped > 0) notices.push(`${page.clipped} lines are longer than ${pageLimits.lineBytes} bytes and cut.`)
  if (encoding !== "utf-8") notices.push(`The file is ${encodingNames[encoding]}; changes keep that encoding.`)
  if (page.replaced) notices.push("Bytes that are not UTF-8 are shown as U+FFFD.")
  if (page.next !== undefined) {
    notices.push(`Lines ${offset} to ${page.next - 1}; there are more: continue with offset ${page.next}.`)
  }
  return TextResult.make({
    type: "text",
    path: target.resource,
    offset,
    lines: page.lines,
    ...(page.next === undefined ? {} : { next: page.next }),
    notices,
    text: page.text
  })
})

const readBinary = Effect.fnUntraced(function* (target: Target, { handle, stats }: OpenFile, sample: Uint8Array) {
  const limit = pictureFormat(sample) === undefined ? outputLimits.mediaBytes : sourceBytes
  const tooLarge = new ToolFailure({
    type: "file.tooLarge",
    message:
      `${JSON.stringify(target.resource)} is not text and has ${stats.size} bytes; ` +
      `at most ${limit} bytes of such a file can be read`
  })
  const content = yield* readBounded(handle, target.resource, limit)
  if (content === undefined) return yield* tooLarge
  return BinaryResult.make({
    type: "binary",
    path: target.resource,
    mime: mediaMime(content) ?? mimes[path.extname(target.real).toLowerCase()] ?? "application/octet-stream",
    bytes: content.length,
    base64: content.toString("base64")
  })
})

const render = (result: Result): ToolOutput => {
  switch (result.type) {
    case "text": {
      const { notices, text, ...structured } = result
      return { structured, content: [...(text === "" ? [] : [{ type: "text" as const, text }]), ...note(notices)] }
    }
    case "binary": {
      const { base64, ...structured } = result
      const uri = `data:${result.mime};base64,${base64}`
      return {
        structured,
        content: [{ type: "file", uri, mime: result.mime, name: path.posix.basename(result.path) }]
      }
    }
    case "directory": {
      const { entries: _, ...structured } = result
      return { structured, content: directoryContent(result) }
    }
  }
}

/** `read` in the current Location. */
export const makeRead = Effect.gen(function* () {
  const files = yield* LocationFiles
  const permission = yield* Permission
  // Without instruction discovery, reads are not reported.
  const discovery = yield* Effect.serviceOption(InstructionDiscovery)
  return define(ReadTool, {
    readOnly: true,
    render,
    handler: Effect.fn("Tool.read")(function* ({ limit = pageLimits.lines, offset = 1, path: name }, call) {
      const target = yield* files.resolve(call.sessionID, name)
      yield* permission.authorize({
        ...call,
        permission: "read",
        subject: Effect.succeed({ type: "read", path: target.resource }),
        resources: [target.resource],
        spelled: spellings([target]),
        title: `Read ${target.resource}`,
        always: [literal(target.resource)]
      })
      const result = yield* Effect.scoped(
        Effect.gen(function* () {
          const file = yield* files.open(target)
          if (file.stats.isDirectory()) {
            return yield* listDirectory(target, files.recheck(target.real, target.root), offset, limit)
          }
          const sample = Buffer.allocUnsafe(sampleBytes)
          const { bytesRead } = yield* tryFile("read", target.resource, () =>
            file.handle.read(sample, 0, sampleBytes, 0)
          )
          const head = sample.subarray(0, bytesRead)
          // A document without compressed parts looks like text.
          if (mediaMime(head) === "application/pdf") return yield* readBinary(target, file, head)
          if (looksLikeText(head)) return yield* readText(target, file, head, offset, limit)
          const other = yield* readEncoded(file.handle, target.resource, head)
          return other === undefined
            ? yield* readBinary(target, file, head)
            : yield* shownOther(target, other, offset, limit)
        })
      )
      if (Option.isSome(discovery) && result.type !== "directory") {
        yield* discovery.value.discovered(call.sessionID, target.real)
      }
      return result
    })
  })
})
