/**
 * Finds the real path of a file. Most paths that a turn looks at are canonical or missing; a few `lstat` tell that
 * without a round trip through the thread pool, which costs more than ten times as much. Nothing is cached, so nothing
 * can be stale. Spec: EX-112.
 */
import { lstatSync } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"

const missing = (name: string): Error =>
  Object.assign(new Error(`ENOENT: no such file or directory, realpath '${name}'`), {
    code: "ENOENT",
    syscall: "realpath",
    path: name
  })

/** Whether an absolute path exists and leads through no symbolic link; `unknown` if that cannot be told. */
const look = (name: string): "canonical" | "missing" | "unknown" => {
  const parent = path.dirname(name)
  if (parent === name) return "canonical"
  // Looks at the whole path first: for a missing file this needs one call.
  const stats = lstatSync(name, { throwIfNoEntry: false })
  if (stats === undefined) return "missing"
  return stats.isSymbolicLink() ? "unknown" : look(parent)
}

const found = (name: string): ReturnType<typeof look> => {
  // Elsewhere a file system may ignore case, and the real path then has the case of the folder's entries.
  if (process.platform !== "linux" || !path.isAbsolute(name) || path.resolve(name) !== name) return "unknown"
  try {
    return look(name)
  } catch {
    return "unknown"
  }
}

/** Like `realpath` of `node:fs/promises`, with the same errors. */
export const realpath = async (name: string): Promise<string> => {
  switch (found(name)) {
    case "canonical":
      return name
    case "missing":
      throw missing(name)
    case "unknown":
      return fs.realpath(name)
  }
}
