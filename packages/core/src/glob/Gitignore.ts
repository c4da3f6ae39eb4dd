/** Parses and matches `.gitignore` rules as git does. Pure, except for reading a file. Spec: TO-41, LM-21. */
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { maxIgnoreBytes, maxIgnoreRules } from "../support/Limits.ts"
import { isCostly, type Path, pathMatches, readPath } from "./Glob.ts"

interface Rule {
  readonly negated: boolean
  /** It matches folders only. */
  readonly folder: boolean
  readonly path: Path
}

/** The rules of one file, which apply below a folder `depth` names below the project's root. */
export interface Rules {
  readonly depth: number
  readonly rules: ReadonlyArray<Rule>
}

/** Rules, and a sentence about rejected ones. */
export interface Parsed {
  readonly rules: ReadonlyArray<Rule>
  readonly warning?: string
}

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
export const parse = (text: string): Parsed => {
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
export const isIgnored = async (
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
export const readRules = async (folder: string): Promise<Parsed> => {
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
