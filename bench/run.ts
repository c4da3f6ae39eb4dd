/**
 * Runs the benchmarks: our log against bare better-sqlite3, in one run on one disk, alternating, with medians over the
 * rounds. Ratios are taken within a round, so that a slow moment of the machine affects both sides.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { cpus } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { Struct } from "effect"
import { brisk } from "../packages/log/src/retention/Pace.ts"
import * as Append from "./Append.ts"
import * as ColdStart from "./ColdStart.ts"
import * as DiskUse from "./DiskUse.ts"
import * as FanOut from "./FanOut.ts"
import { type Figure, quantile, table, verdict } from "./Figures.ts"
import * as FilesExport from "./FilesExport.ts"
import * as Formats from "./Formats.ts"
import * as Http from "./Http.ts"
import * as HttpServe from "./HttpServe.ts"
import * as Imports from "./Imports.ts"
import * as LargeAnswer from "./LargeAnswer.ts"
import * as Opening from "./Opening.ts"
import * as Permissions from "./Permissions.ts"
import * as Pruning from "./Pruning.ts"
import * as Replay from "./Replay.ts"
import * as SandboxedCommand from "./SandboxedCommand.ts"
import * as Search from "./Search.ts"
import * as Served from "./Served.ts"
import { shell } from "./ShellFigures.ts"
import * as SlowClient from "./SlowClient.ts"
import { freshFile } from "./Stores.ts"
import * as Turn from "./Turn.ts"
import * as TurnMemory from "./TurnMemory.ts"

/** For `TurnMemory.ts`, which runs in a process of its own. */
export { child as turnsInChild } from "./TurnMemory.ts"

const usage = `npm run bench -- [options]

  --only NAMES   some of append, replay, fan-out, opening, disk, turn, files, slow-client,
                 large-answer, permissions, imports, cold-start, memory, served, prune, search, formats, shell, http;
                 separated by commas
  --quick        fewer rounds, and smaller stores
  --full         prune a store of 1,000 sessions and 5 GB (default 1/20 of it, quick 1/100)
  --rounds N     rounds of each measurement (default 5, quick 2)
  --dir DIR      the folder for the databases (default: in node_modules, on the project's disk)
  --json         print one JSON object instead of the table`

interface Options {
  /** The folder of the bundles. */
  readonly cache: string
  readonly directory: string
  readonly rounds: number
  readonly quick: boolean
  readonly full: boolean
}

const atLeast = (value: number) => ({ at: "least", value }) as const
const atMost = (value: number) => ({ at: "most", value }) as const

const append = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = await Append.measure(directory, rounds)
  return [
    { name: "raw append, 1 event a FULL transaction", value: found.rawOne, unit: "per second" },
    { name: "raw append, 100 events a FULL transaction", value: found.rawHundred, unit: "per second" },
    ...found.ours.flatMap(({ publishers, rate, ratio }): ReadonlyArray<Figure> => {
      const name = `append, ${publishers} publisher${publishers === 1 ? "" : "s"}`
      return [
        { name, value: rate, unit: "per second" },
        {
          name: `${name}, against raw`,
          value: ratio,
          unit: "x",
          note: "of raw, 1 event a FULL transaction",
          ...(publishers === 64 ? { bar: atLeast(4) } : {})
        }
      ]
    }),
    { name: "raw append, p50", value: found.rawP50, unit: "ms" },
    { name: "raw append, p99", value: found.rawP99, unit: "ms" },
    { name: "append, 1 publisher, p50", value: found.p50, unit: "ms" },
    { name: "append, 1 publisher, p50 above raw", value: found.overRaw, unit: "ms", bar: atMost(0.15) },
    { name: "append, 1 publisher, p99", value: found.p99, unit: "ms" },
    { name: "append, 32 publishers beside 32 that are refused", value: found.besideRefused.rate, unit: "per second" },
    { name: "the same, against 32 alone", value: found.besideRefused.againstAlone, unit: "x" },
    { name: "the same, against 32 beside 32 healthy others", value: found.besideRefused.againstOthers, unit: "x" }
  ]
}

