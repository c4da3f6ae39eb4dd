/** Says why a program could not be started, in words: the system names the program even where its folder is missing. Spec: TO-545. */
import { accessSync, constants, statSync } from "node:fs"

const codeOf = (cause: unknown): unknown => (cause instanceof Error && "code" in cause ? cause.code : undefined)

/** Why no program can start in a working folder; undefined if one can. */
const folderProblem = (folder: string): string | undefined => {
  try {
    if (!statSync(folder).isDirectory()) return "is not a folder"
    accessSync(folder, constants.X_OK)
    return undefined
  } catch (cause) {
    return codeOf(cause) === "ENOENT" ? "does not exist any more" : `cannot be entered (${String(codeOf(cause))})`
  }
}

/** The reason as part of a sentence. `length`: the bytes of the command, which is passed as an argument. */
export const whyNotStarted = (cause: unknown, cwd: string | undefined, length: number): string => {
  const problem = cwd === undefined ? undefined : folderProblem(cwd)
  if (problem !== undefined) return `the working folder ${JSON.stringify(cwd)} ${problem}`
  switch (codeOf(cause)) {
    case "E2BIG":
      return `it has ${length} bytes, and the system passes fewer to a program; write it to a file, and run that`
    case "EAGAIN":
      return "the system has too many processes for this user; end some, and try again"
    case "EMFILE":
    case "ENFILE":
      return "too many files are open; try again"
    default:
      return cause instanceof Error ? cause.message : "unknown fault"
  }
}
