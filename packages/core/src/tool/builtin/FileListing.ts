/**
 * The files of a folder that match a glob: what `.gitignore` names and `.git` are left out, symbolic links are not
 * followed, and both time and number are bounded. Spec: TO-41..TO-43.
 */
import { Effect } from "effect"
import { globbyStream } from "globby"
import { ToolFailure } from "../ToolDefinition.ts"

/** More than this is not gathered. */
export const maximumFiles = 20_000
const timeLimit = "20 seconds"
/** A glob becomes a regular expression whose cost grows steeply with its wildcards. */
const maximumWildcards = 20
const maximumPattern = 1_000

export interface FileListing {
  /** Relative to the folder, with `/`, sorted by code unit. */
  readonly files: ReadonlyArray<string>
  /** Whether there are more than were gathered. */
  readonly more: boolean
}

const invalid = (pattern: string, why: string) =>
  new ToolFailure({ type: "tool.input", message: `the glob ${JSON.stringify(pattern.slice(0, 200))} ${why}` })

/** Why a glob is refused; undefined when it is not. */
const fault = (pattern: string): ToolFailure | undefined => {
  if (pattern.length > maximumPattern) return invalid(pattern, `is longer than ${maximumPattern} characters`)
  if (/^[A-Za-z]:/.test(pattern)) return invalid(pattern, "is absolute; make it relative")
  if (pattern.split(/[/,{}]/).includes("..")) return invalid(pattern, `leads upwards; use the parameter "path" instead`)
  if (pattern.startsWith("!")) return invalid(pattern, "only excludes; say what to look for")
  if ((pattern.match(/[*?[]/g) ?? []).length > maximumWildcards) {
    return invalid(pattern, `has more than ${maximumWildcards} wildcards`)
  }
  return undefined
}

/** Refuses a glob that leads upwards, only excludes, or is too costly. */
export const checkGlob = (pattern: string): Effect.Effect<void, ToolFailure> =>
  Effect.suspend(() => fault(pattern) ?? Effect.void)

const gather = async (folder: string, pattern: string, includeIgnored: boolean, signal: AbortSignal) => {
  const stream = globbyStream(pattern, {
    cwd: folder,
    gitignore: !includeIgnored,
    ignore: includeIgnored ? ["**/.git", "**/.git/**"] : ["**/.git", "**/.git/**", "**/node_modules/**"],
    dot: true,
    extglob: false,
    expandDirectories: false,
    followSymbolicLinks: false,
    suppressErrors: true,
    unique: true
  })
  const files: Array<string> = []
  // Leaving the loop destroys the stream, and with it the walk.
  for await (const file of stream) {
    if (signal.aborted || files.length === maximumFiles) return { files, more: true }
    files.push(file)
  }
  return { files, more: false }
}

/** Lists files under a canonical folder. The glob is relative, and one that `checkGlob` lets pass. */
export const listFiles = Effect.fn("FileListing.list")(function* (options: {
  readonly folder: string
  readonly pattern: string
  readonly includeIgnored: boolean
}): Effect.fn.Return<FileListing, ToolFailure> {
  const { folder, includeIgnored, pattern } = options
  const found = yield* Effect.tryPromise({
    try: (signal) => gather(folder, pattern, includeIgnored, signal),
    catch: () => invalid(pattern, "cannot be understood")
  }).pipe(
    Effect.timeoutFail({
      duration: timeLimit,
      onTimeout: () =>
        new ToolFailure({
          type: "tool.timeout",
          message: `listing files took more than ${timeLimit}; search in a folder further down with "path"`
        })
    })
  )
  return { files: found.files.sort(), more: found.more }
})