const replay = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = await Replay.measure(directory, 100_000, rounds)
  return [
    { name: "raw replay, paged SELECT + JSON.parse", value: found.raw, unit: "per second" },
    { name: "replay, tail", value: found.tail, unit: "per second" },
    { name: "replay, tail, against raw", value: found.ratio, unit: "x", bar: atLeast(0.85) },
    { name: "replay, read", value: found.read, unit: "per second" },
    { name: "replay, read, against one that compares no checksum", value: found.checking, unit: "x", bar: atMost(1.05) }
  ]
}

const fanOut = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = await FanOut.measure(directory, rounds)
  return [
    { name: "append to the last of 1,000 tails, p50", value: found.p50, unit: "ms" },
    { name: "append to the last of 1,000 tails, p99", value: found.p99, unit: "ms", bar: atMost(25) },
    { name: "append to 1 tail", value: found.one, unit: "ms" },
    { name: "append to the last of 50 tails", value: found.fifty, unit: "ms" },
    { name: "50 tails against 1", value: found.ratio, unit: "x", bar: atMost(1.3) }
  ]
}

const opening = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const { large, small } = await Opening.measure(directory, quick ? 100_000 : 1_000_000, rounds)
  const count = large.events.toLocaleString("en-GB")
  return [
    { name: "open a store of 1,000 events", value: small.ms, unit: "ms" },
    { name: `open a store of ${count} events`, value: large.ms, unit: "ms", bar: atMost(1000) },
    { name: `opening ${count} against 1,000`, value: large.ms / small.ms, unit: "x", note: "1 is independent" }
  ]
}

const disk = async ({ directory, quick }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = await DiskUse.measure(directory, quick ? 20 : 100)
  return [
    { name: "transcript", value: found.transcriptBytes / 1e6, unit: "MB" },
    { name: "its database", value: found.diskBytes / 1e6, unit: "MB" },
    { name: "bytes on disk a byte of transcript", value: found.ratio, unit: "x", bar: atMost(2) },
    ...found.parts
      .filter(({ bytes }) => bytes > found.diskBytes / 200)
      .map(({ bytes, name }): Figure => ({ name: `of it, ${name}`, value: bytes / 1e6, unit: "MB" }))
  ]
}

const turn = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const messages = quick ? 10_000 : 100_000
  const found = await Turn.measure(directory, messages, rounds)
  const count = messages.toLocaleString("en-GB")
  const warm = { ms: atMost(8), statements: atMost(30), commits: atMost(5) }
  const calls = Object.entries(found.calls ?? {}).map(([name, value]): Figure => ({
    name: `warm turn, ${name}`,
    value,
    unit: "a turn"
  }))
  const turns = (["cold", "warm"] as const).flatMap((kind): ReadonlyArray<Figure> => {
    const { large, small, timeRatio } = found[kind]
    const bars = kind === "warm" ? warm : undefined
    const barOf = (name: keyof typeof warm) => (bars === undefined ? {} : { bar: bars[name] })
    const ratio = (name: string, value: number): Figure => ({
      name: `${kind} turn, ${name}, ${count} messages against 100`,
      value,
      unit: "x",
      bar: atMost(1.1)
    })
    return [
      { name: `${kind} turn at 100 messages`, value: small.ms, unit: "ms", ...barOf("ms") },
      { name: `${kind} turn at 100 messages, processor time`, value: small.cpuMs, unit: "ms" },
      { name: `${kind} turn at ${count} messages`, value: large.ms, unit: "ms" },
      ratio("time", timeRatio),
      { name: `${kind} turn, commits`, value: large.commits, unit: "a turn", ...barOf("commits") },
      { name: `${kind} turn, WAL pages`, value: large.pages, unit: "a turn" },
      {
        name: `${kind} turn at ${count} messages, statements`,
        value: large.statements,
        unit: "a turn",
        ...barOf("statements")
      },
      ratio("statements", large.statements / small.statements),
      { name: `${kind} turn at ${count} messages, rows`, value: large.rows, unit: "a turn" },
      ratio("rows", large.rows / small.rows)
    ]
  })
  return [...turns, ...calls]
}

