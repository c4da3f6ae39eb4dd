/**
 * Measures many sessions of `daybook serve` that stream at once: a loopback model sends each session 50 tokens a second, and clients
 * over HTTP see each delta. Beside Daybook the floor does the least that shows an answer and keeps it (`StreamsChild.ts`). This
 * process is the model server and the clients; a token carries the time of its sending. It needs `npm run build`. Linux only.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server, type ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as pass } from "node:timers/promises"
import { daybook, environmentIn } from "./ColdStart.ts"
import { quantile } from "./Figures.ts"

const frame = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", model: "streamer", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

/** What the model server does: each answer has so many tokens, so far apart, after so many calls of a tool. */
export interface Answers {
  readonly tokens: number
  /** Milliseconds between two tokens of a session. By default 20. */
  readonly everyMillis?: number
  readonly calls?: number
  /** Answers go on until this is true, whatever `tokens` says. */
  readonly enough?: () => boolean
}

const call = { index: 0, id: "call", type: "function", function: { name: "read", arguments: '{"path":"notes.md"}' } }

/** Streams the text of an answer. */
const stream = (response: ServerResponse, { enough, everyMillis = 20, tokens }: Answers) => {
  const begun = performance.now()
  let sent = 0
  const next = () => {
    if (response.destroyed) return
    if (enough?.() ?? sent === tokens) {
      response.write(frame({}, "stop"))
      response.end("data: [DONE]\n\n")
      return
    }
    response.write(frame({ content: `at ${performance.now().toFixed(2)} ` }, null))
    sent += 1
    setTimeout(next, Math.max(0, begun + sent * everyMillis - performance.now()))
  }
  setTimeout(next, everyMillis)
}

const startModel = (answers: Answers): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      let body = ""
      request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk))
      request.on("end", () => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(frame({ role: "assistant", content: "" }, null))
        const results = body.split('"role":"tool"').length - 1
        // The floor sends no tools.
        if (!body.includes('"tools"') || results >= (answers.calls ?? 0)) return stream(response, answers)
        response.write(frame({ tool_calls: [{ ...call, id: `call_${results}` }] }, null))
        response.write(frame({}, "tool_calls"))
        response.end("data: [DONE]\n\n")
      })
    }).listen(0, "127.0.0.1", () => resolve(server))
  })

const portOf = (server: Server): number => (server.address() as AddressInfo).port

interface Side {
  readonly child: ChildProcess
  readonly port: number
  readonly token: string
}

/** Microseconds of processor time so far, and the most bytes that were resident since the last call. */
const usage = ({ child: { pid } }: Side) => {
  const tasks = readdirSync(`/proc/${pid}/task`)
  const nanos = tasks.map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "latin1").split(" ")[0]))
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]
  writeFileSync(`/proc/${pid}/clear_refs`, "5")
  return { cpu: nanos.reduce((a, b) => a + b, 0) / 1e3, resident: Number(peak) * 1_024 }
}

/** Starts a side, whose first line with an address says where it listens, and its token. */
const start = async (words: ReadonlyArray<string>, folder: string, environment: NodeJS.ProcessEnv): Promise<Side> => {
  const child = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...environmentIn(folder), ...environment },
    stdio: ["ignore", "pipe", "ignore"]
  })
  for await (const line of createInterface(child.stdout)) {
    const [, port, token = ""] = /http:\/\/127\.0\.0\.1:(\d+)(?:\/#token=([\w-]+))?"?\}*$/.exec(line) ?? []
    if (port !== undefined) return { child, port: Number(port), token }
  }
  throw new Error("the server ended")
}

const startFloor = (cache: string, folder: string, model: number): Promise<Side> =>
  start([join(cache, "StreamsChild.mjs"), join(folder, "floor.db"), String(model)], folder, {})

const startOurs = (folder: string, model: number): Promise<Side> => {
  mkdirSync(join(folder, ".config", "daybook"), { recursive: true })
  const config = `providers:\n  bench:\n    api: openai-compatible\n    baseURL: http://127.0.0.1:${model}/v1\n    key: key\n`
  writeFileSync(join(folder, ".config", "daybook", "config.yaml"), config, { mode: 0o600 })
  const words = [daybook, "serve", "--http", "127.0.0.1:0", "--http-rate", "1000000", "--show-token", "--json"]
  return start(words, folder, { DAYBOOK_MODEL: "bench/streamer" })
}

const head = (token: string, method: string, path: string, body: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

const opened = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket))
    socket.setNoDelay().once("error", reject)
  })

