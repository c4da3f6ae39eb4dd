/** Parses a patch into file changes, or reports an error with its line. Pure. Spec: TO-71, TO-113. */
import { Data, Either, Schema } from "effect"

/** Maximum size of a patch, in bytes of UTF-8. */
export const maximumPatchBytes = 1024 * 1024
const maximumPatchFiles = 100

/** One line of a hunk: kept, removed or added. */
type HunkLine = { readonly kind: "keep" | "remove" | "add"; readonly text: string }

/** Consecutive lines to find in a file and change. */
export interface Hunk {
  /** The line of the patch where it begins, from 1. */
  readonly line: number
  /** Lines of the file before the hunk, outermost first. */
  readonly anchors: ReadonlyArray<string>
  readonly lines: ReadonlyArray<HunkLine>
  readonly endOfFile: boolean
  /** Whether the changed file ends with a line break; undefined: as before. */
  readonly finalNewline: boolean | undefined
}

/** A patch's change of one file. `line` is its line in the patch. */
export type FileChange = Data.TaggedEnum<{
  Add: { readonly path: string; readonly line: number; readonly content: string }
  Update: {
    readonly path: string
    readonly line: number
    readonly movedTo: string | undefined
    readonly hunks: ReadonlyArray<Hunk>
  }
  Delete: { readonly path: string; readonly line: number }
}>
export const FileChange = Data.taggedEnum<FileChange>()

/** The text is not a patch. */
class PatchSyntaxError extends Schema.TaggedError<PatchSyntaxError>("@daybook/tools/PatchSyntaxError")(
  "PatchSyntaxError",
  { line: Schema.Int, problem: Schema.String }
) {
  override get message() {
    return `line ${this.line} of the patch: ${this.problem}`
  }
}

