/**
 * Counts the system calls of a turn: two processes run different numbers of turns under `strace`, and the difference is
 * that of the turns. Needs Linux and `strace`; returns nothing without them.
 */
import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"

const counted = ["fsync", "statx", "readlink", "rename"] as const

export type Calls = Readonly<Record<(typeof counted)[number], number>>

const [few, many] = [10, 60]

/** The calls of a whole process that runs this many turns. */
const callsOf = (directory: string, turns: number): Calls | undefined => {
  const output = join(directory, `calls-${turns}`)
  const script = `await (await import(${JSON.stringify(import.meta.url)})).runTurns(${JSON.stringify(output)}, ${turns})`
  const strace = ["-f", "-c", "-o", `${output}.txt`, "-e", `trace=${counted.join(",")}`]
  const node = [process.execPath, "--input-type=module", "-e", script]
  if (spawnSync("strace", [...strace, ...node], { stdio: "ignore" }).status !== 0) return undefined
  const calls = { fsync: 0, statx: 0, readlink: 0, rename: 0 }
  for (const line of readFileSync(`${output}.txt`, "utf8").split("\n")) {
    const fields = line.trim().split(/\s+/)
    const name = counted.find((one) => one === fields.at(-1))
    if (name !== undefined) calls[name] = Number(fields[3])
  }
  return calls
}

/** The calls of one warm turn. */
export const measure = (directory: string): Calls | undefined => {
  const [before, after] = [callsOf(directory, few), callsOf(directory, many)]
  if (before === undefined || after === undefined) return undefined
  const each = (name: keyof Calls) => (after[name] - before[name]) / (many - few)
  return { fsync: each("fsync"), statx: each("statx"), readlink: each("readlink"), rename: each("rename") }
}