/** Sends a request and waits for the head of its answer. */
const post = async (socket: Socket, token: string, path: string, body: object): Promise<void> => {
  const answered = new Promise<string>((resolve) => socket.once("data", (chunk: Buffer) => resolve(chunk.toString())))
  socket.write(head(token, "POST", path, JSON.stringify(body)))
  const text = await answered
  if (!text.startsWith("HTTP/1.1 2")) throw new Error(text.slice(0, 1_000))
}

/** What one reader saw of an answer. */
interface Seen {
  readonly delays: ReadonlyArray<number>
  /** The joined deltas are the stored text. */
  readonly whole: boolean
}

interface Reading {
  /** Is called when the stream follows, that is, behind the seam. */
  readonly follows?: () => void
  /** Is called for each live delta. */
  readonly heard?: () => void
  /** Milliseconds of rest behind what has arrived: a slow reader. */
  readonly rest?: number
}

/** Reads a stream until the answer is stored. */
const read = (socket: Socket, { follows, heard, rest }: Reading = {}): Promise<Seen> =>
  new Promise((resolve, reject) => {
    const delays: Array<number> = []
    let [line, said, resting] = ["", "", false]
    const take = (data: string) => {
      const live = /"delta":"([^"]*)"/.exec(data)?.[1]
      if (live !== undefined && !data.includes("text.ended")) {
        const now = performance.now()
        said += live
        for (const [, at] of live.matchAll(/at ([\d.]+) /g)) delays.push(now - Number(at))
        heard?.()
      }
      const stored = /session\.next\.text\.ended.*"text":"([^"]*)"/.exec(data)?.[1]
      if (stored !== undefined) {
        socket.destroy()
        resolve({ delays, whole: stored.startsWith(said) })
      }
      if (data.includes("session.next.step.failed")) reject(new Error(data.slice(0, 1_000)))
    }
    socket.on("data", (chunk: Buffer) => {
      const lines = (line + chunk.toString("latin1")).split("\n")
      line = lines.pop() ?? ""
      for (const each of lines) {
        if (each.includes("replay.complete")) follows?.()
        if (each.startsWith("data: ")) take(each.slice(6))
      }
      if (rest === undefined || resting) return
      resting = true
      setImmediate(() => socket.pause())
      setTimeout(() => {
        resting = false
        socket.resume()
      }, rest)
    })
    socket.once("error", reject).once("close", () => reject(new Error("the stream ended early")))
  })

export interface Load extends Answers {
  readonly sessions: number
  readonly readers: number
  /** Readers of each session that join in the middle of its answer. */
  readonly late?: number
  /** Readers of each session that rest for 200 ms behind what has arrived. */
  readonly slow?: number
}

export interface Result {
  /** Microseconds of processor time of the server for a token. */
  readonly cpu: number
  /** Milliseconds from the model's write to the prompt readers. */
  readonly p50: number
  readonly p99: number
  /** Resident bytes at most. */
  readonly resident: number
  /** The longest time that an answer took, in milliseconds. */
  readonly longest: number
  /** Each reader's deltas, late and slow ones too, are the stored text. */
  readonly whole: boolean
}

const follow = async ({ port, token }: Side, id: string, reading: Reading): Promise<Seen> => {
  const socket = await opened(port)
  socket.write(head(token, "GET", `/sessions/${id}/events?live=1`, ""))
  return read(socket, reading)
}

/** The answers that prompt readers and the others see. */
interface Readers {
  readonly prompt: Array<Promise<Seen>>
  readonly others: Array<Promise<Seen>>
}

/** Creates sessions that are followed, and prompts them. */
const viaDaybook = async (side: Side, directory: string, run: string, load: Load) => {
  const control = await opened(side.port)
  const ids = Array.from({ length: load.sessions }, (_, index) => `ses_stream-${run}-${index}`)
  const readers: Readers = { prompt: [], others: [] }
  for (const id of ids) {
    // With a title: else the model would be asked for one, which is a second answer.
    await post(control, side.token, "/sessions", { id, title: id, location: { directory } })
    let deltas = 0
    const joinLate = () => {
      deltas += 1
      if (deltas !== Math.floor((load.tokens * load.readers) / 2)) return
      for (let n = 0; n < (load.late ?? 0); n++) readers.others.push(follow(side, id, {}))
    }
    for (let n = 0; n < load.readers; n++) {
      await new Promise<void>((follows) => readers.prompt.push(follow(side, id, { follows, heard: joinLate })))
    }
    for (let n = 0; n < (load.slow ?? 0); n++) {
      await new Promise<void>((follows) => readers.others.push(follow(side, id, { follows, rest: 200 })))
    }
  }
  const [started, before] = [performance.now(), usage(side)]
  for (const [index, id] of ids.entries()) {
    const body = { id: `msg_stream-${run}-${index}`, prompt: { text: "Go on." } }
    await post(control, side.token, `/sessions/${id}/prompts`, body)
  }
  control.destroy()
  return { started, before, readers }
}

