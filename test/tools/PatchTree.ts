/** Patches as lines, and what a folder holds, to be compared. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join, relative } from "node:path"

export const patchOf = (...lines: ReadonlyArray<string>) =>
  ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n")

/** Everything below a folder by its path: `folder`, a link with its target, or a file's mode and content. */
export const treeOf = (folder: string): Record<string, string> => {
  const entries: Array<[string, string]> = []
  const walk = (at: string) => {
    for (const name of readdirSync(at)) {
      const path = join(at, name)
      const stats = lstatSync(path)
      const key = relative(folder, path)
      if (stats.isSymbolicLink()) entries.push([key, `link to ${readlinkSync(path)}`])
      else if (stats.isDirectory()) {
        entries.push([key, "folder"])
        walk(path)
      } else {
        const bytes = readFileSync(path)
        const text = bytes.toString("utf8")
        const content = Buffer.from(text).equals(bytes) ? text : `base64 ${bytes.toString("base64")}`
        entries.push([key, `${(stats.mode & 0o7777).toString(8)} ${content}`])
      }
    }
  }
  walk(folder)
  return Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