const begin = "*** Begin Patch"
const end = "*** End Patch"
const endOfFile = "*** End of File"
const header = /^\*\*\* (Add|Update|Delete) File:(.*)$/u
const move = /^\*\*\* Move to:(.*)$/u
const noNewline = /^\\ No newline at end of file\s*$/iu
/** What models wrap around a patch: a Markdown fence or a shell here-document. */
const wrapper = /^(?:(```)\w*|(?:apply_patch\s*)?<<-?\s*(['"]?)(\w+)\2)$/u
const lineNumbers = /^@@ -\d+(,\d+)? \+\d+(,\d+)? @@/u
const kinds: Readonly<Record<string, HunkLine["kind"]>> = { " ": "keep", "-": "remove", "+": "add" }

const quoted = (line: string) => JSON.stringify(line.length > 120 ? `${line.slice(0, 120)}...` : line)

const refuse = (line: number, problem: string): Either.Either<never, PatchSyntaxError> =>
  Either.left(new PatchSyntaxError({ line, problem }))

/** Reads lines in sequence. If every line ends in CR LF, the CR is removed. */
class Reader {
  readonly lines: ReadonlyArray<string>
  at = 0
  constructor(text: string) {
    const lines = text.split("\n")
    const crlf = lines.length > 1 && lines.every((line, index) => line.endsWith("\r") || index === lines.length - 1)
    this.lines = crlf ? lines.map((line) => line.replace(/\r$/u, "")) : lines
  }
  /** The number of the next line, from 1; after the end, that of the last line. */
  number() {
    return Math.min(this.at + 1, this.lines.length)
  }
  /** The next line; undefined after the last. */
  next() {
    return this.lines[this.at]
  }
  /** The next line, without trailing blanks, if it is a control line of the patch. */
  control() {
    return this.next()?.startsWith("***") === true ? this.next()?.trimEnd() : undefined
  }
  /** The next line if it is file content. */
  body() {
    return this.control() === undefined ? this.next() : undefined
  }
  skipBlank() {
    while (this.next()?.trim() === "") this.at++
  }
}

const pathOf = (reader: Reader, text: string | undefined) => {
  const path = (text ?? "").trim()
  return path === "" ? refuse(reader.number(), "a path is missing after the colon") : Either.right(path)
}

const parseAdd = (reader: Reader, path: string, line: number) =>
  Either.gen(function* () {
    const content: Array<string> = []
    let newline = true
    for (let text = reader.body(); text !== undefined; text = reader.body()) {
      if (text.startsWith("+") && newline) content.push(text.slice(1))
      else if (noNewline.test(text) && newline && content.length > 0) newline = false
      else {
        const from = reader.number()
        reader.skipBlank()
        if (reader.body() !== undefined) {
          if (!newline) return yield* refuse(from, "a line follows the line that is marked as the end of the file")
          return yield* refuse(from, `every line of a new file begins with "+"; this one is ${quoted(text)}`)
        }
        break
      }
      reader.at++
    }
    return FileChange.Add({
      path,
      line,
      content: content.length === 0 ? "" : content.join("\n") + (newline ? "\n" : "")
    })
  })

const parseAnchors = (reader: Reader) =>
  Either.gen(function* () {
    const anchors: Array<string> = []
    for (let text = reader.body(); text?.startsWith("@@") === true; text = reader.body()) {
      if (lineNumbers.test(text)) {
        return yield* refuse(
          reader.number(),
          `line numbers are not used; write "@@" alone, or "@@ " and a line of the file that comes before the change`
        )
      }
      const anchor = text.slice(2).replace(/^ /u, "").trimEnd()
      if (anchor !== "") anchors.push(anchor)
      reader.at++
    }
    return anchors
  })

const parseHunk = (reader: Reader) =>
  Either.gen(function* () {
    const line = reader.number()
    const anchors = yield* parseAnchors(reader)
    const lines: Array<HunkLine> = []
    /** Number of empty lines at the end of `lines`: layout, unless more of the hunk follows. */
    let blank = 0
    /** Which side is marked as ending without a line break; no line of it may follow. */
    const unended = { old: false, new: false }
    for (let text = reader.body(); text !== undefined && !text.startsWith("@@"); text = reader.body()) {
      reader.at++
      const last = lines.at(-1)
      if (noNewline.test(text) && last !== undefined) {
        if (last.kind !== "add") unended.old = true
        if (last.kind !== "remove") unended.new = true
        continue
      }
      const kind = text === "" ? "keep" : kinds[text.charAt(0)]
      if (kind === undefined) {
        return yield* refuse(reader.at, `a line of a hunk begins with " ", "-" or "+"; this one is ${quoted(text)}`)
      }
      blank = text === "" ? blank + 1 : 0
      lines.push({ kind, text: text.slice(1) })
      if (text !== "" && ((unended.old && kind !== "add") || (unended.new && kind !== "remove"))) {
        return yield* refuse(reader.at, "a line follows the line that is marked as the end of the file")
      }
    }
    const ended = reader.control() === endOfFile
    if (ended) reader.at++
    else if (blank > 0) lines.length -= blank
    if (!lines.some(({ kind }) => kind !== "keep")) {
      return yield* refuse(line, `the hunk changes nothing: it has no line with "-" or "+"`)
    }
    const said = unended.old || unended.new
    return { line, anchors, lines, endOfFile: ended || said, finalNewline: said ? !unended.new : undefined }
  })

const parseUpdate = (reader: Reader, path: string, line: number) =>
  Either.gen(function* () {
    const moved = move.exec(reader.control() ?? "")
    const movedTo = moved === null ? undefined : yield* pathOf(reader, moved[1])
    if (moved !== null) reader.at++
    const hunks: Array<Hunk> = []
    for (;;) {
      while (reader.next() === "") reader.at++
      if (reader.body() === undefined) break
      hunks.push(yield* parseHunk(reader))
    }
    if (hunks.length === 0 && movedTo === undefined) {
      return yield* refuse(line, `the update of ${quoted(path)} has no hunk; give one, or "*** Move to:" below it`)
    }
    return FileChange.Update({ path, line, movedTo, hunks })
  })

/** Parses a patch into its changes, in order; at least one. */
export const parsePatch = (text: string): Either.Either<ReadonlyArray<FileChange>, PatchSyntaxError> =>
  Either.gen(function* () {
    const bytes = Buffer.byteLength(text)
    if (bytes > maximumPatchBytes) {
      return yield* refuse(1, `it has ${bytes} bytes; at most ${maximumPatchBytes} are taken, so give it in parts`)
    }
    if (/\p{Surrogate}/u.test(text)) {
      const before = text.slice(0, text.search(/\p{Surrogate}/u))
      return yield* refuse(
        before.split("\n").length,
        "it contains half of a character (an unpaired surrogate), which no file can hold"
      )
    }
    const reader = new Reader(text)
    reader.skipBlank()
    const [wrapped, fence, , word] = wrapper.exec(reader.next()?.trim() ?? "") ?? []
    if (wrapped !== undefined) reader.at++
    reader.skipBlank()
    if (reader.control() !== begin) return yield* refuse(reader.number(), `a patch begins with "${begin}"`)
    reader.at++
    const changes: Array<FileChange> = []
    for (;;) {
      reader.skipBlank()
      const line = reader.number()
      if (reader.control() === end) break
      const next = reader.next()
      if (next === undefined) {
        return yield* refuse(line, `it ends without "${end}"; it may have been cut off, so give the whole of it`)
      }
      const [, verb, name] = header.exec(reader.control() ?? "") ?? []
      if (verb === undefined) {
        return yield* refuse(
          line,
          `"*** Add File: ", "*** Update File: ", "*** Delete File: " or "${end}" is expected here, ` +
            `not ${quoted(next)}`
        )
      }
      if (changes.length === maximumPatchFiles) {
        return yield* refuse(line, `it names more than ${maximumPatchFiles} files; give it in parts`)
      }
      const path = yield* pathOf(reader, name)
      reader.at++
      changes.push(
        verb === "Add"
          ? yield* parseAdd(reader, path, line)
          : verb === "Update"
            ? yield* parseUpdate(reader, path, line)
            : FileChange.Delete({ path, line })
      )
    }
    reader.at++
    reader.skipBlank()
    if (wrapped !== undefined && reader.next()?.trim() === (fence ?? word)) reader.at++
    reader.skipBlank()
    if (reader.next() !== undefined) return yield* refuse(reader.number(), `there is text after "${end}"`)
    if (changes.length === 0) return yield* refuse(reader.number() - 1, "it changes no file")
    return changes
  })
