/**
 * Measures many sessions that stream at once: a loopback model sends each session 50 tokens a second, and clients over HTTP see each
 * delta. Beside Daybook the floor does the least that shows an answer and keeps it (`StreamsChild.ts`). This process is the model
 * server and the clients; a token carries the time of its sending.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { createServer, type Server } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createInterface, type Interface } from "node:readline"
import { quantile } from "./Figures.ts"
import { freshFile } from "./Stores.ts"

const token = "bench-token-of-the-server"

/** Milliseconds between two tokens of a session. */
const everyMillis = 20

const frame = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", model: "streamer", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

/** A model server that streams so many tokens for each request. */
const startModel = (tokens: number, millis: number): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      request.resume()
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(frame({ role: "assistant", content: "" }, null))
      const begun = performance.now()
      let sent = 0
      const next = () => {
        if (response.destroyed) return
        if (sent === tokens) {
          response.write(frame({}, "stop"))
          response.end("data: [DONE]\n\n")
          return
        }
        response.write(frame({ content: `at ${performance.now().toFixed(2)} ` }, null))
        sent += 1
        setTimeout(next, Math.max(0, begun + sent * millis - performance.now()))
      }
      setTimeout(next, millis)
    }).listen(0, "127.0.0.1", () => resolve(server))
  })

const portOf = (server: Server): number => (server.address() as AddressInfo).port

interface Side {
  readonly child: ChildProcess
  readonly port: number
  readonly usage: () => Promise<{ readonly cpu: number; readonly resident: number }>
}

const nextLine = (lines: Interface): Promise<string> =>
  new Promise((resolve, reject) => {
    lines.once("line", resolve)
    lines.once("close", () => reject(new Error("the child ended")))
  })

const start = async (cache: string, side: "floor" | "ours", filename: string, model: number): Promise<Side> => {
  const argv = [join(cache, "StreamsChild.mjs"), side, filename, String(model), token]
  const child = spawn(process.execPath, argv, { stdio: ["pipe", "pipe", "inherit"] })
  const lines = createInterface(child.stdout)
  const port = Number((await nextLine(lines)).split(" ")[1])
  const usage = async () => {
    child.stdin.write("\n")
    return JSON.parse(await nextLine(lines)) as { cpu: number; resident: number }
  }
  return { child, port, usage }
}

const head = (method: string, path: string, body: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

const opened = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket))
    socket.setNoDelay().once("error", reject)
  })

/** Sends a request and waits for the head of its answer. */
const post = async (socket: Socket, path: string, body: object): Promise<void> => {
  const answered = new Promise<string>((resolve) => socket.once("data", (chunk: Buffer) => resolve(chunk.toString())))
  socket.write(head("POST", path, JSON.stringify(body)))
  const text = await answered
  if (!text.startsWith("HTTP/1.1 2")) throw new Error(text.slice(0, 1_000))
}

/** What one reader saw of an answer. */
interface Seen {
  readonly delays: Array<number>
  /** The joined deltas are the stored text. */
  readonly whole: boolean
}

/** Reads a stream until an answer is stored; `begun` is called when the stream follows. */
const read = (socket: Socket, begun: () => void): Promise<Seen> =>
  new Promise((resolve, reject) => {
    const delays: Array<number> = []
    let [rest, said] = ["", ""]
    const take = (data: string) => {
      const live = /"delta":"([^"]*)"/.exec(data)?.[1]
      if (live !== undefined && !data.includes("text.ended")) {
        const now = performance.now()
        said += live
        for (const [, at] of live.matchAll(/at ([\d.]+) /g)) delays.push(now - Number(at))
      }
      const stored = /session\.next\.text\.ended.*"text":"([^"]*)"/.exec(data)?.[1]
      if (stored !== undefined) {
        socket.destroy()
        resolve({ delays, whole: stored === said || stored.startsWith(said) })
      }
      if (data.includes("session.next.step.failed")) reject(new Error(data.slice(0, 1_000)))
    }
    socket.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString("latin1")).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) {
        if (line.includes("replay.complete")) begun()
        if (line.startsWith("data: ")) take(line.slice(6))
      }
    })
    socket.once("error", reject).once("close", () => reject(new Error("the stream ended early")))
  })

export interface Load {
  readonly sessions: number
  readonly readers: number
  readonly tokens: number
}

export interface Result {
  /** Microseconds of processor time of the server for a token. */
  readonly cpu: number
  /** Milliseconds from the model's write to the reader. */
  readonly p50: number
  readonly p99: number
  /** Resident bytes at most. */
  readonly resident: number
  /** The longest time that an answer took, in milliseconds. */
  readonly longest: number
  readonly whole: boolean
}

const viaDaybook = async (side: Side, directory: string, run: string, { readers, sessions }: Load) => {
  const control = await opened(side.port)
  const ids = Array.from({ length: sessions }, (_, index) => `ses_stream-${run}-${index}`)
  const seen: Array<Promise<Seen>> = []
  for (const id of ids) {
    await post(control, "/sessions", { id, location: { directory } })
    for (let n = 0; n < readers; n++) {
      const socket = await opened(side.port)
      await new Promise<void>((begun) => {
        seen.push(read(socket, begun))
        socket.write(head("GET", `/sessions/${id}/events?live=1`, ""))
      })
    }
  }
  const before = await side.usage()
  for (const [index, id] of ids.entries()) {
    await post(control, `/sessions/${id}/prompts`, { id: `msg_stream-${run}-${index}`, prompt: { text: "Go on." } })
  }
  return { before, seen }
}

const viaFloor = async (side: Side, { sessions }: Load) => {
  const before = await side.usage()
  const seen: Array<Promise<Seen>> = []
  for (let n = 0; n < sessions; n++) {
    const socket = await opened(side.port)
    seen.push(read(socket, () => undefined))
    socket.write(head("POST", "/", ""))
  }
  return { before, seen }
}

/** Streams so many sessions at once, and waits for all answers. */
const measureOne = async (side: Side, directory: string, load: Load, run?: string): Promise<Result> => {
  const started = performance.now()
  const { before, seen } = run === undefined ? await viaFloor(side, load) : await viaDaybook(side, directory, run, load)
  const all = await Promise.all(seen.map(async (one) => ({ ...(await one), took: performance.now() - started })))
  const after = await side.usage()
  const delays = all.flatMap((one) => one.delays)
  return {
    cpu: (after.cpu - before.cpu) / (load.sessions * load.tokens),
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    resident: after.resident,
    longest: Math.max(...all.map(({ took }) => took)),
    whole: all.every(({ whole }) => whole)
  }
}

/** Measures the floor and Daybook, each in a fresh process, after a round of the same size: a server lives long. */
export const measure = async (cache: string, directory: string, load: Load) => {
  const model = await startModel(load.tokens, everyMillis)
  const folder = mkdtempSync(join(directory, "streams-"))
  try {
    const results: Array<Result> = []
    for (const kind of ["floor", "ours"] as const) {
      const side = await start(cache, kind, freshFile(directory), portOf(model))
      const run = (name: string) => (kind === "floor" ? undefined : name)
      await measureOne(side, folder, { ...load, readers: 1 }, run("warm"))
      results.push(await measureOne(side, folder, load, run("all")))
      side.child.stdin?.end()
    }
    const [floor, ours] = results
    if (floor === undefined || ours === undefined) throw new Error("a side is missing")
    return { floor, ours }
  } finally {
    model.closeAllConnections()
    model.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
