/** The tool `write`: creates or replaces a whole file. Spec: TO-51..TO-53, TO-56. */
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { Permission } from "@daybook/core/permission/Permission"
import { diffOf } from "@daybook/core/permission/PermissionSubject"
import { define } from "@daybook/core/tool/ToolDefinition"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { spellings, type WritableTarget } from "@daybook/core/workspace/Target"
import { confirm, writeAtomically } from "./AtomicWrite.ts"
import { isMarked, refuseRedacted } from "./RedactedText.ts"
import { readWholeText } from "./WholeText.ts"

const WriteTool = Tool.make("write", {
  description:
    "Creates a file in the working directory, or replaces it completely; missing folders are created. To change a part " +
    "of a file, use edit.",
  parameters: {
    path: Schema.NonEmptyString.annotations({ description: "Path relative to the working directory" }),
    content: Schema.String.annotations({ description: "The whole new content" })
  },
  success: Schema.Struct({ path: Schema.String, bytes: Schema.Int, created: Schema.Boolean })
})

/** The file's text; empty if it does not exist or cannot be read as text. */
const textBefore = (files: LocationFiles["Type"], target: WritableTarget): Effect.Effect<string> =>
  target.stats === undefined
    ? Effect.succeed("")
    : Effect.orElseSucceed(
        Effect.map(readWholeText(files, target), ({ text }) => text),
        () => ""
      )

/** The change as the question shows it; a file that is not text is shown as replaced completely. */
const shownChange = (files: LocationFiles["Type"], target: WritableTarget, content: string) =>
  Effect.map(textBefore(files, target), (before) => ({
    type: "change" as const,
    files: [
      {
        path: target.resource,
        change: target.stats === undefined ? ("create" as const) : ("replace" as const),
        diff: diffOf(before, content)
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
          if (isMarked(content)) {
            yield* refuseRedacted(target.resource, yield* textBefore(files, target), content)
          }
          yield* writeAtomically(files, target, content)
          return { path: target.resource, bytes, created: target.stats === undefined }
        })
      )
    }),
    render: (result) => ({
      structured: result,
      content: [
        { type: "text", text: `${result.created ? "Created" : "Replaced"} ${result.path}: ${result.bytes} bytes.` }
      ]
    })
  })
})
