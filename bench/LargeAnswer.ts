/**
 * One long answer to a client that reads it, and another client that pings meanwhile: how long the longest ping takes, and
 * how much memory the server has resident, beside an answer of the same pieces that is short. Clients are processes of
 * their own. A server that handles a text as a whole answers no ping meanwhile (FR-6).
 */
import type { Response } from "@effect/ai"
import { Deferred, Effect, Exit, Stream } from "effect"
import { spawn } from "node:child_process"
import { join } from "node:path"
import { measured, serving, usage } from "./AnsweringServer.ts"
import { median } from "./Figures.ts"

const pieceLength = 1024

/** Reads the run of one prompt to its end. */
const reader = `
const socket = require("node:net").connect(process.argv[1])
let tail = ""
socket.write(JSON.stringify({ op: "send", id: "m1", input: "go" }) + "\\n")
socket.on("data", (chunk) => {
  const text = tail + chunk.toString("latin1")
  if (text.includes('"type":"start"')) console.log("start")
  if (text.includes('"type":"done"')) console.log("done")
  tail = text.slice(-64)
})
`

/** Sends one ping after another until its input ends the run; prints the longest wait in milliseconds. A short pause between
 * pings keeps them from loading the server. */
const pinger = `
const socket = require("node:net").connect(process.argv[1])
let sent = 0
let longest = 0
const ping = () => { sent = performance.now(); socket.write('{"op":"ping"}\\n') }
socket.on("data", () => {
  if (sent === 0) return
  longest = Math.max(longest, performance.now() - sent)
  sent = 0
  setTimeout(ping, 5)
})
socket.on("connect", () => { console.log("ready"); ping() })
process.stdin.on("data", () => {
  if (sent !== 0) longest = Math.max(longest, performance.now() - sent)
  console.log("longest " + longest)
  process.exit(0)
})
`

const turnOfLoop = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

/** One text of so many code units, once the gate is open. */
const answer = (length: number, gate: Deferred.Deferred<void>): Stream.Stream<Response.StreamPartEncoded> => {
  const delta = "all work and no play. ".repeat(50).slice(0, pieceLength)
  return Stream.execute(Deferred.await(gate)).pipe(
    Stream.concat(Stream.make({ type: "text-start" as const, id: "t" })),
    Stream.concat(
      Stream.range(1, Math.ceil(length / pieceLength)).pipe(
        Stream.map(() => ({ type: "text-delta" as const, id: "t", delta })),
        // As from a network: a few at a time, each when the system has them.
        Stream.rechunk(16),
        Stream.mapChunksEffect((chunk) => Effect.as(turnOfLoop, chunk))
      )
    ),
    Stream.concat(
      Stream.make({ type: "text-end" as const, id: "t" }, { type: "finish" as const, reason: "stop" as const, usage })
    )
  )
}

const child = (script: string, path: string) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, ["-e", script, path], { stdio: ["pipe", "pipe", "inherit"] })),
    (made) => Effect.sync(() => made.kill("SIGKILL"))
  )

/** Waits for a line that the child says. */
const said = (made: Effect.Effect.Success<ReturnType<typeof child>>, word: string) =>
  Effect.map(Deferred.make<string>(), (found) => {
    let text = ""
    made.stdout.on("data", (chunk: Buffer) => {
      text += String(chunk)
      const line = text.split("\n").find((each) => each.startsWith(word))
      if (line !== undefined) Deferred.unsafeDone(found, Exit.succeed(line))
    })
    return Deferred.await(found)
  })

interface Run {
  readonly seconds: number
  /** The longest ping, in milliseconds. */
  readonly longest: number
  /** The most megabytes resident. */
  readonly memory: number
}

const run = (directory: string, length: number): Promise<Run> =>
  Effect.gen(function* () {
    const { open, path } = yield* serving(directory, (gate) => answer(length, gate))
    const pinging = yield* child(pinger, path)
    yield* yield* said(pinging, "ready")
    const reading = yield* child(reader, path)
    const done = yield* said(reading, "done")
    yield* yield* said(reading, "start")
    const { memory, seconds } = yield* measured(Effect.zipRight(open, done))
    const longest = yield* said(pinging, "longest")
    yield* Effect.sync(() => pinging.stdin.write("end\n"))
    return { seconds, longest: Number((yield* longest).split(" ")[1]), memory }
  }).pipe(Effect.scoped, Effect.runPromise)

export interface Result {
  readonly short: Run
  readonly long: Run
  /** How many times longer the long answer is. */
  readonly times: number
  /** Medians of the ratios within a round. */
  readonly longest: number
}

/** In turn, medians over the rounds; a first run is not counted. */
export const measure = async (directory: string, length: number, rounds: number): Promise<Result> => {
  let runs = 0
  const one = (size: number) => run(join(directory, `large${runs++}`), size)
  const times = 8
  await one(length / times)
  const found: Array<Pick<Result, "short" | "long">> = []
  for (let round = 0; round < rounds; round++) {
    const short = await one(length / times)
    found.push({ short, long: await one(length) })
  }
  const of = (side: "short" | "long"): Run => ({
    seconds: median(found.map((each) => each[side].seconds)),
    longest: median(found.map((each) => each[side].longest)),
    memory: median(found.map((each) => each[side].memory))
  })
  return {
    short: of("short"),
    long: of("long"),
    times,
    longest: median(found.map(({ long, short }) => long.longest / short.longest))
  }
}
