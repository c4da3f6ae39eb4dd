/** The memory of a server's start: V8 itself reports the collections that the server asks for. */
import { assert, beforeAll, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { build } from "./support/Bundle.ts"

beforeAll(() => void build())

/** The collections that a server has asked for when as many threads as given have had one, after it was ready. */
const collected = async (words: ReadonlyArray<string>, threads: number) => {
  const folder = mkdtempSync(join(tmpdir(), "memory-"))
  const server = spawn(process.execPath, ["--trace-gc", build().bin, "serve", ...words], {
    cwd: folder,
    env: { HOME: folder, DAYBOOK_DB: join(folder, "daybook.sqlite"), DAYBOOK_ROOT: join(folder, "files") },
    stdio: ["ignore", "pipe", "ignore"]
  })
  const gone = once(server, "exit")
  const found = new Set<string>()
  let [early, ready] = [0, false]
  for await (const line of createInterface(server.stdout)) {
    ready ||= line === "ready"
    // "[pid:isolate] time: Mark-Compact ...; the reason"
    const [, isolate] = /^\[\d+:(\w+)\].* Mark-Compact .*low memory notification/.exec(line) ?? []
    if (isolate === undefined || found.has(isolate)) continue
    found.add(isolate)
    if (!ready) early++
    // A second signal would end the server at once.
    if (found.size === threads) server.kill("SIGTERM")
  }
  const [status] = await gone
  rmSync(folder, { recursive: true, force: true })
  return { early, threads: found.size, status }
}

it("CL-313: a server of HTTP collects its start when it is ready, and ends with a signal", async () => {
  assert.deepStrictEqual(await collected(["--http", "127.0.0.1:0"], 1), { early: 0, threads: 1, status: 0 })
})

it("CL-313: a server that keeps files collects in the thread of the exporter too", async () => {
  const { status, threads } = await collected(["--agent", "build"], 2)
  assert.deepStrictEqual([threads, status], [2, 0])
})

/** The options of V8 in the command line of a server that was started with these, when it is ready. */
const optionsOf = async (...options: ReadonlyArray<string>) => {
  const folder = mkdtempSync(join(tmpdir(), "memory-"))
  const server = spawn(process.execPath, [...options, build().bin, "serve", "--http", "127.0.0.1:0"], {
    cwd: folder,
    env: { HOME: folder, DAYBOOK_DB: join(folder, "daybook.sqlite") },
    stdio: ["ignore", "pipe", "ignore"]
  })
  const gone = once(server, "exit")
  let words: ReadonlyArray<string> = []
  for await (const line of createInterface(server.stdout)) {
    if (line !== "ready") continue
    // The process that was started is the one that serves.
    words = readFileSync(`/proc/${server.pid}/cmdline`, "latin1").split("\0")
    server.kill("SIGTERM")
  }
  const [status] = await gone
  rmSync(folder, { recursive: true, force: true })
  return { options: words.filter((word) => word.startsWith("--max-")), status }
}

it("CL-840: the process that was started serves, with a bounded young generation, and ends with a signal", async () => {
  assert.deepStrictEqual(await optionsOf(), { options: ["--max-semi-space-size=16"], status: 0 })
})

it("CL-840: a bound that the operator sets stays", async () => {
  const options = ["--max-semi-space-size=64"]
  assert.deepStrictEqual(await optionsOf(...options), { options, status: 0 })
})
