/**
 * Bundles programs of child processes, each once until an input changes. All JavaScript is in the bundle, because one file starts
 * in half the time of many. A bundle has the same path in each run, so that a worker that was killed leaves nothing more.
 */
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { build } from "esbuild"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** Beside the native modules, and readable by other users. */
const folder = join(root, "node_modules", ".cache", "daybook-programs")
const banner =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);"

/** Files that every bundle depends on. */
const always = [fileURLToPath(import.meta.url), join(root, "package-lock.json")]

interface Made {
  readonly startedAt: number
  readonly inputs: ReadonlyArray<string>
}

/** Whether the bundle exists, and no input changed since its build started. */
const isCurrent = (file: string): boolean => {
  try {
    const { inputs, startedAt } = JSON.parse(readFileSync(`${file}.json`, "utf8")) as Made
    statSync(file)
    return inputs.every((input) => statSync(input).mtimeMs < startedAt)
  } catch {
    return false
  }
}

/** Another worker may read the file or write the same one. */
const replace = (file: string, contents: string | Uint8Array): void => {
  const temporary = `${file}.${process.pid}`
  writeFileSync(temporary, contents)
  renameSync(temporary, file)
}

const bundle = async (entry: string): Promise<string> => {
  const name = `${basename(entry, ".ts")}-${createHash("sha256").update(entry).digest("hex").slice(0, 8)}.mjs`
  const file = join(folder, name)
  if (isCurrent(file)) return file
  const startedAt = Date.now()
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    minifySyntax: true,
    minifyWhitespace: true,
    conditions: ["@daybook/source"],
    external: ["better-sqlite3", "sharp", "ssh2"],
    logLevel: "error",
    banner: { js: banner }
  })
  const inputs = [...always, ...Object.keys(metafile.inputs).map((input) => join(root, input))]
  mkdirSync(folder, { recursive: true })
  replace(file, outputFiles[0]?.contents ?? "")
  replace(`${file}.json`, JSON.stringify({ startedAt, inputs } satisfies Made))
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
