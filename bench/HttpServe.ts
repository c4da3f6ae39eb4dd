/** Measures `daybook serve --http` alone, as it is installed: how soon it answers, and its memory without work. Linux only. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { daybook, environmentIn } from "./ColdStart.ts"
import { median } from "./Figures.ts"

export interface Result {
  /** From the start of the process to its first answer, in milliseconds. */
  readonly start: number
  /** Resident megabytes two seconds later. */
  readonly idle: number
}

const serveOnce = async (folder: string): Promise<Result> => {
  const started = performance.now()
  const server = spawn(process.execPath, [daybook, "serve", "--http", "127.0.0.1:0", "--root", folder], {
    cwd: folder,
    env: environmentIn(folder),
    stdio: ["ignore", "pipe", "ignore"]
  })
  let url: string | undefined
  for await (const line of createInterface(server.stdout)) {
    url ??= /https?:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0]
    if (line === "ready") break
  }
  const response = await fetch(`${url}/health`)
  await response.text()
  const start = performance.now() - started
  // The work after the start, for example that of timers, is part of an idle server.
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  const resident = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${server.pid}/status`, "latin1"))?.[1]
  const gone = once(server, "exit")
  server.kill("SIGTERM")
  await gone
  return { start, idle: (Number(resident) * 1_024) / 1e6 }
}

/** Medians over the rounds; the first start creates the database and is not counted. */
export const measure = async (rounds: number): Promise<Result> => {
  const folder = mkdtempSync(join(tmpdir(), "http-"))
  try {
    await serveOnce(folder)
    const found: Array<Result> = []
    for (let round = 0; round < rounds; round++) found.push(await serveOnce(folder))
    return { start: median(found.map(({ start }) => start)), idle: median(found.map(({ idle }) => idle)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
