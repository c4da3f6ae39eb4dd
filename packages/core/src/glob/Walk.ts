/**
 * Walks a folder for the files that match a glob. Symbolic links are neither followed nor returned. The walk yields
 * every few milliseconds, so that signals and other work are served. Spec: TO-41, LM-22.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { isIgnored, readRules, type Rules } from "./Gitignore.ts"
import type { Glob } from "./Glob.ts"

export interface WalkOptions {
  /** Canonical. */
  readonly folder: string
  readonly glob: Glob
  /** Aborts the walk. */
  readonly signal: AbortSignal
  /** Maximum number of files to return. */
  readonly most: number
  /** Names of folders to skip. */
  readonly skipped: ReadonlySet<string>
  /** Maximum depth of folders to walk. */
  readonly deepest?: number
  /** The folders from the project's root to `folder` whose `.gitignore` applies; empty: nothing is ignored. */
  readonly ignoring?: ReadonlyArray<string>
}

export interface Walked {
  /** Relative to the folder, with `/`. */
  readonly files: ReadonlyArray<string>
  /** Whether more files may match. */
  readonly more: boolean
  /** What was ignored in `.gitignore` files. */
  readonly warnings: ReadonlyArray<string>
}

const maximumWarnings = 10

/** Milliseconds of work between yields. */
const patience = 8

/** Yields when the interval has passed. */
const makeTurns = () => {
  let begun = performance.now()
  return (): Promise<void> | undefined =>
    performance.now() - begun < patience
      ? undefined
      : new Promise((resolve) =>
          setImmediate(() => {
            begun = performance.now()
            resolve()
          })
        )
}

/** A folder to walk: its path below the searched folder, and the ignore rules that apply. */
interface Waiting {
  readonly below: ReadonlyArray<string>
  readonly files: ReadonlyArray<Rules>
}

/** Returns the matching files, unordered. An unreadable folder counts as empty. */
export const walk = async (options: WalkOptions): Promise<Walked> => {
  const { deepest = Infinity, folder, glob, ignoring = [], most, signal, skipped } = options
  const warnings: Array<string> = []
  const turn = makeTurns()
  /** The searched folder's names below the project's root. */
  const above =
    ignoring.length === 0
      ? []
      : path
          .relative(ignoring[0] ?? folder, folder)
          .split("/")
          .filter(Boolean)

  const withRules = async (files: ReadonlyArray<Rules>, directory: string, depth: number) => {
    const { rules, warning } = await readRules(directory)
    if (warning !== undefined && warnings.length < maximumWarnings) {
      warnings.push(`${path.join(directory, ".gitignore")}: ${warning}`)
    }
    return rules.length === 0 ? files : [...files, { depth, rules }]
  }

  let outer: ReadonlyArray<Rules> = []
  for (const [depth, directory] of ignoring.slice(0, -1).entries()) {
    outer = await withRules(outer, directory, depth)
    if (await isIgnored(outer, above.slice(0, depth + 1), true, turn)) return { files: [], more: false, warnings }
  }

  const found: Array<string> = []
  const waiting: Array<Waiting> = [{ below: [], files: outer }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { below } = next
    const directory = path.join(folder, ...below)
    const files = ignoring.length === 0 ? [] : await withRules(next.files, directory, above.length + below.length)
    const entries = await fs.opendir(directory, { bufferSize: 256 }).catch(() => undefined)
    if (entries === undefined) continue
    // Leaving the loop closes the folder.
    for await (const entry of entries) {
      await turn()
      if (signal.aborted) return { files: found, more: true, warnings }
      const parts = [...below, entry.name]
      if (entry.isDirectory()) {
        if (skipped.has(entry.name) || parts.length > deepest || !glob.mayHold(parts)) continue
        if (!(await isIgnored(files, [...above, ...parts], true, turn))) waiting.push({ below: parts, files })
      } else if (
        entry.isFile() &&
        glob.matches(parts) &&
        !(await isIgnored(files, [...above, ...parts], false, turn))
      ) {
        if (found.length === most) return { files: found, more: true, warnings }
        found.push(parts.join("/"))
      }
    }
  }
  return { files: found, more: false, warnings }
}
