/** Finds the git branch of a folder, without git. Spec: SC-511 in specs/screen.md. */
import { readFileSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"

const gitFolder = (directory: string): string | undefined => {
  const path = join(directory, ".git")
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory() === true) return path
  if (found === undefined) return dirname(directory) === directory ? undefined : gitFolder(dirname(directory))
  const [, named] = /^gitdir: (.+)$/m.exec(readFileSync(path, "utf8")) ?? []
  return named === undefined ? undefined : resolve(directory, named)
}

/** The branch, or the beginning of the commit; undefined outside of a work tree. */
export const branchOf = (directory: string): string | undefined => {
  try {
    const folder = gitFolder(directory)
    if (folder === undefined) return undefined
    const head = readFileSync(join(folder, "HEAD"), "utf8").trim()
    return /^ref: refs\/heads\/(.+)$/.exec(head)?.[1] ?? head.slice(0, 8)
  } catch {
    return undefined
  }
}