const files = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const messages = quick ? 10_000 : 100_000
  const found = await FilesExport.measure(directory, messages, Math.min(rounds, 3))
  const { beside, quiet } = found.prompt
  const count = messages.toLocaleString("en-GB")
  return [
    { name: `lines of ${count} messages`, value: found.megabytes, unit: "MB" },
    { name: "plain JSON.stringify and append", value: found.plain, unit: "MB/s" },
    { name: "export", value: found.exported, unit: "MB/s" },
    { name: "export, against plain", value: found.ratio, unit: "x", bar: atLeast(0.5) },
    { name: "export, memory", value: found.memory, unit: "MB", note: "resident, all of the process", bar: atMost(150) },
    { name: "turn, p50 before an export", value: quiet.p50, unit: "ms" },
    { name: "turn, p95 before an export", value: quiet.p95, unit: "ms" },
    { name: "turn, p50 during an export, against before", value: beside.p50 / quiet.p50, unit: "x", bar: atMost(2) },
    { name: "turn, p95 during an export, against before", value: beside.p95 / quiet.p95, unit: "x" }
  ]
}

const slowClient = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const { alone, beside, cost, megabytes, ratio } = await SlowClient.measure(directory, quick ? 20e6 : 100e6, rounds)
  const run = `run of ${megabytes} MB of deltas`
  return [
    { name: `${run}, a client that reads`, value: alone.seconds * 1000, unit: "ms" },
    {
      name: `${run}, memory`,
      value: alone.memory,
      unit: "MB",
      note: "resident, all of the process",
      bar: atMost(250)
    },
    { name: `${run}, and one that does not`, value: beside.seconds * 1000, unit: "ms" },
    { name: `${run}, and one that does not, memory`, value: beside.memory, unit: "MB" },
    { name: "a client that does not read, time", value: ratio, unit: "x", note: "1 is no difference" },
    { name: "a client that does not read, memory", value: cost, unit: "MB" }
  ]
}

const largeAnswer = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const length = quick ? 4 * 1024 * 1024 : 16 * 1024 * 1024
  const { long, longest, short, times } = await LargeAnswer.measure(directory, length, rounds)
  const answer = `answer of ${length / 1024 / 1024} Mi characters`
  return [
    { name: `${answer}, longest ping beside it`, value: long.longest, unit: "ms" },
    { name: `${answer}, longest ping beside the next turn`, value: long.next, unit: "ms" },
    { name: `${answer}, memory`, value: long.memory, unit: "MB", note: "resident, all of the process" },
    { name: `1/${times} of that answer, longest ping beside it`, value: short.longest, unit: "ms" },
    {
      name: `longest ping, ${times} times the answer`,
      value: longest,
      unit: "x",
      note: `${times} grows with the answer`
    }
  ]
}

const permissions = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = await Permissions.measure(rounds)
  const sandbox = await SandboxedCommand.measure(directory, rounds)
  return [
    { name: "load the shell's grammar", value: found.loading, unit: "ms", note: "once, at the first command" },
    { name: "decision, a command", value: found.one, unit: "ms", bar: atMost(1) },
    { name: "decision, a line of 14 commands", value: found.many, unit: "ms", bar: atMost(1) },
    { name: "decision, a line of 331 commands", value: found.longest, unit: "ms" },
    { name: "command", value: sandbox.bare, unit: "ms" },
    { name: "command in a sandbox", value: sandbox.sandboxed, unit: "ms" },
    { name: "command in a sandbox, above a bare one", value: sandbox.more, unit: "ms", bar: atMost(15) }
  ]
}

const imports = async ({ rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const costs = Imports.measure(["effect", "@daybook/log", "@daybook/core"], rounds)
  const base = costs.get("effect")
  return [...costs].flatMap(([name, { heap, ms }]): ReadonlyArray<Figure> => {
    const own: ReadonlyArray<Figure> = [
      { name: `import of ${name}`, value: ms, unit: "ms" },
      {
        name: `heap of ${name}`,
        value: heap / 1e6,
        unit: "MB",
        ...(name === "@daybook/core" ? { bar: atMost(45) } : {})
      }
    ]
    if (base === undefined || name === "effect") return own
    return [...own, { name: `import of ${name}, against effect`, value: ms / base.ms, unit: "x" }]
  })
}

const coldStart = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = ColdStart.measure(directory, rounds * 3)
  return [
    { name: "node -e 0", value: found.node, unit: "ms" },
    { name: "daybook --help, against node -e 0", value: found.help, unit: "x", bar: atMost(1.2) },
    { name: "daybook events, against node -e 0", value: found.events, unit: "x", bar: atMost(2.2) },
    { name: "daybook sessions, against node -e 0", value: found.sessions, unit: "x" }
  ]
}

const memory = async ({ directory, quick }: Options): Promise<ReadonlyArray<Figure>> => {
  const turns = quick ? 200 : 1000
  const { heap, resident } = TurnMemory.measure(directory, turns)
  const after = `after ${turns.toLocaleString("en-GB")} turns`
  return [
    { name: `memory ${after}`, value: resident / 1e6, unit: "MB", note: "resident", bar: atMost(200) },
    { name: `heap ${after}`, value: heap / 1e6, unit: "MB", note: "without a collection" }
  ]
}

const served = async ({ quick }: Options): Promise<ReadonlyArray<Figure>> => {
  if (process.platform !== "linux") return []
  const found = await Served.measure(quick ? 20 : 100)
  const { calls } = found
  return [
    { name: "serve, idle", value: found.idle, unit: "MB", note: "resident", bar: atMost(120) },
    { name: "serve, after its turns", value: found.after, unit: "MB", note: "resident" },
    { name: "served turn, CPU", value: found.cpu, unit: "ms", note: "of the server, offline model, files included" },
    { name: "served turn, written", value: found.written / 1e3, unit: "KB" },
    ...(calls === undefined ? [] : Struct.entries(calls)).map(([name, value]): Figure => ({
      name: `served turn, ${name}`,
      value,
      unit: "a turn"
    }))
  ]
}

const prune = async ({ directory, full, quick }: Options): Promise<ReadonlyArray<Figure>> => {
  const part = full ? 1 : quick ? 1 / 100 : 1 / 20
  const size = { sessions: 1000 * part, bytes: 5e9 * part, target: 500e6 * part }
  const found = await Pruning.measure(freshFile(directory), size, brisk)
  const { beside, quiet } = found
  const shrink = found.before - found.after
  return [
    { name: `store of ${size.sessions} sessions`, value: found.before / 1e6, unit: "MB" },
    { name: "store, pruned", value: found.after / 1e6, unit: "MB", bar: atMost(600 * part) },
    { name: "of the shrink, dropped events", value: found.dropped / shrink, unit: "x", note: "payloads" },
    {
      name: "of the shrink, compression of kept events",
      value: found.compressed / shrink,
      unit: "x",
      note: "payloads"
    },
    { name: "sessions that show something else", value: found.changed, unit: "sessions", bar: atMost(0) },
    { name: "time of the prune", value: found.seconds * 1000, unit: "ms" },
    { name: "steps of the prune", value: found.steps / found.seconds, unit: "per second" },
    { name: "events of the prune", value: found.events / found.seconds, unit: "per second" },
    { name: "prompt, p50 before the prune", value: quiet.p50, unit: "ms" },
    { name: "prompt, p99 before the prune", value: quiet.p99, unit: "ms" },
    { name: "prompt, p50 during the prune", value: beside.p50, unit: "ms", note: `of ${beside.prompts} prompts` },
    { name: "prompt, p99 during the prune", value: beside.p99, unit: "ms" },
    { name: "prompt, longest during the prune", value: beside.longest, unit: "ms" },
    { name: "prompt, p99 during the prune, against before", value: beside.p99 / quiet.p99, unit: "x", bar: atMost(3) }
  ]
}

