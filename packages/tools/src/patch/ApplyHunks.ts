/**
 * Applies the hunks of one update to a file's text. Every hunk must match exactly one place. Unchanged lines are kept
 * byte for byte, and so are line endings, the byte order mark and the file's ending. Pure. Spec: TO-73, TO-74, TO-114, TO-541.
 */
import { Either, Schema } from "effect"
import { byteOrderMark } from "@daybook/core/workspace/TextEncoding"
import { isCrlf } from "../FileText.ts"
import { type Nearness, nearness, plainLine, reindenting } from "../NearText.ts"
import type { Hunk } from "./Patch.ts"

// Finds the lines of hunks in a file, with bounded work, so that no patch blocks the process.

/** How two lines are compared: exactly, without trailing blanks, by look, by any blanks, or trimmed. */
type Tolerance = "exact" | "end" | Nearness | "around"

const reduce: Readonly<Record<Tolerance, (line: string) => string>> = {
  exact: (line) => line,
  end: (line) => line.trimEnd(),
  characters: (line) => plainLine(line, "characters"),
  blanks: (line) => plainLine(line, "blanks"),
  around: (line) => plainLine(line, "blanks").trim()
}

/** Maximum number of comparisons for one file. */
const maximumSteps = 5_000_000

/** The lines that a hunk expects in the file: kept and removed lines. */
const oldLines = (hunk: Hunk): ReadonlyArray<string> =>
  hunk.lines.flatMap(({ kind, text }) => (kind === "add" ? [] : [text]))

const makeHunkSearch = (lines: ReadonlyArray<string>, hunks: ReadonlyArray<Hunk>) => {
  const wanted = hunks.flatMap((hunk) => [...hunk.anchors, ...oldLines(hunk)])
  const indexes = new Map<Tolerance, ReadonlyMap<string, ReadonlyArray<number>>>()
  let steps = 0

  const indexOf = (tolerance: Tolerance) => {
    const known = indexes.get(tolerance)
    if (known !== undefined) return known
    const made = new Map<string, Array<number>>(wanted.map((line) => [reduce[tolerance](line), []]))
    lines.forEach((line, at) => made.get(reduce[tolerance](line))?.push(at))
    indexes.set(tolerance, made)
    return made
  }

  const spend = (more: number): Either.Either<void, "too much"> => {
    steps += more
    return steps > maximumSteps ? Either.left("too much") : Either.void
  }

  /** The positions of a line, ascending; `"too much"` if the file's work limit is exceeded. */
  const places = (line: string, tolerance: Tolerance): Either.Either<ReadonlyArray<number>, "too much"> => {
    const found = indexOf(tolerance).get(reduce[tolerance](line)) ?? []
    return Either.map(spend(found.length), () => found)
  }

  /** The positions, from a line on, at which all given lines follow each other. */
  const runs = (
    sought: ReadonlyArray<string>,
    from: number,
    tolerance: Tolerance
  ): Either.Either<ReadonlyArray<number>, "too much"> =>
    Either.gen(function* () {
      const same = reduce[tolerance]
      const expected = sought.map(same)
      // The rarest line leaves the fewest candidates.
      let pivot = 0
      let candidates: ReadonlyArray<number> | undefined
      for (const [index, line] of expected.entries()) {
        const others = indexOf(tolerance).get(line) ?? []
        if (candidates === undefined || others.length < candidates.length) [pivot, candidates] = [index, others]
      }
      yield* spend(expected.length + (candidates?.length ?? 0))
      const found: Array<number> = []
      for (const candidate of candidates ?? []) {
        const start = candidate - pivot
        if (start < from || start + expected.length > lines.length) continue
        let index = 0
        while (index < expected.length && same(lines[start + index] ?? "") === expected[index]) index++
        yield* spend(index)
        if (index === expected.length) found.push(start)
      }
      return found
    })

  return { places, runs }
}

