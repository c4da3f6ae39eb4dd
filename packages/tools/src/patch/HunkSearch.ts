/**
 * Finds the lines of hunks in a file. Indexes only lines that occur in a hunk, and bounds the work, so that no patch
 * can block the process. Pure. Spec: TO-73.
 */
import { Either } from "effect"
import { type Nearness, plainLine } from "../NearText.ts"
import type { Hunk } from "./Patch.ts"

/**
 * How two lines are compared: exactly, without trailing blanks, by characters that look alike, also by any blanks, or
 * without leading and trailing blanks.
 */
export type Tolerance = "exact" | "end" | Nearness | "around"

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
export const oldLines = (hunk: Hunk): ReadonlyArray<string> =>
  hunk.lines.flatMap(({ kind, text }) => (kind === "add" ? [] : [text]))

export const makeHunkSearch = (lines: ReadonlyArray<string>, hunks: ReadonlyArray<Hunk>) => {
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
