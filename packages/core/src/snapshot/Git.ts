/**
 * Runs git on a private store, with an environment of its own: no configuration, hook, filter, monitor or transport of
 * the person, the system or the repository applies. Spec: UN-3, UN-4.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"
import * as path from "node:path"
import { Effect } from "effect"
import { isWithin } from "../support/TextFile.ts"
import { type SnapshotUnavailable, unavailable } from "./SnapshotError.ts"

export interface GitCommand {
  /** The folder in which git runs: the root of the work tree. */
  readonly cwd: string
  readonly args: ReadonlyArray<string>
  /** `GIT_DIR` and its relatives. */
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** Bytes of output at most. */
  readonly limit?: number
  /** Returns both outputs, also of a git that fails. */
  readonly everything?: boolean
}

/** Output of lists: paths of some hundred thousand files. */
const outputLimit = 256 * 1024 * 1024
const errorLimit = 4_000

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The installed git. A program that the project brings along, in `node_modules/.bin` for example, does not count. */
const findGit = (variable: string | undefined, project: string): string | undefined =>
  (variable ?? "")
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder) && !isWithin(project, folder))
    .map((folder) => path.join(folder, process.platform === "win32" ? "git.exe" : "git"))
    .find(isExecutable)

/** The whole environment of a git process; `home` is a folder without configuration. */
const environment = (home: string): Readonly<Record<string, string>> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: home,
  XDG_CONFIG_HOME: home,
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_LITERAL_PATHSPECS: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  // A partial clone must not fetch.
  GIT_ALLOW_PROTOCOL: "none",
  GIT_NO_LAZY_FETCH: "1",
  // glibc would give the buffer of each stored file back to the system, and ask for it again: half of the time.
  MALLOC_TOP_PAD_: `${16 * 1024 * 1024}`,
  MALLOC_TRIM_THRESHOLD_: `${64 * 1024 * 1024}`
})

export const gitFailed = (args: ReadonlyArray<string>, details: string) =>
  unavailable("failed", `git ${args.find((word) => !word.startsWith("-") && !word.includes("=")) ?? ""}: ${details}`)

/** Starts git; undefined if it is not installed. The caller ends it. */
export const startGit = (
  home: string,
  { args, cwd, env = {} }: GitCommand
): ChildProcessWithoutNullStreams | undefined => {
  const program = findGit(process.env["PATH"], cwd)
  if (program === undefined) return undefined
  const child = spawn(program, args, { cwd, env: { ...environment(home), ...env }, stdio: ["pipe", "pipe", "pipe"] })
  // git may end before it has read all of its input.
  child.stdin.on("error", () => {})
  return child
}

export const noGit = unavailable("no-git", "git is not installed")

/** Runs git and returns its output. Interruption kills it. */
export const runGit = (home: string, command: GitCommand): Effect.Effect<Buffer, SnapshotUnavailable> =>
  Effect.async<Buffer, SnapshotUnavailable>((resume) => {
    const { args, everything = false, input = "", limit = outputLimit } = command
    const child = startGit(home, command)
    if (child === undefined) {
      resume(noGit)
      return
    }
    const out: Array<Buffer> = []
    let size = 0
    let error = ""
    const gather = (chunk: Buffer) => {
      size += chunk.length
      if (size > limit) child.kill("SIGKILL")
      else out.push(chunk)
    }
    child.stdout.on("data", gather)
    if (everything) child.stderr.on("data", gather)
    child.stderr.on("data", (chunk: Buffer) => {
      if (error.length < errorLimit) error += chunk.toString("utf8")
    })
    child.stdin.end(input)
    child.on("error", (cause) => resume(gitFailed(args, cause.message)))
    child.on("close", (code, signal) => {
      if (size > limit) resume(gitFailed(args, `its output exceeds ${limit} bytes`))
      else if (code === 0 || (everything && code !== null)) resume(Effect.succeed(Buffer.concat(out)))
      else resume(gitFailed(args, error.trim().slice(0, errorLimit) || `it ended with ${code ?? signal}`))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })
