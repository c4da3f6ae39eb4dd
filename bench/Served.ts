/**
 * Measures the built `daybook serve`, in a process of its own with the offline model: its memory without work, and what a turn
 * costs in CPU, written bytes and system calls. Linux only, because /proc counts; the system calls need `strace`. It needs
 * `npm run build`.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { daybook, environmentIn } from "./ColdStart.ts"

/** System calls that are counted. */
const calls = ["fsync", "fdatasync", "rename", "statx", "readlink"] as const
type Call = (typeof calls)[number]

const hasStrace = (): boolean => spawnSync("strace", ["-V"]).status === 0

/** Resolves with the last output when the output contains the text. */
const printed = (stream: NodeJS.ReadableStream | null, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let seen = ""
    stream?.on("data", (chunk: Buffer) => {
      seen += chunk.toString("latin1")
      if (seen.includes(text)) resolve(seen)
      seen = seen.slice(-1024)
    })
    stream?.on("end", () => reject(new Error(`it ended without ${text}: ${seen}`)))
  })

/** A server in a folder, with the path of its socket. */
const start = async (folder: string, tracer: ReadonlyArray<string>) => {
  const words = [...tracer, process.execPath, daybook, "serve", "--agent", "build", "--root", folder]
  const [command = "", ...rest] = words
  const server = spawn(command, rest, {
    cwd: folder,
    env: environmentIn(folder),
    stdio: ["ignore", "pipe", "ignore"],
    // Without a terminal, as a service.
    detached: true
  })
  const [, socket] = /listens at (\S+)/.exec(await printed(server.stdout, "ready\n")) ?? []
  if (socket === undefined) throw new Error("the server names no socket")
  return { server, socket }
}

/** Stops the server; one below `strace`, which takes no signal, is its child. */
const stop = async (server: ChildProcess, traced: boolean): Promise<void> => {
  const gone = once(server, "exit")
  const { pid = 0 } = server
  process.kill(traced ? Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1")) : pid, "SIGTERM")
  await gone
}

let sent = 0

/** Sends prompts one after the other, each in the same session. */
const prompts = async (path: string, count: number): Promise<void> => {
  const client = connect(path)
  for (let turn = 0; turn < count; turn++) {
    const done = printed(client, '"type":"done"')
    client.write(
      `${JSON.stringify({ op: "send", id: `m${sent++}`, input: "And what does the next workspace hold?" })}\n`
    )
    await done
    client.removeAllListeners("data").removeAllListeners("end")
  }
  client.destroy()
}

/** CPU milliseconds, written bytes and resident bytes of a process so far. */
const usage = (pid: number) => {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const number = (file: string, name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${pid}/${file}`, "latin1"))?.[1])
  // In ticks of 10 ms.
  const cpu = (Number(fields[11]) + Number(fields[12])) * 10
  return { cpu, written: number("io", "wchar"), resident: number("status", "VmRSS") * 1024 }
}

const inFolder = async <A>(body: (folder: string) => Promise<A>): Promise<A> => {
  // Short, because a socket's path has at most 107 bytes.
  const folder = mkdtempSync(join(tmpdir(), "served-"))
  try {
    return await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Counts the calls of a server's life with this many turns, of all its threads. */
const counted = (turns: number): Promise<Readonly<Record<Call, number>>> =>
  inFolder(async (folder) => {
    const report = join(folder, "calls")
    const tracer = ["strace", "-f", "-c", "-U", "name,calls", "-e", `trace=${calls.join(",")}`, "-o", report]
    const { server, socket } = await start(folder, tracer)
    await prompts(socket, turns)
    await stop(server, true)
    const text = readFileSync(report, "latin1")
    const of = (call: Call) => Number(new RegExp(`^\\s*${call}\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0)
    return {
      fsync: of("fsync"),
      fdatasync: of("fdatasync"),
      rename: of("rename"),
      statx: of("statx"),
      readlink: of("readlink")
    }
  })

export interface Result {
  /** Resident megabytes before the first prompt, and after the turns. */
  readonly idle: number
  readonly after: number
  /** Of one turn. */
  readonly cpu: number
  readonly written: number
  readonly calls: Readonly<Record<Call, number>> | undefined
}

const used = (turns: number): Promise<Omit<Result, "calls">> =>
  inFolder(async (folder) => {
    const { server, socket } = await start(folder, [])
    const pid = server.pid ?? 0
    // The work after the start, for example that of timers, is part of an idle server.
    await new Promise((resolve) => setTimeout(resolve, 2000))
    const idle = usage(pid)
    // The first turns compile code.
    await prompts(socket, 10)
    const before = usage(pid)
    await prompts(socket, turns)
    const after = usage(pid)
    await stop(server, false)
    return {
      idle: idle.resident / 1e6,
      after: after.resident / 1e6,
      cpu: (after.cpu - before.cpu) / turns,
      written: (after.written - before.written) / turns
    }
  })

export const measure = async (turns: number): Promise<Result> => {
  const figures = await used(turns)
  if (!hasStrace()) return { ...figures, calls: undefined }
  const [few, many] = [await counted(5), await counted(5 + turns)]
  const calls = (call: Call) => (many[call] - few[call]) / turns
  return {
    ...figures,
    calls: {
      fsync: calls("fsync"),
      fdatasync: calls("fdatasync"),
      rename: calls("rename"),
      statx: calls("statx"),
      readlink: calls("readlink")
    }
  }
}
