/**
 * Measures the longest ping of one client, and the server's resident memory, while another client reads one long answer;
 * compares with a short answer of the same pieces. Clients are separate processes. A server that handles the text as a whole
 * does not answer pings meanwhile (FR-6).
 */
import type { Response } from "@effect/ai"
import { Deferred, Effect, Exit, Stream } from "effect"
import { spawn } from "node:child_process"
import { join } from "node:path"
import { measured, serving, usage } from "./AnsweringServer.ts"
import { median } from "./Figures.ts"

const pieceLength = 1024

/** Reads the runs of two prompts to their ends; sends the second when it reads a word. */
const reader = `
const socket = require("node:net").connect(process.argv[1])
let tail = ""
let done = 0
const send = (id) => socket.write(JSON.stringify({ op: "send", id, input: "go" }) + "\\n")
send("m1")
process.stdin.on("data", () => send("m2"))
socket.on("data", (chunk) => {
  const text = tail + chunk.toString("latin1")
  if (text.includes('"type":"start"')) console.log("start")
  if (text.includes('"type":"done"')) {
    console.log(["done", "next"][done++])
    tail = ""
  } else tail = text.slice(-64)
})
`

/**
 * Sends pings one by one. For each word it reads, it prints the longest wait since the previous word, in milliseconds. A
 * short pause between pings avoids load on the server.
 */
const pinger = `
const socket = require("node:net").connect(process.argv[1])
let sent = 0
let longest = 0
let words = 0
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
  console.log("longest" + ++words + " " + longest)
  longest = 0
})
`

const turnOfLoop = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

/** One text of this many code units, once the gate opens. */
const answer = (length: number, gate: Deferred.Deferred<void>): Stream.Stream<Response.StreamPartEncoded> => {
  const delta = "all work and no play. ".repeat(50).slice(0, pieceLength)
  return Stream.execute(Deferred.await(gate)).pipe(
    Stream.concat(Stream.make({ type: "text-start" as const, id: "t" })),
    Stream.concat(
      Stream.range(1, Math.ceil(length / pieceLength)).pipe(
        Stream.map(() => ({ type: "text-delta" as const, id: "t", delta })),
        // Like a network: a few parts at a time.
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

/** Waits for a line of the child. */
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

/** The longest ping since the last word, in milliseconds. */
const longestOf = (pinging: Effect.Effect.Success<ReturnType<typeof child>>, word: number) =>
  Effect.gen(function* () {
    const line = yield* said(pinging, `longest${word}`)
    yield* Effect.sync(() => pinging.stdin.write("word\n"))
    return Number((yield* line).split(" ")[1])
  })

interface Run {
  readonly seconds: number
  /** The longest ping, in milliseconds. */
  readonly longest: number
  /** The longest ping while the next prompt runs, whose request contains the long answer. */
  readonly next: number
  /** Peak resident megabytes. */
  readonly memory: number
}

const run = (directory: string, length: number): Promise<Run> =>
  Effect.gen(function* () {
    let answers = 0
    const { open, path } = yield* serving(directory, (gate) => answer(answers++ === 0 ? length : pieceLength, gate))
    const pinging = yield* child(pinger, path)
    yield* yield* said(pinging, "ready")
    const reading = yield* child(reader, path)
    const done = yield* said(reading, "done")
    yield* yield* said(reading, "start")
    const { memory, seconds } = yield* measured(Effect.zipRight(open, done))
    const longest = yield* longestOf(pinging, 1)
    const again = yield* said(reading, "next")
    yield* Effect.sync(() => reading.stdin.write("next\n"))
    yield* again
    return { seconds, longest, next: yield* longestOf(pinging, 2), memory }
  }).pipe(Effect.scoped, Effect.runPromise)

export interface Result {
  readonly short: Run
  readonly long: Run
  /** How many times longer the long answer is. */
  readonly times: number
  /** Medians of the ratios within a round. */
  readonly longest: number
}

/** Alternates both; medians over the rounds, without a first warm-up run. */
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
    next: median(found.map((each) => each[side].next)),
    memory: median(found.map((each) => each[side].memory))
  })
  return {
    short: of("short"),
    long: of("long"),
    times,
    longest: median(found.map(({ long, short }) => long.longest / short.longest))
  }
}
