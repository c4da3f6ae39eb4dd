/**
 * Measures the HTTP API over TCP, beside a bare `node:http` server with one FULL insert a request: prompts a second, the replay of a
 * session, and the time from an append to many readers. Each side is a process of its own; this one is the client.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { createInterface, type Interface } from "node:readline"
import { median, quantile } from "./Figures.ts"
import { freshFile } from "./Stores.ts"

const token = "bench-token-of-the-server"

interface Side {
  readonly child: ChildProcess
  readonly port: number
  readonly order: (order: object) => Promise<void>
  /** Prompts that were sent. */
  sent: number
}

const nextLine = (lines: Interface): Promise<string> =>
  new Promise((resolve, reject) => {
    lines.once("line", resolve)
    lines.once("close", () => reject(new Error("the child ended")))
  })

const start = async (cache: string, mode: "bare" | "ours", filename: string): Promise<Side> => {
  const child = spawn(process.execPath, [join(cache, "HttpChild.mjs"), mode, filename, token], {
    stdio: ["pipe", "pipe", "inherit"]
  })
  const lines = createInterface(child.stdout)
  const port = Number((await nextLine(lines)).split(" ")[1])
  return {
    child,
    port,
    sent: 0,
    order: async (order) => {
      child.stdin.write(`${JSON.stringify(order)}\n`)
      await nextLine(lines)
    }
  }
}

const head = (method: string, path: string, body: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

const opened = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket))
    socket.setNoDelay().once("error", reject)
  })

/** Sends a request and waits for the whole answer, which has a length. */
const exchange = (socket: Socket, request: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ""
    const take = (chunk: Buffer) => {
      text += chunk.toString("latin1")
      const from = text.indexOf("\r\n\r\n") + 4
      const length = /content-length: (\d+)/i.exec(text)?.[1]
      if (from < 4 || length === undefined || text.length < from + Number(length)) return
      socket.off("data", take)
      if (text.startsWith("HTTP/1.1 2")) resolve(text.slice(from))
      else reject(new Error(text.slice(0, 2_000)))
    }
    socket.on("data", take)
    socket.write(request)
  })

/** Prompts of a session; it takes 1,000. */
const promptsEach = 800

/** Admits prompts on so many connections for a time; prompts per second. */
const admissions = async (side: Side, path: (prompt: number) => string, connections: number, millis: number) => {
  const sockets = await Promise.all(Array.from({ length: connections }, () => opened(side.port)))
  const started = performance.now()
  let count = 0
  await Promise.all(
    sockets.map(async (socket) => {
      while (performance.now() < started + millis) {
        const id = `msg_bench-${side.sent}`
        const body = JSON.stringify({ id, prompt: { text: "And what does the next workspace hold?" }, resume: false })
        await exchange(socket, head("POST", path(side.sent++), body))
        count += 1
      }
      socket.destroy()
    })
  )
  return (count * 1_000) / (performance.now() - started)
}

const sessionOf = (prompt: number): string => `ses_bench-${Math.floor(prompt / promptsEach)}`

/** Creates the sessions of so many prompts. */
const createSessions = async ({ port }: Side, count: number): Promise<void> => {
  const socket = await opened(port)
  for (let prompt = 0; prompt < count; prompt += promptsEach) {
    const body = JSON.stringify({ id: sessionOf(prompt), location: { directory: "/" } })
    await exchange(socket, head("POST", "/sessions", body))
  }
  socket.destroy()
}

/** Milliseconds from the request of a session's stream to its last frame. */
const replay = (port: number, sessionID: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const started = performance.now()
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(head("GET", `/sessions/${sessionID}/events?follow=0`, ""))
    )
    let tail = ""
    socket.on("data", (chunk: Buffer) => {
      const text = tail + chunk.toString("latin1")
      if (text.includes("event: end")) {
        socket.destroy()
        resolve(performance.now() - started)
      }
      tail = text.slice(-64)
    })
    socket.once("error", reject)
  })

/** Milliseconds from each append to each of the readers. */
const follow = async ({ order, port }: Side, sessionID: string, readers: number, times: number) => {
  const clock = () => performance.timeOrigin + performance.now()
  const latencies: Array<number> = []
  const sockets: Array<Socket> = []
  let arrived = (): void => {}
  const all = new Promise<void>((resolve) => {
    arrived = () => (latencies.length === readers * times ? resolve() : undefined)
  })
  const connected = async () => {
    const socket = await opened(port)
    sockets.push(socket)
    const seam = new Promise<void>((resolve) => {
      let tail = ""
      socket.on("data", (chunk: Buffer) => {
        const text = tail + chunk.toString("latin1")
        if (text.includes("replay.complete")) resolve()
        const lines = text.split("\n")
        tail = lines.pop() ?? ""
        for (const line of lines) {
          const at = /"text":"at ([\d.]+)/.exec(line)?.[1]
          if (at === undefined) continue
          latencies.push(clock() - Number(at))
          arrived()
        }
      })
    })
    socket.write(head("GET", `/sessions/${sessionID}/events`, ""))
    await seam
  }
  for (let n = 0; n < readers; n += 50) await Promise.all(Array.from({ length: 50 }, connected))
  await order({ do: "publish", sessionID, times, everyMillis: 100 })
  await all
  for (const socket of sockets) socket.destroy()
  return latencies
}

const times = (): Array<number> => []

export interface Result {
  /** Prompts per second at one connection and at 64, of the bare server and of ours. */
  readonly one: { readonly bare: number; readonly ours: number }
  readonly many: { readonly bare: number; readonly ours: number }
  /** Replay of a session of 1,001 events, in milliseconds. */
  readonly replay: number
  /** Append to a reader, of 1,000 readers, in milliseconds. */
  readonly readers: { readonly p50: number; readonly p99: number }
}

/** Measures both sides alternately; medians over the rounds. */
export const measure = async (cache: string, directory: string, rounds: number, millis: number): Promise<Result> => {
  const bare = await start(cache, "bare", freshFile(directory))
  const ours = await start(cache, "ours", freshFile(directory))
  try {
    await createSessions(ours, 800_000)
    const found = { oneBare: times(), oneOurs: times(), manyBare: times(), manyOurs: times() }
    const prompts = (prompt: number) => `/sessions/${sessionOf(prompt)}/prompts`
    for (let round = 0; round <= rounds; round++) {
      const figures = [
        await admissions(bare, () => "/", 1, millis),
        await admissions(ours, prompts, 1, millis),
        await admissions(bare, () => "/", 64, millis),
        await admissions(ours, prompts, 64, millis)
      ] as const
      // The first round warms both up.
      if (round === 0) continue
      found.oneBare.push(figures[0])
      found.oneOurs.push(figures[1])
      found.manyBare.push(figures[2])
      found.manyOurs.push(figures[3])
    }
    await ours.order({ do: "fill", sessionID: "ses_replayed", events: 1_001 })
    const replays: Array<number> = []
    for (let n = 0; n < 10 * rounds; n++) replays.push(await replay(ours.port, "ses_replayed"))
    await ours.order({ do: "fill", sessionID: "ses_followed", events: 2 })
    const latencies = await follow(ours, "ses_followed", 1_000, 10 * rounds)
    return {
      one: { bare: median(found.oneBare), ours: median(found.oneOurs) },
      many: { bare: median(found.manyBare), ours: median(found.manyOurs) },
      replay: median(replays),
      readers: { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
    }
  } finally {
    bare.child.kill()
    ours.child.kill()
  }
}
