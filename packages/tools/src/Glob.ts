/** The tool `glob`: finds files by name pattern. Spec: TO-41..TO-43. */
import * as path from "node:path"
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { compile, isCostly } from "@daybook/core/glob/Glob"
import { walk } from "@daybook/core/glob/Walk"
import { Permission } from "@daybook/core/permission/Permission"
import { maxGlobAlternatives, maxGlobLength, maxGlobStars } from "@daybook/core/support/Limits"
import { quotedPath } from "@daybook/core/support/TextFile"
import { define } from "@daybook/core/tool/ToolDefinition"
import { foldersBetween, projectRoot } from "@daybook/core/trust/ProjectTrust"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { linesInPage } from "@daybook/core/workspace/TextPage"

// Lists the files of a folder that match a glob, without `.git`, ignored files and links, within bounds.

/** At most this many files are listed. */
export const maximumFiles = 20_000
const timeLimit = "20 seconds"

interface FileListing {
  /** Relative to the folder, with `/`, sorted by code unit. */
  readonly files: ReadonlyArray<string>
  /** Whether there are more files. */
  readonly more: boolean
}

const invalid = (pattern: string, why: string) =>
  new ToolFailure({ type: "tool.input", message: `the glob ${JSON.stringify(pattern.slice(0, 200))} ${why}` })

const tooManyAlternatives = (pattern: string) =>
  invalid(pattern, `has braces that expand to more than ${maxGlobAlternatives} patterns`)

/** Why a glob is refused; undefined if it is valid. */
const fault = (pattern: string): ToolFailure | undefined => {
  if (pattern.length > maxGlobLength) return invalid(pattern, `is longer than ${maxGlobLength} characters`)
  if (/^[A-Za-z]:/.test(pattern)) return invalid(pattern, "is absolute; make it relative")
  if (pattern.split(/[/,{}]/).includes("..")) return invalid(pattern, `leads upwards; use the parameter "path" instead`)
  if (pattern.startsWith("!")) return invalid(pattern, "only excludes; say what to look for")
  if (isCostly(pattern)) return invalid(pattern, `has more than ${maxGlobStars} wildcards`)
  return compile(pattern) === undefined ? tooManyAlternatives(pattern) : undefined
}

/** Refuses a glob that leads upwards, only excludes, or is too expensive. */
export const checkGlob = (pattern: string): Effect.Effect<void, ToolFailure> =>
  Effect.suspend(() => fault(pattern) ?? Effect.void)

const git = new Set([".git"])
const gitAndModules = new Set([".git", "node_modules"])

/** Lists files below a canonical folder. The glob must be relative and accepted by `checkGlob`. */
export const listFiles = Effect.fn("FileListing.list")(function* (options: {
  readonly folder: string
  readonly pattern: string
  readonly includeIgnored: boolean
}): Effect.fn.Return<FileListing, ToolFailure> {
  const { folder, includeIgnored, pattern } = options
  const glob = compile(pattern)
  if (glob === undefined) return yield* tooManyAlternatives(pattern)
  const ignoring = includeIgnored ? [] : foldersBetween(yield* projectRoot(folder), folder)
  const skipped = includeIgnored ? git : gitAndModules
  const found = yield* Effect.promise((signal) =>
    walk({ folder, glob, signal, most: maximumFiles, skipped, ignoring })
  ).pipe(
    Effect.timeoutFail({
      duration: timeLimit,
      onTimeout: () =>
        new ToolFailure({
          type: "tool.timeout",
          message: `listing files took more than ${timeLimit}; search in a folder further down with "path"`
        })
    })
  )
  yield* Effect.forEach(found.warnings, (warning) => Effect.logWarning(warning), { discard: true })
  return { files: found.files.toSorted(), more: found.more }
})

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
      const names = found.files.slice(0, maximumShown).map((file) => path.posix.join(target.resource, file))
      const shown = names.slice(0, linesInPage(names.map(quotedPath)))
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
