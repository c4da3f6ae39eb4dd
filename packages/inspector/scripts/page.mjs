/** Bundles the page in memory; also for the command's bundle, and for tests. */
import { build } from "esbuild"
import { readdir, readFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const page = fileURLToPath(new URL("../src/page", import.meta.url))

/** The licence texts of the bundled packages, which must be distributed with them. */
const noticesOf = async (inputs) => {
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

/** The page's script and style, and the licences of what is in them. */
export const bundled = async () => {
  const { metafile, outputFiles } = await build({
    entryPoints: [join(page, "Main.tsx"), join(page, "page.css")],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    outdir: "out",
    platform: "browser",
    format: "esm",
    target: "es2024",
    charset: "ascii",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning"
  })
  const textOf = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text
  return { script: textOf(".js"), style: textOf(".css"), notices: await noticesOf(Object.keys(metafile.inputs)) }
}
