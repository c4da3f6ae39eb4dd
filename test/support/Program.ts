/**
 * Bundles programs of child processes, each once per worker. All JavaScript is in the bundle, because one file starts in half the
 * time of many. A bundle has the same path in each run, so that a worker that was killed leaves nothing more.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { build } from "esbuild"

/** Beside the native modules, and readable by other users. */
const folder = fileURLToPath(new URL("../../node_modules/.cache/daybook-programs/", import.meta.url))
const banner =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"

const bundle = async (entry: string): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    minifySyntax: true,
    minifyWhitespace: true,
    conditions: ["@daybook/source"],
    external: ["better-sqlite3", "sharp"],
    logLevel: "error",
    banner: { js: banner }
  })
  const file = join(folder, `${basename(entry, ".ts")}-${process.env["VITEST_POOL_ID"] ?? 0}.mjs`)
  const temporary = `${file}.${process.pid}`
  mkdirSync(folder, { recursive: true })
  writeFileSync(temporary, outputFiles[0]?.contents ?? "")
  renameSync(temporary, file)
  return file
}

const bundled = new Map<string, Promise<string>>()

/** The program as one JavaScript file; `entry` is a path. Entries have different names. */
export const program = (entry: string): Effect.Effect<string> =>
  Effect.promise(() => {
    const known = bundled.get(entry)
    if (known !== undefined) return known
    const made = bundle(entry)
    bundled.set(entry, made)
    return made
  })
