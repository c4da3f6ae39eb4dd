/**
 * Checks the text of a working directory before any file access: absolute, without `..`, of bounded length. Pure;
 * `Cwd.ts` resolves it. Spec: SO-40, SO-41 in specs/socket.md (DC-1).
 */

/** The maximum length of a path and of a name, in UTF-8 bytes, as file systems allow. */
export const maxCwdBytes = 4095
export const maxSegmentBytes = 255

/** Control characters are refused: the file `cwd` of a session is one line. */
const control = /\p{Cc}/u
const loneSurrogate = /\p{Surrogate}/u

const bytes = (text: string): number => Buffer.byteLength(text, "utf8")

/** The names in a path; `//`, `/./` and a trailing `/` add none. */
export const segmentsOf = (cwd: string): ReadonlyArray<string> =>
  cwd.split("/").filter((segment) => segment !== "" && segment !== ".")

/** Why the text is not a valid working directory, as the end of a sentence; undefined if it is. */
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
