/** The figures of what runs on the store: turns, servers, exports, their memory, and the start of the command. */
import { Struct } from "effect"
import * as ColdStart from "./ColdStart.ts"
import type { Figure } from "./Figures.ts"
import * as FilesExport from "./FilesExport.ts"
import * as Http from "./Http.ts"
import * as HttpServe from "./HttpServe.ts"
import * as Imports from "./Imports.ts"
import * as LargeAnswer from "./LargeAnswer.ts"
import * as Permissions from "./Permissions.ts"
import * as SandboxedCommand from "./SandboxedCommand.ts"
import * as Streams from "./Streams.ts"
import * as Served from "./Served.ts"
import * as SlowClient from "./SlowClient.ts"
import * as Turn from "./Turn.ts"
import * as TurnMemory from "./TurnMemory.ts"
import { atLeast, atMost, type Options } from "./Options.ts"

export const turn = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const files = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const messages = quick ? 10_000 : 100_000
  const found = await FilesExport.measure(directory, messages, Math.min(rounds, 3))
  const { beside, quiet } = found.prompt
  const count = messages.toLocaleString("en-GB")
  return [
    { name: `lines of ${count} messages`, value: found.megabytes, unit: "MB" },
    { name: "plain JSON.stringify and append", value: found.plain, unit: "MB/s" },
    { name: "export", value: found.exported, unit: "MB/s", bar: atLeast(10) },
    { name: "export, against plain", value: found.ratio, unit: "x" },
    { name: "export, memory", value: found.memory, unit: "MB", note: "resident, all of the process", bar: atMost(150) },
    { name: "turn, p50 before an export", value: quiet.p50, unit: "ms" },
    { name: "turn, p95 before an export", value: quiet.p95, unit: "ms" },
    { name: "turn, p50 during an export, against before", value: beside.p50 / quiet.p50, unit: "x", bar: atMost(2) },
    { name: "turn, p95 during an export, against before", value: beside.p95 / quiet.p95, unit: "x" }
  ]
}

export const slowClient = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const largeAnswer = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const permissions = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const imports = async ({ rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const coldStart = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = ColdStart.measure(directory, rounds * 3)
  return [
    { name: "node -e 0", value: found.node, unit: "ms" },
    { name: "daybook --help, against node -e 0", value: found.help, unit: "x", bar: atMost(1.2) },
    { name: "daybook events, against node -e 0", value: found.events, unit: "x", bar: atMost(2.2) },
    { name: "daybook sessions, against node -e 0", value: found.sessions, unit: "x" }
  ]
}

export const memory = async ({ directory, quick }: Options): Promise<ReadonlyArray<Figure>> => {
  const turns = quick ? 200 : 1000
  const { heap, resident } = TurnMemory.measure(directory, turns)
  const after = `after ${turns.toLocaleString("en-GB")} turns`
  return [
    { name: `memory ${after}`, value: resident / 1e6, unit: "MB", note: "resident", bar: atMost(200) },
    { name: `heap ${after}`, value: heap / 1e6, unit: "MB", note: "without a collection" }
  ]
}

export const served = async ({ quick }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const http = async ({ cache, directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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

/** The floor and `daybook serve` with so many sessions at once, each at 50 tokens a second, and with many that wait. */
export const streams = async ({ cache, directory, quick }: Options): Promise<ReadonlyArray<Figure>> => {
  const tokens = quick ? 150 : 300
  const plain = (sessions: number, readers = 1) => ({ sessions, readers, tokens })
  const hundred = plain(100)
  const loads: ReadonlyArray<readonly [string, Streams.Load]> = quick
    ? [
        ["20 streams", plain(20)],
        ["100 streams", hundred]
      ]
    : [
        ["1 stream", plain(1)],
        ["20 streams", plain(20)],
        ["50 streams", plain(50)],
        ["100 streams", hundred],
        ["100 streams, 10 readers each", plain(100, 10)],
        ["100 streams, 3 calls of a tool before", { ...hundred, calls: 3 }],
        ["100 streams, a slow and a late reader each", { ...hundred, slow: 1, late: 1 }],
        ["200 streams", plain(200)]
      ]
  const figures: Array<Figure> = []
  for (const [at, load] of loads) {
    const { floor, ours } = await Streams.measure(cache, directory, load)
    figures.push(
      { name: `${at}: floor, a token`, value: floor.cpu, unit: "µs", note: "processor time" },
      { name: `${at}: floor, delay p99`, value: floor.p99, unit: "ms" },
      { name: `${at}: a token`, value: ours.cpu, unit: "µs", note: "processor time" },
      { name: `${at}: a token, against the floor`, value: ours.cpu / floor.cpu, unit: "x", bar: atMost(3) },
      { name: `${at}: delay p50`, value: ours.p50, unit: "ms", bar: atMost(5) },
      { name: `${at}: delay p99`, value: ours.p99, unit: "ms", bar: atMost(load.sessions > 100 ? 150 : 50) },
      { name: `${at}: resident at most`, value: ours.resident / 1e6, unit: "MB", bar: atMost(250) },
      { name: `${at}: longest answer`, value: ours.longest, unit: "ms", note: ours.whole ? "all whole" : "NOT WHOLE" }
    )
  }
  const { floor, ours } = await Streams.measureWaiting(cache, directory, quick ? 200 : 1_000)
  const at = `${quick ? 200 : 1_000} streams of a token in two seconds`
  figures.push(
    { name: `${at}: floor, all`, value: floor.share * 100, unit: "%", note: "of a core" },
    { name: `${at}: floor, resident at most`, value: floor.resident / 1e6, unit: "MB" },
    { name: `${at}: all`, value: ours.share * 100, unit: "%", note: "of a core" },
    { name: `${at}: all, against the floor`, value: ours.share / floor.share, unit: "x", bar: atMost(3) },
    { name: `${at}: resident at most`, value: ours.resident / 1e6, unit: "MB", bar: atMost(400) },
    { name: `${at}: whole`, value: ours.whole ? 1 : 0, unit: "x", bar: atLeast(1) }
  )
  return figures
}
