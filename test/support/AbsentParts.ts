/** Says at the end of a run which suites did not run because a part is absent, and how to get the part. */
import { existsSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Reporter } from "vitest/node"

/** A suite that needs an absent part. */
export interface Absence {
  /** The test file, relative to `test/`. */
  readonly file: string
  readonly part: string
  /** How to get the part. */
  readonly get: string
}

/** The variable that names the file in which workers note absences. */
export const absencesVariable = "DAYBOOK_ABSENCES"

/** A line for each absent part, and its suites below; undefined if no part is absent. */
export const absentText = (absences: ReadonlyArray<Absence>): string | undefined => {
  const suites = new Map<string, Set<string>>()
  for (const { file, get, part } of absences) {
    const key = `${part}: ${get}`
    suites.set(key, (suites.get(key) ?? new Set()).add(file.replace(/(?:\.world)?\.test\.ts$/, "")))
  }
  if (suites.size === 0) return undefined
  const lines = [...suites].flatMap(([part, files]) => [
    ` ${files.size === 1 ? "1 suite needs" : `${files.size} suites need`} ${part}`,
    `   ${[...files].toSorted().join(", ")}`
  ])
  return ["", "Not run, or not as a whole, because this machine lacks a part:", ...lines, ""].join("\n")
}

export class AbsentParts implements Reporter {
  readonly #file = join(tmpdir(), `daybook-absences-${process.pid}`)

  /** Workers get the environment of this process. */
  onInit() {
    process.env[absencesVariable] = this.#file
  }

  onTestRunEnd() {
    if (!existsSync(this.#file)) return
    const lines = readFileSync(this.#file, "utf8").trimEnd().split("\n")
    rmSync(this.#file)
    console.log(absentText(lines.map((line): Absence => JSON.parse(line))))
  }
}
