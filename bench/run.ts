/**
 * Runs the benchmarks: our log against bare better-sqlite3, in one run on one disk, alternating, with medians over the
 * rounds. Ratios are taken within a round, so that a slow moment of the machine affects both sides.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { cpus } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { type Figure, table, verdict } from "./Figures.ts"
import { redaction, shell } from "./ShellFigures.ts"
import type { Options } from "./Options.ts"
import * as Run from "./RunFigures.ts"
import * as Store from "./StoreFigures.ts"

/** For `TurnMemory.ts`, which runs in a process of its own. */
export { child as turnsInChild } from "./TurnMemory.ts"

const usage = `npm run bench -- [options]

  --only NAMES   some of append, replay, postgres, fan-out, opening, disk, turn, files, slow-client,
                 large-answer, permissions, imports, cold-start, memory, served, prune, search, formats, shell, redaction, http,
                 streams;
                 separated by commas
  --quick        fewer rounds, and smaller stores
  --full         prune a store of 1,000 sessions and 5 GB (default 1/20 of it, quick 1/100)
  --rounds N     rounds of each measurement (default 5, quick 2)
  --dir DIR      the folder for the databases (default: in node_modules, on the project's disk)
  --json         print one JSON object instead of the table`

const measurements: Record<string, (options: Options) => Promise<ReadonlyArray<Figure>>> = {
  append: Store.append,
  replay: Store.replay,
  postgres: Store.postgres,
  "fan-out": Store.fanOut,
  opening: Store.opening,
  disk: Store.disk,
  turn: Run.turn,
  files: Run.files,
  "slow-client": Run.slowClient,
  "large-answer": Run.largeAnswer,
  permissions: Run.permissions,
  imports: Run.imports,
  "cold-start": Run.coldStart,
  memory: Run.memory,
  served: Run.served,
  prune: Store.prune,
  search: Store.search,
  formats: Store.formats,
  shell,
  redaction,
  http: Run.http,
  streams: Run.streams
}

/** Runs turns, for the count of their system calls. */
export { run as runTurns } from "./Turn.ts"

/** Runs the measurements that the arguments name; returns the exit code. */
export const main = async (args: ReadonlyArray<string>, cache: string): Promise<number> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      quick: { type: "boolean", default: false },
      full: { type: "boolean", default: false },
      rounds: { type: "string" },
      dir: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false }
    }
  })
  const names = values.only?.split(",") ?? Object.keys(measurements)
  const unknown = names.filter((name) => measurements[name] === undefined)
  const rounds = Number(values.rounds ?? (values.quick ? 2 : 5))
  if (values.help || unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1) {
    console.error(unknown.length > 0 ? `unknown measurement: ${unknown.join(", ")}\n\n${usage}` : usage)
    return values.help ? 0 : 2
  }
  const directory = mkdtempSync(join(values.dir === undefined ? cache : resolve(values.dir), "bench-"))
  const figures: Array<Figure> = []
  const started = performance.now()
  try {
    for (const name of names) {
      if (!values.json) console.error(`measuring ${name} ...`)
      figures.push(
        ...((await measurements[name]?.({ cache, directory, rounds, quick: values.quick, full: values.full })) ?? [])
      )
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  const seconds = Math.round((performance.now() - started) / 1000)
  const machine = { node: process.version, cpus: cpus().length, cpu: cpus()[0]?.model ?? "unknown" }
  if (values.json) {
    const told = figures.map((figure) => ({ ...figure, verdict: verdict(figure) }))
    console.log(JSON.stringify({ machine, rounds, seconds, figures: told }))
  } else {
    console.log(table(figures))
    console.log(`\n${machine.cpus} cpus (${machine.cpu}), Node ${machine.node}, ${rounds} rounds, ${seconds} s`)
  }
  return 0
}
