/** Copies the last commit with its dependencies to a folder that is removed when the process ends. */
import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Returns the copy's folder. Dependencies are hard links. */
export const copyOf = (root) => {
  const parent = mkdtempSync(join(tmpdir(), "daybook-mutate-"))
  // Some tests run processes of another user, which load the copy's code.
  chmodSync(parent, 0o755)
  const folder = join(parent, "tree")
  execFileSync("git", ["worktree", "add", "--quiet", "--detach", folder], { cwd: root })
  const end = () => {
    rmSync(parent, { recursive: true, force: true })
    execFileSync("git", ["worktree", "prune"], { cwd: root })
  }
  process.once("exit", end)
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130))
  const places = ["", ...readdirSync(join(root, "packages")).map((name) => join("packages", name))]
  for (const place of places) {
    const modules = join(root, place, "node_modules")
    if (existsSync(modules)) execFileSync("cp", ["-al", modules, join(folder, place, "node_modules")])
    const dist = join(root, place, "dist")
    if (existsSync(dist)) cpSync(dist, join(folder, place, "dist"), { recursive: true, preserveTimestamps: true })
  }
  return folder
}
