/** Bundles the page in memory; also for the command's bundle, and for tests. */
import { build } from "esbuild"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const page = fileURLToPath(new URL("../src/page", import.meta.url))

/** The page's script and style, and the files they were made from. */
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
  return { script: textOf(".js"), style: textOf(".css"), inputs: Object.keys(metafile.inputs) }
}
