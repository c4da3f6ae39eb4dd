/**
 * Temporary folders in memory: an fsync of a disk takes milliseconds, and each commit of a database on a file has one. No test
 * cuts the power, so a disk proves nothing more; `test/storage` stays on it.
 */
import { readFileSync, statfsSync } from "node:fs"

const memory = "/dev/shm"
/** All tests that run at once need less. */
const needed = 2 * 1024 ** 3

/** Folders of `test/` whose tests need no other `/dev/shm` in a sandbox, and say nothing about disks. */
const suites = new Set(
  `agent branches client compaction consumer context discord execution files formats log mcp models names projection prompt
  request retention runner search server session tools trust undo`.split(/\s+/)
)

const isUsable = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(memory)
    const mounted = readFileSync("/proc/mounts", "utf8").split("\n")
    const [, , type, options = ""] = mounted.map((line) => line.split(" ")).findLast(([, at]) => at === memory) ?? []
    return type === "tmpfs" && !options.split(",").includes("noexec") && bavail * bsize >= needed
  } catch {
    return false
  }
}

const given = process.env["TMPDIR"]
const usable = (given === undefined || given === memory) && isUsable()

/** Makes `tmpdir()` of the tests in this file a folder in memory, if the machine has one. */
export const useMemory = (testFile: string | undefined): void => {
  if (!usable) return
  const [, suite = ""] = /\/test\/(\w+)\//.exec(testFile ?? "") ?? []
  if (suites.has(suite)) process.env["TMPDIR"] = memory
  else delete process.env["TMPDIR"]
}
