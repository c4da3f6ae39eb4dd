/** The licence texts of bundled packages, which must be distributed with a bundle. */
import { readdir, readFile } from "node:fs/promises"
import { join, resolve } from "node:path"

/** One text of all licences, from the files that a bundle was made from. */
export const notices = async (inputs) => {
  const folders = new Set(
    inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(resolve(path))?.[0] ?? [])
  )
  const texts = await Promise.all(
    [...folders].sort().map(async (folder) => {
      const { license, name, version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"))
      const file = (await readdir(folder)).find((each) => /^licen[cs]e(\.|$)/i.test(each))
      const text = file === undefined ? "" : `\n\n${(await readFile(join(folder, file), "utf8")).trim()}`
      return `${name} ${version} (${license ?? "see its text"})${text}`
    })
  )
  return `${texts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`
}
