/**
 * Method: a served process gets as many readers of one session as it is said to hold, from several tokens, since each token has a
 * bounded number of open requests. Nothing happens, then one event, then the server is told to end. Every reader is a connection, and so a descriptor in
 * each of both processes: the machine must permit that many.
 */
import { execFileSync, spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { build } from "../cli/support/Bundle.ts"
import { temporaryFolder } from "../support/Harness.ts"

const readers = 10_000
const perToken = 4_000

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ url: Schema.String, inspector: Schema.String }) }))

/** How many descriptors a process may have here. Node raises its own limit to this at its start. */
const permitted = Number(execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" }).trim())

/** A served process in an empty place; its address and token, and its memory. */
const served = Effect.gen(function* () {
  const [folder, bin] = [yield* temporaryFolder, build().bin]
  const cwd = join(folder, "work")
  mkdirSync(cwd)
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder, DAYBOOK_DB: join(folder, "data", "daybook.sqlite") }
  const daybook = (...words: ReadonlyArray<string>) =>
    execFileSync(process.execPath, [bin, ...words], { cwd, env, encoding: "utf8" }).trim()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [bin, "serve", "--json", "--show-token", "--http", "127.0.0.1:0"], {
        cwd,
        env,
        stdio: ["ignore", "pipe", "inherit"]
      })
    ),
    (process) => Effect.sync(() => process.kill("SIGKILL"))
  )
  const line = yield* Effect.async<string>((resume) => {
    child.stdout.setEncoding("utf8").once("data", (text: string) => resume(Effect.succeed(text)))
  })
  const { http } = yield* Schema.decode(Ready)(line)
  /** Mebibytes that the process holds. */
  const memory = () => {
    const status = existsSync(`/proc/${child.pid}/status`) ? readFileSync(`/proc/${child.pid}/status`, "utf8") : ""
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? "0") / 1024
  }
  const token = http.inspector.split("#token=")[1] ?? ""
  const end = () => child.kill("SIGTERM")
  return { cwd, daybook, url: new URL(http.url), token, memory, end }
})

interface Reader {
  readonly socket: Socket
  /** Completes when the reader was sent the text; fails when the connection has closed without it. */
  readonly sent: (text: string) => Promise<void>
}

/** A connection that follows a session. */
const follow = ({ hostname, port }: URL, path: string, token: string): Promise<Reader> =>
  new Promise((resolve, reject) => {
    const waiting = new Map<string, () => void>()
    const failing = new Set<(cause: Error) => void>()
    let text = ""
    const look = () => {
      for (const [wanted, found] of waiting) if (text.includes(wanted)) found()
      text = text.slice(-2_000)
    }
    const socket = connect(Number(port), hostname, () => {
      socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${token}\r\n\r\n`)
      resolve({
        socket,
        sent: (wanted) =>
          new Promise((found, failed) => {
            failing.add(failed)
            waiting.set(wanted, () => {
              waiting.delete(wanted)
              failing.delete(failed)
              found()
            })
            look()
            if (socket.closed) failed(closed())
          })
      })
    })
    const closed = () => new Error(`the connection closed behind ${text.slice(-200)}`)
    socket.on("error", reject)
    socket.once("close", () => failing.forEach((failed) => failed(closed())))
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part
      look()
    })
  })

it.scopedLive(
  "HT-49, HT-52: ten thousand readers wait, get one event, and the end; others are answered meanwhile",
  () =>
    Effect.gen(function* () {
      const count = Math.min(readers, permitted - 1_000)
      if (count < readers) console.log(`this machine permits ${permitted} descriptors: ${count} readers`)
      const { cwd, daybook, end, memory, token, url } = yield* served
      const send = (path: string, method: string, body?: unknown) =>
        Effect.promise((signal) =>
          fetch(new URL(path, url), {
            method,
            signal,
            headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
            ...(body === undefined ? {} : { body: JSON.stringify(body) })
          })
        )
      yield* send("/sessions", "POST", { id: "ses_busy", location: { directory: cwd } })
      const tokens = Array.from({ length: Math.ceil(count / perToken) }, (_, n) =>
        daybook("token", "--session", "ses_busy", "--expires", `${n + 1}d`)
      )
      const before = memory()
      const open: Array<Reader> = []
      yield* Effect.addFinalizer(() => Effect.sync(() => open.forEach(({ socket }) => socket.destroy())))
      for (let at = 0; at < count; at += 250) {
        const batch = Array.from({ length: Math.min(250, count - at) }, (_, n) =>
          follow(url, "/sessions/ses_busy/events", tokens[(at + n) % tokens.length] ?? "")
        )
        const opened = yield* Effect.promise(() => Promise.all(batch))
        yield* Effect.promise(() => Promise.all(opened.map(({ sent }) => sent("replay.complete"))))
        open.push(...opened)
      }
      const idle = memory()
      const began = performance.now()
      assert.strictEqual((yield* send("/sessions/ses_busy/title", "PUT", { title: "for ten thousand" })).status, 204)
      yield* Effect.promise(() => Promise.all(open.map(({ sent }) => sent("for ten thousand"))))
      const took = performance.now() - began
      assert.strictEqual((yield* send("/sessions/ses_busy", "GET")).status, 200)
      const each = ((idle - before) * 1024) / count
      console.log(`${count} readers: ${each.toFixed(1)} KiB each, one event for all in ${took.toFixed(0)} ms`)
      assert.isBelow(each, 128)
      const signalled = performance.now()
      end()
      yield* Effect.promise(() => Promise.all(open.map(({ sent }) => sent('"reason":"draining","cursor":"d1.'))))
      console.log(`the end of all streams in ${(performance.now() - signalled).toFixed(0)} ms`)
    })
)
