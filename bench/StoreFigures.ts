/** The figures of the store: appends, replays, tails, its size, retention, search and imported logs. */
import { brisk } from "../packages/log/src/retention/Pace.ts"
import * as Append from "./Append.ts"
import * as DiskUse from "./DiskUse.ts"
import * as FanOut from "./FanOut.ts"
import { type Figure, quantile } from "./Figures.ts"
import * as Formats from "./Formats.ts"
import * as Opening from "./Opening.ts"
import { postgresPrograms } from "../test/support/PostgresServer.ts"
import * as Postgres from "./Postgres.ts"
import * as Pruning from "./Pruning.ts"
import * as Replay from "./Replay.ts"
import * as Search from "./Search.ts"
import { freshFile } from "./Stores.ts"
import { atLeast, atMost, type Options } from "./Options.ts"

export const append = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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
    {
      name: "the same, against 32 beside 32 healthy others",
      value: found.besideRefused.againstOthers,
      unit: "x",
      bar: atLeast(0.9)
    }
  ]
}

export const postgres = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  // A machine without a server has no figures.
  if (postgresPrograms() === undefined) return []
  const share = quick ? 4 : 1
  const amounts = {
    together: 12_800 / share,
    alone: 2_000 / share,
    events: 40_000 / share,
    wakes: 400 / share,
    turns: 240 / share
  }
  const found = await Postgres.measure(directory, amounts, rounds)
  return [
    { name: "PostgreSQL: raw unnest insert of 64 rows a transaction", value: found.raw64, unit: "per second" },
    { name: "PostgreSQL: append, 64 publishers", value: found.ours64, unit: "per second" },
    { name: "PostgreSQL: the same, against raw", value: found.ratio64, unit: "x", bar: atLeast(0.7) },
    { name: "PostgreSQL: raw insert of a row, p50", value: found.rawP50, unit: "ms" },
    { name: "PostgreSQL: append, 1 publisher, p50", value: found.oursP50, unit: "ms" },
    { name: "PostgreSQL: the same, above raw", value: found.over, unit: "ms", bar: atMost(0.5) },
    { name: "PostgreSQL: raw replay, paged SELECT + JSON.parse", value: found.rawReplay, unit: "per second" },
    { name: "PostgreSQL: replay, tail", value: found.replay, unit: "per second" },
    { name: "PostgreSQL: the same, against raw", value: found.replayRatio, unit: "x", bar: atLeast(0.7) },
    { name: "warm turn, a file", value: found.fileTurn, unit: "ms" },
    { name: "PostgreSQL: warm turn", value: found.turn, unit: "ms" },
    { name: "PostgreSQL: the same, against a file", value: found.turnRatio, unit: "x", bar: atMost(2) },
    { name: "PostgreSQL: a tail on another node, p50 after the commit", value: found.wakeP50, unit: "ms" },
    { name: "PostgreSQL: the same, p99", value: found.wakeP99, unit: "ms", bar: atMost(20) }
  ]
}

export const replay = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = await Replay.measure(directory, 100_000, rounds)
  return [
    { name: "raw replay, paged SELECT + JSON.parse", value: found.raw, unit: "per second" },
    { name: "replay, tail", value: found.tail, unit: "per second", bar: atLeast(100_000) },
    { name: "replay, tail, against raw", value: found.ratio, unit: "x" },
    { name: "replay, read", value: found.read, unit: "per second" },
    { name: "replay, read, against one that compares no checksum", value: found.checking, unit: "x", bar: atMost(1.05) }
  ]
}

export const fanOut = async ({ directory, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const found = await FanOut.measure(directory, rounds)
  return [
    { name: "append to the last of 1,000 tails, p50", value: found.p50, unit: "ms" },
    { name: "append to the last of 1,000 tails, p99", value: found.p99, unit: "ms", bar: atMost(50) },
    { name: "append to 1 tail", value: found.one, unit: "ms" },
    { name: "append to the last of 50 tails", value: found.fifty, unit: "ms", bar: atMost(10) },
    { name: "50 tails against 1", value: found.ratio, unit: "x" }
  ]
}

export const opening = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
  const { large, small } = await Opening.measure(directory, quick ? 100_000 : 1_000_000, rounds)
  const count = large.events.toLocaleString("en-GB")
  return [
    { name: "open a store of 1,000 events", value: small.ms, unit: "ms" },
    { name: `open a store of ${count} events`, value: large.ms, unit: "ms", bar: atMost(1000) },
    { name: `opening ${count} against 1,000`, value: large.ms / small.ms, unit: "x", note: "1 is independent" }
  ]
}

export const disk = async ({ directory, quick }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const prune = async ({ directory, full, quick }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const search = async ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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

export const formats = ({ directory, quick, rounds }: Options): Promise<ReadonlyArray<Figure>> => {
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
