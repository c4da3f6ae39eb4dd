/** Runs socket clients as processes of other users, which the kernel admits or rejects. Requires root. */
import { Deferred, Effect, Exit } from "effect"
import { spawn } from "node:child_process"

export interface User {
  readonly uid: number
  /** The only group of its processes. */
  readonly gid: number
}

type Frame = Readonly<Record<string, unknown>>

/** Writes the lines, ends its side, and prints the response or the error code. */
const client = `
const [path, ...lines] = process.argv.slice(1)
const socket = require("node:net").connect({ path, allowHalfOpen: true })
socket.on("error", ({ code }) => { console.log(JSON.stringify({ fault: code })); process.exit(0) })
socket.on("connect", () => socket.end(lines.map((line) => line + "\\n").join("")))
socket.pipe(process.stdout)
`

/** All frames that a client of this user receives. */
export const askAs = (
  { gid, uid }: User,
  path: string,
  ...requests: ReadonlyArray<Frame>
): Effect.Effect<ReadonlyArray<Frame>> =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<string>()
    const lines = requests.map((request) => JSON.stringify(request))
    const child = spawn(process.execPath, ["-e", client, path, ...lines], {
      uid,
      gid,
      cwd: "/",
      stdio: ["ignore", "pipe", "inherit"]
    })
    let text = ""
    child.stdout.on("data", (chunk: Buffer) => (text += String(chunk)))
    child.on("close", () => Deferred.unsafeDone(ended, Exit.succeed(text)))
    const said = yield* Deferred.await(ended)
    return said
      .split("\n")
      .filter((line) => line !== "")
      .map((line): Frame => JSON.parse(line) as Frame)
  })
