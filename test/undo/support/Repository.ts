/** Real git repositories and folders for tests of snapshots, with a clean environment. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Duration, Effect } from "effect"
import { defaultLimits, type WorkTree, workTreeOf } from "../../../packages/core/src/snapshot/Candidates.ts"
import type { StoreOptions } from "../../../packages/core/src/snapshot/StoreFolder.ts"
import { temporaryFolder } from "../../support/Harness.ts"

/** Runs the person's git. */
export const git = (folder: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-C", folder, "-c", "user.name=A", "-c", "user.email=a@example.com", ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], HOME: folder, GIT_CONFIG_NOSYSTEM: "1" }
  })

export const write = (root: string, files: Readonly<Record<string, string | Buffer>>) => {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
}

/** A folder with these files and what makes it a repository without a commit: it takes no process. */
export const project = (root: string, files: Readonly<Record<string, string | Buffer>>) =>
  write(root, { ".git/HEAD": "ref: refs/heads/main\n", ".git/objects/.keep": "", ".git/refs/.keep": "", ...files })

/** A repository with these files committed, by git. */
export const repository = (root: string, files: Readonly<Record<string, string | Buffer>>) => {
  mkdirSync(root, { recursive: true })
  git(root, "init", "--quiet")
  write(root, files)
  git(root, "add", "--all", "--force")
  git(root, "commit", "--quiet", "--allow-empty", "-m", "one")
}

/** Every file below a folder with its mode and content; a link with its target. `.git` is left out unless asked for. */
export const contents = (root: string, withGit = false, prefix = ""): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(join(root, prefix)).flatMap((name): ReadonlyArray<readonly [string, string]> => {
      const at = join(prefix, name)
      const stats = lstatSync(join(root, at))
      if (name === ".git" && !withGit) return []
      if (stats.isSymbolicLink()) return [[at, `-> ${readlinkSync(join(root, at))}`]]
      if (stats.isDirectory()) return [[`${at}/`, ""], ...Object.entries(contents(root, withGit, at))]
      const hash = createHash("sha1")
        .update(readFileSync(join(root, at)))
        .digest("hex")
      return [[at, `${(stats.mode & 0o777).toString(8)} ${hash}`]]
    })
  )

/** A temporary folder with a project `work` and a folder of stores. */
export const place = Effect.map(temporaryFolder, (folder) => {
  const base = realpathSync(folder)
  const work = join(base, "work")
  mkdirSync(work)
  return { base, work, options: options(join(base, "data", "snapshots")) }
})

export const options = (
  folder: string,
  limits: Partial<typeof defaultLimits> = {},
  hidden: ReadonlyArray<string> = []
): StoreOptions => ({
  folder,
  hidden,
  limits: { ...defaultLimits, ...limits },
  patience: Duration.seconds(60)
})

export const workTree = (folder: string, configured: ReadonlyArray<string> = []): Effect.Effect<WorkTree> =>
  Effect.flatMap(workTreeOf(folder, configured), (tree) =>
    tree === undefined ? Effect.dieMessage(`no work tree at ${folder}`) : Effect.succeed(tree)
  )
