/** The tool `apply_patch`: changes several files, all or none. Spec: TO-14, TO-71..TO-77, TO-111..TO-117. */
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { isNonEmptyReadonlyArray } from "effect/Array"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { Permission } from "@daybook/core/permission/Permission"
import { diffOf, type FileChange as PermissionFileChange } from "@daybook/core/permission/PermissionSubject"
import { quotedPath } from "@daybook/core/support/TextFile"
import { define } from "@daybook/core/tool/ToolDefinition"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { spellings } from "@daybook/core/workspace/FileFailure"
import { commit, type FileOperations, nodeFileOperations } from "./patch/PatchCommit.ts"
import { type Hunk, parsePatch } from "./patch/Patch.ts"
import { planSteps, resolveChanges, type ResolvedChange } from "./patch/PatchPlan.ts"

const description = `Changes files of the working directory with one patch: all of it is applied, or nothing. For example:

*** Begin Patch
*** Add File: docs/new.md
+First line
*** Update File: src/greet.ts
@@ export const greet = () => {
   const name = "you"
-  return "Hi " + name
+  return "Hello " + name
*** Update File: src/old.ts
*** Move to: src/new.ts
*** Delete File: src/unused.ts
*** End Patch

Each line of a new file begins with "+". An update has hunks, each after a line "@@"; in a hunk, lines that begin with a \
space stay, "-" go and "+" come. Give about three lines around a change exactly as the file has them, so that it fits in \
one place; if it would fit in more, put an earlier line, such as the function's first, after "@@ ". Hunks come in the \
file's order. "*** End of File" after a hunk's last line means that the file ends there; "\\ No newline at end of file" \
after a line means that no line break follows it. Name each file once, by its path relative to the working directory.`

const ApplyPatchTool = Tool.make("apply_patch", {
  description,
  parameters: {
    patch: Schema.String.annotations({ description: `The patch, from "*** Begin Patch" to "*** End Patch"` })
  },
  success: Schema.Struct({
    files: Schema.Array(
      Schema.Struct({
        path: Schema.String,
        change: Schema.Literal("add", "update", "delete", "move"),
        movedTo: Schema.optionalWith(Schema.String, { exact: true })
      })
    ),
    /** The lines of the patch where hunks begin whose lines are only near those of their file. */
    near: Schema.optionalWith(Schema.Array(Schema.Int), { exact: true }),
    /** The tool's own files that could not be removed afterwards. */
    leftBehind: Schema.optionalWith(Schema.Array(Schema.String), { exact: true })
  })
})

type ChangedFile = (typeof ApplyPatchTool.successSchema.Type)["files"][number]

const changedFile = ({ change, destination, target }: ResolvedChange): ChangedFile => {
  const path = target.resource
  if (destination !== undefined) return { path, change: "move", movedTo: destination.resource }
  return { path, change: change._tag === "Add" ? "add" : change._tag === "Delete" ? "delete" : "update" }
}

const letters = { add: "A", update: "M", delete: "D", move: "R" } as const

const summary = ({ change, movedTo, path }: ChangedFile) =>
  `${letters[change]} ${quotedPath(path)}${movedTo === undefined ? "" : ` -> ${quotedPath(movedTo)}`}`

const hunkText = ({ anchors, lines }: Hunk): string =>
  [`@@ ${anchors.join(" ")}`.trimEnd(), ...lines.map(({ kind, text }) => `${signs[kind]}${text}`)].join("\n")

const signs = { keep: " ", remove: "-", add: "+" } as const

/** A change as the question shows it. A hunk's position is known only after a read, which needs permission. */
const shownChange = (resolved: ResolvedChange): PermissionFileChange => {
  const { change } = resolved
  const { movedTo, path } = changedFile(resolved)
  const moved = movedTo === undefined ? {} : { movedTo }
  switch (change._tag) {
    case "Add":
      return { path, change: "create", diff: diffOf("", change.content) }
    case "Delete":
      return { path, change: "delete", diff: "" }
    case "Update":
      return {
        path,
        change: movedTo === undefined ? "edit" : "move",
        ...moved,
        diff: change.hunks.map(hunkText).join("\n")
      }
  }
}

const nearNote = (near: ReadonlyArray<number>): string =>
  `Near match: the hunks at lines ${near.join(", ")} of the patch differ from their files in blanks, quotes, dashes or line ends; ` +
  "the lines of the files stay as they are."

const title = (files: ReadonlyArray<ChangedFile>) => {
  const shown = files.slice(0, 5).map(summary).join(", ")
  return `Patch ${shown}${files.length > 5 ? ` and ${files.length - 5} more` : ""}`
}

/** `apply_patch` in the current Location, with one `edit` permission for all its files. */
export const makeApplyPatch = Effect.fnUntraced(function* (io: FileOperations = nodeFileOperations) {
  const files = yield* LocationFiles
  const permission = yield* Permission

  /** Holds the locks of all files, acquired in a fixed order so that two patches never deadlock. */
  const exclusively = <A, E, R>(changes: ReadonlyArray<ResolvedChange>, change: Effect.Effect<A, E, R>) =>
    changes
      .flatMap(({ destination, target }) =>
        destination === undefined ? [target.real] : [target.real, destination.real]
      )
      .toSorted()
      .reduceRight((inner, real) => files.exclusively(real)(inner), change)

  return define(ApplyPatchTool, {
    permission: "edit",
    handler: Effect.fn("Tool.apply_patch")(function* ({ patch }, call) {
      const parsed = yield* Effect.mapError(
        parsePatch(patch),
        ({ message }) => new ToolFailure({ type: "patch.invalid", message: `${message}. No file was changed.` })
      )
      const changes = yield* resolveChanges(files, parsed)
      const changed = changes.map(changedFile)
      const resources = changed.flatMap(({ movedTo, path }) => (movedTo === undefined ? [path] : [path, movedTo]))
      if (!isNonEmptyReadonlyArray(resources)) return yield* Effect.dieMessage("a patch changes at least one file")
      const targets = changes.flatMap(({ destination, target }) =>
        destination === undefined ? [target] : [target, destination]
      )
      yield* permission.authorize({
        ...call,
        tool: "apply_patch",
        permission: "edit",
        subject: Effect.succeed({ type: "change", files: changes.map(shownChange) }),
        resources,
        spelled: spellings(targets),
        title: title(changed)
      })
      const { left, near } = yield* exclusively(
        changes,
        Effect.flatMap(planSteps(files, changes), ({ near, steps }) =>
          Effect.map(commit(steps, { io, hold: files.hold }), (left) => ({ left, near }))
        )
      )
      return {
        files: changed,
        ...(near.length === 0 ? {} : { near }),
        ...(left.length === 0 ? {} : { leftBehind: left })
      }
    }),
    render: (result) => ({
      structured: result,
      content: [
        {
          type: "text",
          text: [
            "Applied the patch:",
            ...result.files.map(summary),
            ...(result.near === undefined ? [] : [nearNote(result.near)]),
            ...(result.leftBehind ?? []).map((name) => `Could not be removed afterwards: ${quotedPath(name)}`)
          ].join("\n")
        }
      ]
    })
  })
})
