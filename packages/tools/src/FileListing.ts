/**
 * Lists the files of a folder that match a glob. Excludes `.git` and what `.gitignore` names, follows no symbolic link,
 * and is bounded in time and number. Spec: TO-41..TO-43.
 */
import { Effect } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { compile, isCostly } from "@daybook/core/glob/Glob"
import { walk } from "@daybook/core/glob/Walk"
import { maxGlobAlternatives, maxGlobLength, maxGlobStars } from "@daybook/core/support/Limits"
import { foldersBetween, projectRoot } from "@daybook/core/trust/ProjectTrust"

/** At most this many files are listed. */
export const maximumFiles = 20_000
const timeLimit = "20 seconds"

export interface FileListing {
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