/** A hunk matches no place in the file, or more than one. */
class HunkRefused extends Schema.TaggedError<HunkRefused>("@daybook/tools/HunkRefused")("HunkRefused", {
  /** The hunk's number within the file, from 1. */
  hunk: Schema.Int,
  /** The line of the patch where it begins. */
  line: Schema.Int,
  problem: Schema.String
}) {
  override get message() {
    return `hunk ${this.hunk} (line ${this.line} of the patch) ${this.problem}`
  }
}

type Search = ReturnType<typeof makeHunkSearch>

const show = (sought: ReadonlyArray<string>) =>
  sought
    .slice(0, 12)
    .map((line) => `\n  ${line.length > 160 ? `${line.slice(0, 160)}...` : line}`)
    .join("") + (sought.length > 12 ? `\n  (and ${sought.length - 12} more)` : "")

const listed = (places: ReadonlyArray<number>) => {
  const shown = places.slice(0, 5).map((place) => place + 1)
  return `lines ${shown.join(", ")}${places.length > shown.length ? " and more" : ""}`
}

/** For each of `starts`, the first of `places` at least `gap` lines later. Both inputs and the result are ascending. */
const firstAfter = (starts: ReadonlyArray<number>, places: ReadonlyArray<number>, gap: number) => {
  const found = new Set<number>()
  let index = 0
  for (const start of starts) {
    while (index < places.length && (places[index] ?? 0) < start + gap) index++
    const place = places[index]
    if (place !== undefined) found.add(place)
  }
  return [...found]
}

const tooMuch = () => `matches too many places; make it shorter, or give lines that are rare in the file`

/** The possible lines of the last anchor: each anchor is matched at its first occurrence after the previous one. */
const anchorPlaces = (search: Search, anchors: ReadonlyArray<string>): Either.Either<ReadonlyArray<number>, string> =>
  Either.gen(function* () {
    let places: ReadonlyArray<number> = [-1]
    for (const [index, anchor] of anchors.entries()) {
      let next: ReadonlyArray<number> = []
      for (const tolerance of ["exact", "end", ...nearness, "around"] as const) {
        const all = yield* Either.mapLeft(search.places(anchor, tolerance), tooMuch)
        next = index === 0 ? all : firstAfter(places, all, 1)
        if (next.length > 0) break
      }
      if (next.length === 0) {
        const where = index === 0 ? "" : `, after the one before it`
        return yield* Either.left(`does not fit: the line after "@@" is not in the file${where}:${show([anchor])}`)
      }
      places = next
    }
    return places
  })

/** Where a hunk goes, and whether its lines are only near those of the file. */
type HunkPlace = { readonly at: number; readonly isNear: boolean }

const exactly = (at: number): HunkPlace => ({ at, isNear: false })

