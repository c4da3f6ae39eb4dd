/**
 * Walks a folder for the files that match a glob. Symbolic links are neither followed nor returned. The walk yields
 * every few milliseconds, so that signals and other work are served. Spec: TO-41 in specs/tools.md, LM-21, LM-22 in
 * specs/security.md.
 */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { maxIgnoreBytes, maxIgnoreRules } from "../support/Limits.ts"
import { type Glob, isCostly, type Path, pathMatches, readPath } from "./Glob.ts"

// Parses and matches `.gitignore` rules as git does. Pure, except for reading a file.

interface Rule {
  readonly negated: boolean
  /** It matches folders only. */
  readonly folder: boolean
  readonly path: Path
}

/** The rules of one file, which apply below a folder `depth` names below the project's root. */
type Rules = { readonly depth: number; readonly rules: ReadonlyArray<Rule> }

/** Rules, and a sentence about rejected ones. */
type Parsed = { readonly rules: ReadonlyArray<Rule>; readonly warning?: string }

const withoutEndSpace = (line: string): string => {
  let end = line.length
  while (end > 0 && (line[end - 1] === " " || line[end - 1] === "\t")) end--
  // A backslash keeps the following space.
  return line[end - 1] === "\\" && end < line.length ? line.slice(0, end + 1) : line.slice(0, end)
}

const readRule = (line: string): ReadonlyArray<Rule> => {
  const negated = line.startsWith("!")
  const text = negated ? line.slice(1) : line
  const folder = text.endsWith("/")
  const pattern = folder ? text.slice(0, -1) : text
  if (pattern === "") return []
  // Without a slash before its end, a rule matches a name in any folder.
  return [{ negated, folder, path: readPath(pattern.includes("/") ? pattern : `**/${pattern}`) }]
}

/** Parses rules. Rules that are too expensive to match are ignored, and so are rules beyond the limit. */
const parse = (text: string): Parsed => {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .map(withoutEndSpace)
    .filter((line) => line !== "" && !line.startsWith("#"))
  const cheap = lines.slice(0, maxIgnoreRules).filter((line) => !isCostly(line))
  const rules = cheap.flatMap(readRule)
  const left = lines.length - cheap.length
  return left === 0
    ? { rules }
    : {
        rules,
        warning: `${left} of its rules are ignored: they are too long, have too many stars, or are too many`
      }
}

/** How many rules are matched between two yields. */
const rulesPerTurn = 16

/** Whether the last matching rule ignores the path; inner files come before outer ones. `turn` yields to other work. */
const isIgnored = async (
  files: ReadonlyArray<Rules>,
  parts: ReadonlyArray<string>,
  isFolder: boolean,
  turn: () => Promise<void> | undefined
): Promise<boolean> => {
  for (const { depth, rules } of files.toReversed()) {
    for (let at = rules.length - 1; at >= 0; at--) {
      if (at % rulesPerTurn === 0) await turn()
      const rule = rules[at]
      if (rule === undefined || (rule.folder && !isFolder)) continue
      if (pathMatches(rule.path, parts, depth)) return !rule.negated
    }
  }
  return false
}

/** Reads a folder's rules; empty if it has no file. Like git, it follows no link; it does not wait for a pipe. */
const readRules = async (folder: string): Promise<Parsed> => {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const handle = await fs.open(path.join(folder, ".gitignore"), flags).catch(() => undefined)
  if (handle === undefined) return { rules: [] }
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) return { rules: [] }
    if (stats.size > maxIgnoreBytes)
      return { rules: [], warning: `it is ignored: it is larger than ${maxIgnoreBytes} bytes` }
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxIgnoreBytes), 0, maxIgnoreBytes, 0)
    return parse(buffer.toString("utf8", 0, bytesRead))
  } catch {
    return { rules: [] }
  } finally {
    await handle.close()
  }
}

export interface WalkOptions {
  /** Canonical. */
  readonly folder: string
  readonly glob: Glob
  readonly signal: AbortSignal
  readonly most: number
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
type PendingFolder = { readonly below: ReadonlyArray<string>; readonly files: ReadonlyArray<Rules> }

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
  const waiting: Array<PendingFolder> = [{ below: [], files: outer }]
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
