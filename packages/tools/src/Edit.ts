/** The tool `edit`: replaces an exact text in a file. Spec: TO-51..TO-56. */
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { Permission } from "@daybook/core/permission/Permission"
import { diffOf, signed } from "@daybook/core/permission/PermissionSubject"
import { define } from "@daybook/core/tool/ToolDefinition"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { spellings, type Target, type WritableTarget } from "@daybook/core/workspace/FileFailure"
import { refuse, confirm, encodeWholeText, isCrlf, readWholeText, refuseRedacted, writeAtomically } from "./FileText.ts"
import { nearPlace, replacementFor } from "./NearText.ts"

const EditTool = Tool.make("edit", {
  description:
    "Replaces a text in a file of the working directory. The old text has to be exactly as in the file, spaces and line " +
    "breaks included, and to occur once, unless replaceAll is true.",
  parameters: {
    path: Schema.NonEmptyString.annotations({ description: "Path relative to the working directory" }),
    oldText: Schema.NonEmptyString.annotations({ description: "The text to replace" }),
    newText: Schema.String.annotations({ description: "The replacement; may be empty" }),
    replaceAll: Schema.optionalWith(Schema.Boolean, { exact: true }).annotations({
      description: "Whether to replace every occurrence"
    })
  },
  success: Schema.Struct({
    path: Schema.String,
    replacements: Schema.Int,
    /** The replaced text, if it was only near the given one. */
    near: Schema.optionalWith(Schema.Struct({ line: Schema.Int, text: Schema.String }), { exact: true })
  })
})

/** Says that the file has other characters than the call. */
const nearNote = (near: Replaced["near"]): string =>
  near === undefined
    ? ""
    : ` It was a near match: from line ${near.line} on the file had other blanks, quotes, dashes or line ends than ` +
      `"oldText":\n${near.text.length <= 1_000 ? near.text : `${near.text.slice(0, 1_000)}...`}`

const toCrlf = (text: string) => text.replaceAll(/\r?\n/g, "\r\n")

export interface Replaced {
  readonly content: string
  readonly replacements: number
  readonly near?: { readonly line: number; readonly text: string }
  /** At how many places the text is near, if that is not one. */
  readonly nearPlaces?: number
}

/**
 * Replaces the text and counts the replacements. In a file whose every line ends in CR LF, the given texts are converted to
 * CR LF first. A text that does not occur is replaced at the only place that is near it, if there is one.
 */
export const replaceText = (content: string, oldText: string, newText: string): Replaced => {
  const lines = isCrlf(content) ? toCrlf : (text: string) => text
  const parts = content.split(lines(oldText))
  if (parts.length > 1) return { content: parts.join(lines(newText)), replacements: parts.length - 1 }
  const place = nearPlace(content, oldText)
  if (!("start" in place)) return { content, replacements: 0, nearPlaces: place.found }
  const found = content.slice(place.start, place.end)
  return {
    content:
      content.slice(0, place.start) + replacementFor(found, oldText, newText, place.near) + content.slice(place.end),
    replacements: 1,
    near: { line: content.slice(0, place.start).split("\n").length, text: found }
  }
}

/** Why nothing was replaced. */
const notFound = (resource: string, { nearPlaces = 0 }: Replaced): string =>
  nearPlaces === 0
    ? `"oldText" does not occur in ${JSON.stringify(resource)} (0 times); read the file again`
    : `"oldText" does not occur exactly in ${JSON.stringify(resource)}, and ${nearPlaces} places are near it: they differ in ` +
      "blanks, quotes, dashes or line ends; read the file again and give more of the text around it"

const missing = (target: Target) =>
  new ToolFailure({
    type: "file.missing",
    message: `${JSON.stringify(target.resource)} does not exist; create it with write`
  })

/** The change as the question shows it: in its place in the file, or as the call gives it. */
const shownChange = (
  files: LocationFiles["Type"],
  target: WritableTarget,
  change: (before: string) => string,
  [oldText, newText]: readonly [string, string]
) =>
  readWholeText(files, target).pipe(
    Effect.map(({ text }) => diffOf(text, change(text))),
    Effect.orElseSucceed(() => ""),
    Effect.map((inFile) => ({
      type: "change" as const,
      files: [
        {
          path: target.resource,
          change: "edit" as const,
          diff: inFile === "" ? [...signed("-", oldText), ...signed("+", newText)].join("\n") : inFile
        }
      ]
    }))
  )

/** `edit` in the current Location. */
export const makeEdit = Effect.gen(function* () {
  const files = yield* LocationFiles
  const permission = yield* Permission
  return define(EditTool, {
    handler: Effect.fn("Tool.edit")(function* ({ newText, oldText, path: name, replaceAll = false }, call) {
      if (oldText === newText) return yield* refuse(`"oldText" and "newText" are the same; nothing was changed`)
      const asked = yield* files.resolveWritable(name)
      if (asked.stats === undefined) return yield* missing(asked)
      yield* permission.authorize({
        ...call,
        tool: "edit",
        permission: "edit",
        subject: shownChange(files, asked, (before) => replaceText(before, oldText, newText).content, [
          oldText,
          newText
        ]),
        resources: [asked.resource],
        spelled: spellings([asked]),
        title: `Edit ${asked.resource}`
      })
      return yield* files.exclusively(asked.real)(
        Effect.gen(function* () {
          const target = yield* confirm(files, asked)
          const { resource, stats } = target
          if (stats === undefined) return yield* missing(target)
          const { encoding, text: before } = yield* readWholeText(files, target)
          const after = replaceText(before, oldText, newText)
          if (after.replacements === 0) return yield* refuse(notFound(resource, after))
          if (after.replacements > 1 && !replaceAll) {
            return yield* refuse(
              `"oldText" occurs ${after.replacements} times in ${JSON.stringify(resource)}; give more of the text ` +
                `around it, or set "replaceAll"`
            )
          }
          yield* refuseRedacted(resource, before, after.content)
          yield* writeAtomically(files, target, yield* encodeWholeText(resource, encoding, after.content))
          return {
            path: resource,
            replacements: after.replacements,
            ...(after.near === undefined ? {} : { near: after.near })
          }
        })
      )
    }),
    render: (result) => ({
      structured: result,
      content: [
        { type: "text", text: `Edited ${result.path}: ${result.replacements} replaced.${nearNote(result.near)}` }
      ]
    })
  })
})
