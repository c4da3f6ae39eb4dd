/** The tool `glob`: finds files by name pattern. Spec: TO-41..TO-43. */
import * as path from "node:path"
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { Permission } from "@daybook/core/permission/Permission"
import { quotedPath } from "@daybook/core/support/TextFile"
import { define } from "@daybook/core/tool/ToolDefinition"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { pageLimits } from "@daybook/core/workspace/TextPage"
import { checkGlob, listFiles } from "./FileListing.ts"

const maximumShown = 1_000

const GlobTool = Tool.make("glob", {
  description:
    `Finds files by name, at most ${maximumShown}, sorted. "**" matches any folders, "*" any characters within ` +
    "one name. Skips files that .gitignore names.",
  parameters: {
    pattern: Schema.NonEmptyString.annotations({ description: `For example "src/**/*.ts"` }),
    path: Schema.optionalWith(Schema.NonEmptyString, { exact: true }).annotations({
      description: "Folder to search, relative to the working directory; by default the working directory"
    }),
    includeIgnored: Schema.optionalWith(Schema.Boolean, { exact: true }).annotations({
      description: "Whether to list files that .gitignore names too"
    })
  },
  success: Schema.Struct({
    path: Schema.String,
    count: Schema.Int,
    /** Whether more files match than are shown. */
    more: Schema.Boolean,
    files: Schema.Array(Schema.String)
  })
})

/** `glob` in the current Location. */
export const makeGlob = Effect.gen(function* () {
  const files = yield* LocationFiles
  const permission = yield* Permission
  return define(GlobTool, {
    readOnly: true,
    handler: Effect.fn("Tool.glob")(function* ({ includeIgnored = false, path: name = ".", pattern }, call) {
      yield* checkGlob(pattern)
      const target = yield* files.resolve(call.sessionID, name)
      const relative = yield* files.relativeGlob(target, pattern)
      yield* permission.authorize({
        ...call,
        permission: "glob",
        subject: Effect.succeed({ type: "read", path: target.resource, pattern: relative }),
        resources: [target.resource],
        title: `Find ${relative} in ${target.resource}`
      })
      const found = yield* listFiles({ folder: target.real, pattern: relative, includeIgnored })
      yield* files.recheck(target.real, target.root)
      const shown: Array<string> = []
      let bytes = 0
      for (const file of found.files.slice(0, maximumShown)) {
        const resource = path.posix.join(target.resource, file)
        bytes += Buffer.byteLength(quotedPath(resource)) + 1
        if (bytes > pageLimits.bytes) break
        shown.push(resource)
      }
      const more = found.more || shown.length < found.files.length
      return { path: target.resource, count: shown.length, more, files: shown }
    }),
    render: ({ files: names, ...structured }) => {
      const note = structured.more
        ? `[There are more; these are ${structured.count} of them. Narrow the pattern or the path.]`
        : structured.count === 0
          ? "[No file matches.]"
          : undefined
      const text = [...names.map(quotedPath), ...(note === undefined ? [] : [note])].join("\n")
      return { structured, content: [{ type: "text", text }] }
    }
  })
})
