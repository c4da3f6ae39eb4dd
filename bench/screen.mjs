/**
 * Measures the screen of the built command in a terminal (`script`): its processor time while a loopback model streams 50 tokens a
 * second, and the time from the start until a session of 5,000 messages stands there. Linux. Spec: specs/screen.md.
 */
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const daybook = fileURLToPath(new URL("../packages/cli/bin/daybook.js", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "daybook-screen-"))
const clockTicks = 100
const [seconds, perSecond, messages] = [20, 50, 5_000]

const text = `Some words of an answer with \`code\` in it, and **bold** ones, as models write them.

- a list with a few items
- and another one of them

\`\`\`ts
export const sum = (numbers: ReadonlyArray<number>) => numbers.reduce((a, b) => a + b, 0)
\`\`\`

`
const tokens = text.match(/\s*\S{1,6}/g) ?? []

/** Streams the tokens at their pace; `ended` resolves with the times of the first and the last one. */
const model = () => {
  let resolve
  const ended = new Promise((done) => (resolve = done))
  const server = createServer((request, response) => {
    if (request.method === "GET") return void response.writeHead(404).end()
    request.resume()
    response.writeHead(200, { "content-type": "text/event-stream" })
    const send = (delta, reason = null) =>
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`)
    const started = Date.now()
    let sent = 0
    const timer = setInterval(() => {
      for (const due = ((Date.now() - started) / 1_000) * perSecond; sent < due; sent++)
        send({ content: tokens[sent % tokens.length] })
      if (sent < seconds * perSecond) return
      clearInterval(timer)
      send({}, "stop")
      response.end("data: [DONE]\n\n")
      resolve({ started, finished: Date.now() })
    }, 20)
  }).listen(0, "127.0.0.1")
  return new Promise((ready) =>
    server.once("listening", () => ready({ ended, close: () => server.close(), port: server.address().port }))
  )
}

const environment = (more = {}) => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/_API_KEY$|^DAYBOOK_|^OTEL_|^XDG_/.test(name))),
  HOME: folder,
  TERM: "xterm-256color",
  DAYBOOK_DB: join(folder, "daybook.sqlite"),
  DAYBOOK_NAMING: "off",
  ...more
})

/** A screen in a terminal; `until` waits for what it draws. */
const screen = (words, env) => {
  const pid = join(folder, "pid")
  const command = `stty cols 100 rows 30; echo $$ > ${pid}; exec ${process.execPath} ${daybook} ${words}`
  const started = performance.now()
  const child = spawn("script", ["-qefc", command, "/dev/null"], {
    cwd: folder,
    env,
    stdio: ["pipe", "pipe", "inherit"]
  })
  let drawn = ""
  const watchers = new Set()
  child.stdout.setEncoding("utf8").on("data", (part) => {
    drawn += part
    for (const watcher of watchers) watcher()
  })
  const until = (words) =>
    new Promise((resolve) => {
      const watcher = () => {
        if (!drawn.includes(words)) return
        watchers.delete(watcher)
        resolve(performance.now() - started)
      }
      watchers.add(watcher)
      watcher()
    })
  const ticks = () => {
    const fields = readFileSync(`/proc/${readFileSync(pid, "utf8").trim()}/stat`, "utf8")
      .split(") ")[1]
      .split(" ")
    return Number(fields[11]) + Number(fields[12])
  }
  const ended = new Promise((resolve) => child.once("close", resolve))
  return { until, ticks, type: (keys) => child.stdin.write(keys), ended }
}

const status = "\u00b7 build \u00b7"

const streaming = async () => {
  const { close, ended, port } = await model()
  const env = environment({ DAYBOOK_BASE_URL: `http://127.0.0.1:${port}/v1`, DAYBOOK_MODEL: "openai-compatible/m" })
  const pane = screen("", env)
  await pane.until(status)
  pane.type("Go on\r")
  await pane.until("Some words")
  const before = pane.ticks()
  const { finished, started } = await ended
  const used = (pane.ticks() - before) / clockTicks
  pane.type("\u0004")
  await pane.ended
  close()
  return (100 * used * 1_000) / (finished - started)
}

const opening = async () => {
  const at = (index) => new Date(Date.UTC(2026, 0, 1) + index * 1_000).toISOString()
  const lines = [{ type: "session", version: 3, id: "5b1c", timestamp: at(0), cwd: folder }]
  for (let index = 0; index < messages; index++) {
    const content = [{ type: "text", text: index === messages - 1 ? "The very last word." : text }]
    const message =
      index % 2 === 0
        ? { role: "user", content: `Prompt ${index}`, timestamp: Date.parse(at(index)) }
        : {
            role: "assistant",
            content,
            api: "openai-completions",
            provider: "openai",
            model: "m",
            usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { total: 0 } },
            stopReason: "stop",
            timestamp: Date.parse(at(index))
          }
    lines.push({
      type: "message",
      id: `m${index}`,
      parentId: index === 0 ? null : `m${index - 1}`,
      timestamp: at(index),
      message
    })
  }
  const log = join(folder, "log.jsonl")
  writeFileSync(log, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
  const {
    status: code,
    stderr,
    stdout
  } = spawnSync(process.execPath, [daybook, "import", log, "--json"], {
    cwd: folder,
    env: environment(),
    encoding: "utf8"
  })
  if (code !== 0) throw new Error(stderr)
  const [id] = /ses_\w+/.exec(stdout)
  const times = []
  for (let round = 0; round < 7; round++) {
    const pane = screen(`-s ${id}`, environment())
    const time = await pane.until("The very last word.")
    await pane.until(status)
    times.push(time)
    pane.type("\u0004")
    await pane.ended
  }
  return times.sort((a, b) => a - b)
}

try {
  const share = await streaming()
  console.log(`processor time at ${perSecond} tokens a second: ${share.toFixed(1)} % of a core`)
  const times = await opening()
  console.log(`a session of ${messages} messages: ${Math.round(times[3])} ms (${times.map(Math.round).join(", ")})`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