const search = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = await Search.measure(directory, quick ? 100_000 : 1_000_000, rounds)
  const texts = `${found.parts.toLocaleString("en-GB")} texts`
  const [alone, followed] = [found.alone, found.followed].map((each) => quantile(each, 0.99))
  return [
    { name: `search ${texts}, p50`, value: found.p50, unit: "ms", bar: atMost(20), note: found.slowest },
    { name: `search ${texts}, p99`, value: found.p99, unit: "ms" },
    {
      name: "searches that found nothing",
      value: found.empty.length,
      unit: "searches",
      bar: atMost(0),
      note: found.empty.join("; ")
    },
    { name: "text", value: found.textBytes / 1e6, unit: "MB" },
    { name: "index against text", value: found.indexBytes / found.textBytes, unit: "x" },
    { name: "index, processor time", value: found.indexSeconds * 1_000, unit: "ms" },
    { name: "remove a session of 1,000 texts", value: found.removeMs, unit: "ms" },
    { name: "append without the index, p50", value: quantile(found.alone, 0.5), unit: "ms" },
    { name: "append while the index follows, p50", value: quantile(found.followed, 0.5), unit: "ms" },
    { name: "append without the index, p99", value: alone ?? 0, unit: "ms" },
    { name: "append while the index follows, p99", value: followed ?? 0, unit: "ms" }
  ]
}

const formats = ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const { context, imports, list } = Formats.measure(directory, quick, Math.min(rounds, 3))
  const session = `context of ${context.entries.toLocaleString("en-GB")} imported entries`
  return Promise.resolve([
    ...imports.flatMap(({ disk, megabytes, memory, rate, ratio }): ReadonlyArray<Figure> => {
      const log = `import of ${megabytes.toFixed(0)} MB`
      return [
        { name: log, value: rate, unit: "MB/s", note: "of processor time" },
        { name: `${log}, against JSON.parse of the lines`, value: ratio, unit: "x", note: "processor time" },
        { name: `${log}, memory`, value: memory, unit: "MB", note: "resident, all of the process" },
        { name: `${log}, bytes on disk a byte of the log`, value: disk, unit: "x", bar: atMost(2) }
      ]
    }),
    { name: session, value: context.againMs, unit: "ms", note: "database opened" },
    {
      name: `${session}, parsing and walking the log against it`,
      value: context.againRatio,
      unit: "x",
      bar: atLeast(20)
    },
    { name: `${session}, the first of a process`, value: context.ms, unit: "ms", note: "V8's code stored" },
    {
      name: `${session}, the first of a process, against it`,
      value: context.ratio,
      unit: "x",
      bar: atLeast(20),
      note: "V8's code stored on both sides, as the commands'"
    },
    { name: `${session}, memory`, value: context.memory, unit: "MB", note: "resident", bar: atMost(80) },
    { name: `list of ${list.logs} logs`, value: list.ms, unit: "ms", note: "median of 40", bar: atMost(20) },
    { name: `list of ${list.logs} logs, against its system calls`, value: list.ratio, unit: "x" },
    { name: `list of ${list.logs} logs, the first of a process`, value: list.firstMs, unit: "ms" }
  ])
}

const http = async ({ cache, directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const { many, one, readers, replay } = await Http.measure(cache, directory, rounds, quick ? 500 : 2_000)
  const sides = ({ bare, ours }: Http.Result["one"], at: string): ReadonlyArray<Figure> => [
    { name: `node:http and a FULL insert, ${at}`, value: bare, unit: "per second" },
    { name: `prompts over HTTP, ${at}`, value: ours, unit: "per second" },
    { name: `prompts over HTTP, ${at}, against it`, value: ours / bare, unit: "x", bar: atLeast(0.5) }
  ]
  const served = await HttpServe.measure(rounds)
  return [
    ...sides(one, "1 connection"),
    ...sides(many, "64 connections"),
    { name: "replay of 1,001 events", value: replay, unit: "ms", bar: atMost(20) },
    { name: "append to 1,000 readers, p50", value: readers.p50, unit: "ms" },
    { name: "append to 1,000 readers, p99", value: readers.p99, unit: "ms", bar: atMost(50) },
    { name: "serve --http, start to first answer", value: served.start, unit: "ms", bar: atMost(500) },
    { name: "serve --http, idle", value: served.idle, unit: "MB", note: "resident", bar: atMost(100) }
  ]
}

const measurements: Record<string, (options: Options) => Promise<ReadonlyArray<Figure>>> = {
  append,
  replay,
  "fan-out": fanOut,
  opening,
  disk,
  turn,
  files,
  "slow-client": slowClient,
  "large-answer": largeAnswer,
  permissions,
  imports,
  "cold-start": coldStart,
  memory,
  served,
  prune,
  search,
  formats,
  shell,
  http
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
