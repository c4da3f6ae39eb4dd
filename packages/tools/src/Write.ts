/** The tool `write`: creates or replaces a whole file. Spec: TO-51..TO-53, TO-56, TO-540, TO-543. */
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { Permission } from "@daybook/core/permission/Permission"
import { diffOf } from "@daybook/core/permission/PermissionSubject"
import { define } from "@daybook/core/tool/ToolDefinition"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { spellings, type WritableTarget } from "@daybook/core/workspace/FileFailure"
import { byteOrderMark, type DecodedText, encodingNames } from "@daybook/core/workspace/TextEncoding"
import {
  confirm,
  encodeWholeText,
  isCrlf,
  isMarked,
  readWholeText,
  refuseRedacted,
  writeAtomically
} from "./FileText.ts"

const WriteTool = Tool.make("write", {
  description:
    "Creates a file in the working directory, or replaces it completely; missing folders are created. To change a part " +
    "of a file, use edit.",
  parameters: {
    path: Schema.NonEmptyString.annotations({ description: "Path relative to the working directory" }),
    content: Schema.String.annotations({ description: "The whole new content" })
  },
  success: Schema.Struct({
    path: Schema.String,
    bytes: Schema.Int,
    created: Schema.Boolean,
    /** What a replaced file keeps that the content does not have. */
    kept: Schema.optionalWith(Schema.Array(Schema.String), { exact: true })
  })
})

/** The file's text and encoding; an empty one if it does not exist or cannot be read as text. */
const textBefore = (files: LocationFiles["Type"], target: WritableTarget): Effect.Effect<DecodedText> =>
  target.stats === undefined ? Effect.succeed(noText) : Effect.orElseSucceed(readWholeText(files, target), () => noText)

const noText: DecodedText = { text: "", encoding: "utf-8" }

/** What a replaced file keeps, besides its encoding. */
const kept = { mark: "its byte order mark", crlf: "its line ends CR LF" } as const

/**
 * The content in the form of the file that it replaces: with its byte order mark, and with CR LF if all its lines end so and the
 * content has none. Returns also what was kept.
 */
const inFormOf = (before: string, content: string) => {
  const crlf = isCrlf(before) && !content.includes("\r\n") && content.includes("\n")
  const mark = before.startsWith(byteOrderMark) && !content.startsWith(byteOrderMark)
  return {
    text: (mark ? byteOrderMark : "") + (crlf ? content.replaceAll("\n", "\r\n") : content),
    kept: [...(mark ? [kept.mark] : []), ...(crlf ? [kept.crlf] : [])]
  }
}

/** The change as the question shows it; a file that is not text is shown as replaced completely. */
const shownChange = (files: LocationFiles["Type"], target: WritableTarget, content: string) =>
  Effect.map(textBefore(files, target), ({ text: before }) => ({
    type: "change" as const,
    files: [
      {
        path: target.resource,
        change: target.stats === undefined ? ("create" as const) : ("replace" as const),
        diff: diffOf(before, inFormOf(before, content).text)
      }
    ]
  }))

/** `write` in the current Location, with the permission `edit`. */
export const makeWrite = Effect.gen(function* () {
  const files = yield* LocationFiles
  const permission = yield* Permission
  return define(WriteTool, {
    permission: "edit",
    handler: Effect.fn("Tool.write")(function* ({ content, path: name }, call) {
      const asked = yield* files.resolveWritable(name)
      const bytes = Buffer.byteLength(content)
      yield* permission.authorize({
        ...call,
        tool: "write",
        permission: "edit",
        subject: shownChange(files, asked, content),
        resources: [asked.resource],
        spelled: spellings([asked]),
        title: `${asked.stats === undefined ? "Create" : "Replace"} ${asked.resource} (${bytes} bytes)`
      })
      return yield* files.exclusively(asked.real)(
        Effect.gen(function* () {
          const target = yield* confirm(files, asked)
          const { encoding, text: before } = yield* textBefore(files, target)
          if (isMarked(content)) yield* refuseRedacted(target.resource, before, content)
          const form = inFormOf(before, content)
          const written = yield* encodeWholeText(target.resource, encoding, form.text)
          yield* writeAtomically(files, target, written)
          const keeps = [...form.kept, ...(encoding === "utf-8" ? [] : [`its encoding, ${encodingNames[encoding]}`])]
          return {
            path: target.resource,
            bytes: written.length,
            created: target.stats === undefined,
            ...(keeps.length === 0 ? {} : { kept: keeps })
          }
        })
      )
    }),
    render: (result) => ({
      structured: result,
      content: [
        {
          type: "text",
          text:
            `${result.created ? "Created" : "Replaced"} ${result.path}: ${result.bytes} bytes.` +
            (result.kept === undefined ? "" : ` The file keeps ${result.kept.join(" and ")}.`)
        }
      ]
    })
  })
})
