/** Measures the start of the built command against `node -e 0`, in processes that alternate. It needs `npm run build`. */
import { spawnSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { median } from "./Figures.ts"

/** The built command. */
export const daybook = fileURLToPath(new URL("../../../packages/cli/bin/daybook.js", import.meta.url))

/** This environment for a command that works in this folder alone, without keys of providers and settings of Daybook. */
export const environmentIn = (folder: string) => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/_API_KEY$|^DAYBOOK_|^OTEL_/.test(name))),
  HOME: folder,
  DAYBOOK_DB: join(folder, "daybook.sqlite")
})

/** Milliseconds that `node` with these words takes. */
const timed = (folder: string, words: ReadonlyArray<string>): number => {
  const started = performance.now()
  const { status, stderr } = spawnSync(process.execPath, words, {
    cwd: folder,
    env: environmentIn(folder),
    input: "",
    encoding: "utf8"
  })
  if (status !== 0) throw new Error(`node ${words.join(" ")} ended with ${status}: ${stderr}`)
  return performance.now() - started
}

export interface Result {
  /** Milliseconds of `node -e 0`. */
  readonly node: number
  /** Of each command against that, within a round. */
  readonly help: number
  readonly events: number
  readonly sessions: number
}

/** Medians over the rounds, of a database with one short session. */
export const measure = (directory: string, rounds: number): Result => {
  const folder = join(directory, "cold-start")
  mkdirSync(folder)
  timed(folder, [daybook, "prompt", "hello"])
  const found = Array.from({ length: rounds }, () => {
    const node = timed(folder, ["-e", "0"])
    const against = (word: string) => timed(folder, [daybook, word]) / node
    return { node, help: against("--help"), events: against("events"), sessions: against("sessions") }
  })
  const middle = (name: keyof Result) => median(found.map((each) => each[name]))
  return { node: middle("node"), help: middle("help"), events: middle("events"), sessions: middle("sessions") }
}