const placeOf = (search: Search, hunk: Hunk, from: number, length: number): Either.Either<HunkPlace, string> =>
  Either.gen(function* () {
    const sought = oldLines(hunk)
    const anchors = yield* anchorPlaces(search, hunk.anchors)
    if (sought.length === 0) {
      if (hunk.endOfFile || length === 0) return exactly(length)
      if (hunk.anchors.length === 0) {
        return yield* Either.left(
          `does not say where its lines go: give the lines around them, "@@ " and the line before them, or ` +
            `"*** End of File" after them`
        )
      }
      const places = anchors.map((anchor) => anchor + 1).filter((place) => place >= from)
      const [place] = places
      if (place === undefined)
        return yield* Either.left(`comes before the hunk above it; give hunks in the file's order`)
      return places.length === 1
        ? exactly(place)
        : yield* Either.left(
            `does not have one place: the line after "@@" occurs ${places.length} times (${listed(anchors)}); add ` +
              `the lines around the change`
          )
    }
    for (const tolerance of ["exact", "end", ...nearness] as const) {
      const runs = yield* Either.mapLeft(search.runs(sought, from, tolerance), tooMuch)
      const all = hunk.endOfFile ? runs.filter((place) => place + sought.length === length) : runs
      // A hunk may begin with the line that its anchor names.
      const places = hunk.anchors.length === 0 ? all : firstAfter(anchors, all, 0)
      const [place] = places
      if (place === undefined) continue
      return places.length === 1
        ? { at: place, isNear: tolerance !== "exact" && tolerance !== "end" }
        : yield* Either.left(
            `does not have one place: it fits at ${listed(places)} of the file; give more lines around the change, or ` +
              `"@@ " and a line before it that occurs once. It sought:${show(sought)}`
          )
    }
    const [elsewhere] = yield* Either.mapLeft(search.runs(sought, 0, "around"), tooMuch)
    const hint =
      elsewhere === undefined
        ? "Read the file again and give them as it has them."
        : elsewhere < from
          ? `They are at line ${elsewhere + 1}, before the hunk above: give hunks in the file's order.`
          : `At line ${elsewhere + 1} they differ in blanks, come before the line after "@@", or do not end the file.`
    return yield* Either.left(
      `does not fit: these lines are not in the file${from > 0 ? " after the hunk above" : ""}` +
        `${hunk.anchors.length > 0 ? ` after the line that "@@" names` : ""}` +
        `${hunk.endOfFile ? " at its end" : ""}. ${hint} It sought:${show(sought)}`
    )
  })

/** Normalizes a hunk like the file: removes the CR of line breaks and a byte order mark. */
const inTermsOf = (hunk: Hunk, crlf: boolean, marked: boolean): Hunk => ({
  ...hunk,
  lines: hunk.lines.map(({ kind, text }) => {
    const bare = marked && text.startsWith(byteOrderMark) ? text.slice(1) : text
    return { kind, text: crlf && bare.endsWith("\r") ? bare.slice(0, -1) : bare }
  })
})

/** A text after all hunks are applied. */
export interface Applied {
  readonly content: string
  /** The lines of the patch where the hunks begin whose lines are only near those of the file. */
  readonly near: ReadonlyArray<number>
}

export const applyHunks = (content: string, hunks: ReadonlyArray<Hunk>): Either.Either<Applied, HunkRefused> =>
  Either.gen(function* () {
    const mark = content.startsWith(byteOrderMark) ? byteOrderMark : ""
    const body = content.slice(mark.length)
    const crlf = isCrlf(body)
    const lines = (crlf ? body.replaceAll("\r\n", "\n") : body).split("\n")
    let newline = lines.at(-1) === ""
    if (newline) lines.pop()
    const own = hunks.map((hunk) => inTermsOf(hunk, crlf, mark !== ""))
    const search = makeHunkSearch(lines, own)
    const after: Array<string> = []
    const near: Array<number> = []
    let at = 0
    const keepUntil = (place: number) => {
      for (; at < place; at++) after.push(lines[at] ?? "")
    }
    for (const [index, hunk] of own.entries()) {
      const place = yield* Either.mapLeft(
        placeOf(search, hunk, at, lines.length),
        (problem) => new HunkRefused({ hunk: index + 1, line: hunk.line, problem })
      )
      keepUntil(place.at)
      const sought = oldLines(hunk)
      if (place.isNear) near.push(hunk.line)
      // Added lines have the indentation of the file, not that of the patch.
      const indented = place.isNear
        ? reindenting(sought, lines.slice(place.at, place.at + sought.length))
        : (text: string) => text
      for (const { kind, text } of hunk.lines) {
        if (kind === "add") after.push(indented(text))
        else if (kind === "keep") keepUntil(at + 1)
        else at++
      }
      newline = hunk.finalNewline ?? newline
    }
    keepUntil(lines.length)
    const ending = crlf ? "\r\n" : "\n"
    return { content: after.length === 0 ? mark : mark + after.join(ending) + (newline ? ending : ""), near }
  })
