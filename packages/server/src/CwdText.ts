/**
 * What a working directory has to look like before any file is asked for: absolute, without `..`, of bounded length.
 * Pure; where it leads to is `Cwd.ts`. Spec: SO-40, SO-41 in specs/socket.md (DC-1).
 */

/** The longest path and the longest name in it, in UTF-8 bytes: what file systems take. */
export const maxCwdBytes = 4095
export const maxSegmentBytes = 255

/** The file `cwd` of a session is one line of text. */
const control = /\p{Cc}/u
const loneSurrogate = /\p{Surrogate}/u

const bytes = (text: string): number => Buffer.byteLength(text, "utf8")

/** The names that a path goes through: `//`, `/./` and a last `/` add none. */
export const segmentsOf = (cwd: string): ReadonlyArray<string> =>
  cwd.split("/").filter((segment) => segment !== "" && segment !== ".")

/** Why a text is no working directory, as the end of a sentence; undefined when it may be one. */
export const cwdProblem = (cwd: string): string | undefined => {
  if (cwd === "") return "it is empty"
  if (bytes(cwd) > maxCwdBytes) return `it is longer than ${maxCwdBytes} bytes`
  if (control.test(cwd)) return "it holds a control character, such as NUL or a line break"
  if (loneSurrogate.test(cwd)) return "it is not well-formed Unicode"
  if (!cwd.startsWith("/")) return "it is not absolute"
  const segments = segmentsOf(cwd)
  if (segments.includes("..")) return 'it holds a ".."'
  if (segments.some((segment) => bytes(segment) > maxSegmentBytes)) {
    return `a name in it is longer than ${maxSegmentBytes} bytes`
  }
  return undefined
}
