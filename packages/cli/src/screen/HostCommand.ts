/**
 * Runs the person's programs: `!COMMAND` in the folder, with a bounded end of its output, and the editor.
 * Spec: SC-534 in specs/screen.md.
 */
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Either } from "effect"
import { childEnvironment, type EnvironmentGrants, Granted } from "@daybook/core/child/ChildEnvironment"

/** Characters of output that are kept. */
const most = 30_000

const kept = (output: string): string =>
  output.length <= most ? output : `… earlier output is left out\n${output.slice(-most)}`

/** Runs the command to its end, as agents' commands run; interruption ends it with all that it started. */
export const run = (command: string, directory: string): Effect.Effect<string> =>
  Effect.flatMap(Granted, (grants) => started(command, directory, grants))

const started = (command: string, directory: string, { bash }: EnvironmentGrants): Effect.Effect<string> =>
  Effect.async<string>((resume) => {
    const child = spawn(process.env["SHELL"] ?? "/bin/sh", ["-c", command], {
      cwd: directory,
      // Its output is shown to the model: no key of this process is in it.
      env: childEnvironment(process.env, bash),
      detached: true,
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    const take = (part: string) => {
      output = (output + part).slice(-2 * most)
    }
    child.stdout.setEncoding("utf8").on("data", take)
    child.stderr.setEncoding("utf8").on("data", take)
    child.once("error", ({ message }) => resume(Effect.succeed(message)))
    child.once("close", (code, signal) => {
      const how = signal === null ? (code === 0 ? "" : `exit code ${code}`) : `ended by ${signal}`
      resume(Effect.succeed(kept([output.trimEnd(), how].filter((text) => text !== "").join("\n"))))
    })
    return Effect.sync(() => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
      } catch {
        // It has ended.
      }
    })
  })

/** The text as the person's editor leaves it, whose command may have options; or why it is unchanged. */
export const edit = (text: string, without: <A>(work: () => A) => A): Either.Either<string, string> => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-"))
  const path = join(folder, "prompt.md")
  const program = process.env["VISUAL"] || process.env["EDITOR"] || "vi"
  try {
    writeFileSync(path, text, { mode: 0o600 })
    const { status } = without(() => spawnSync("/bin/sh", ["-c", `${program} "$1"`, "sh", path], { stdio: "inherit" }))
    return status === 0
      ? Either.right(readFileSync(path, "utf8").replace(/\n$/, ""))
      : Either.left(`${program} failed: the text is unchanged`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