const viaFloor = async (side: Side, { sessions }: Load) => {
  const [started, before] = [performance.now(), usage(side)]
  const readers: Readers = { prompt: [], others: [] }
  for (let n = 0; n < sessions; n++) {
    const socket = await opened(side.port)
    readers.prompt.push(read(socket))
    socket.write(head("", "POST", "/", ""))
  }
  return { started, before, readers }
}

/** Streams so many sessions at once, and waits for all answers; without a run to the floor. */
const measureOne = async (side: Side, directory: string, load: Load, run?: string): Promise<Result> => {
  const { before, readers, started } = await (run === undefined
    ? viaFloor(side, load)
    : viaDaybook(side, directory, run, load))
  const prompt = await Promise.all(readers.prompt)
  const longest = performance.now() - started
  const after = usage(side)
  const others = await Promise.all(readers.others)
  const delays = prompt.flatMap((one) => one.delays)
  return {
    cpu: (after.cpu - before.cpu) / (load.sessions * load.tokens),
    p50: quantile(delays, 0.5),
    p99: quantile(delays, 0.99),
    resident: after.resident,
    longest,
    whole: [...prompt, ...others].every(({ whole }) => whole)
  }
}

/** Runs with a model server, in a folder with a file for sessions to read. */
const withModel = async <A>(
  directory: string,
  answers: Answers,
  run: (model: number, folder: string) => Promise<A>
) => {
  const model = await startModel(answers)
  const folder = mkdtempSync(join(directory, "streams-"))
  writeFileSync(join(folder, "notes.md"), "Notes.\n")
  try {
    return await run(portOf(model), folder)
  } finally {
    model.closeAllConnections()
    model.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const stop = async ({ child }: Side): Promise<void> => {
  const gone = once(child, "exit")
  child.kill("SIGTERM")
  await gone
}

/** Measures the floor and `daybook serve`, each in a fresh process, after a round of the same size: a server lives long. */
export const measure = (cache: string, directory: string, load: Load) =>
  withModel(directory, load, async (model, folder) => {
    const measured = async (side: Side, run: (name: string) => string | undefined): Promise<Result> => {
      await measureOne(side, folder, { ...load, readers: 1, late: 0, slow: 0 }, run("warm"))
      const result = await measureOne(side, folder, load, run("all"))
      await stop(side)
      return result
    }
    const floor = await measured(await startFloor(cache, folder, model), () => undefined)
    const ours = await measured(await startOurs(folder, model), (name) => name)
    return { floor, ours }
  })

/** The share of a core that sessions take whose models say little, and the most resident bytes. Without a run those of the floor. */
const waitOn = (
  directory: string,
  sessions: number,
  begin: (folder: string, model: number) => Promise<Side>,
  run?: string
) => {
  let over = false
  // An answer ends only when all were measured: where prompts take long, the first ones would end among them.
  const load = { sessions, readers: 1, tokens: Infinity, everyMillis: 2_000, enough: () => over }
  return withModel(directory, load, async (model, folder) => {
    const side = await begin(folder, model)
    const { readers } = await (run === undefined ? viaFloor(side, load) : viaDaybook(side, folder, run, load))
    await pass(5_000)
    const [begun, atFirst] = [performance.now(), usage(side)]
    await pass(10_000)
    const after = usage(side)
    over = true
    const share = (after.cpu - atFirst.cpu) / 1e3 / (performance.now() - begun)
    const seen = await Promise.all(readers.prompt)
    const { resident } = usage(side)
    await stop(side)
    const most = Math.max(atFirst.resident, after.resident, resident)
    return { share, resident: most, whole: seen.every(({ whole }) => whole) }
  })
}

/** Measures the floor and `daybook serve` with many sessions whose models say little. */
export const measureWaiting = async (cache: string, directory: string, sessions: number) => ({
  floor: await waitOn(directory, sessions, (folder, model) => startFloor(cache, folder, model)),
  ours: await waitOn(directory, sessions, startOurs, "waiting")
})
