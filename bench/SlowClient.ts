/**
 * Measures a run of many megabytes of deltas to a client that reads, alone and beside a client that never reads. Clients are
 * separate processes, so the memory is the server's. The idle client costs its buffer and one write, for a run of any length,
 * and the run must not wait for it (FR-6).
 */
import type { Response } from "@effect/ai"
import { Deferred, Effect, Exit, Scope, Stream } from "effect"
import { spawn } from "node:child_process"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { measured, serving, usage } from "./AnsweringServer.ts"
import { median } from "./Figures.ts"

const pieceBytes = 4096
/** Pieces per text: as long as a long answer. */
const piecesPerText = 256

setFlagsFromString("--expose-gc")
const collect: unknown = runInNewContext("gc")
const collectGarbage = () => (typeof collect === "function" ? collect() : undefined)

/** Sends a prompt, and reads to the end or not at all; prints when it has started and when it is done. */
const client = `
const [path, mode] = process.argv.slice(1)
const socket = require("node:net").connect(path)
let tail = ""
socket.write(JSON.stringify({ op: "send", id: "m1", input: "go" }) + "\\n")
socket.on("data", (chunk) => {
  const text = tail + chunk.toString("latin1")
  if (text.includes('"type":"start"')) {
    console.log("start")
    if (mode === "idle") socket.pause()
  }
  if (text.includes('"type":"done"')) console.log("done")
  tail = text.slice(-64)
})
`

/** The answer, once the gate opens. */
const answer = (bytes: number, gate: Deferred.Deferred<void>): Stream.Stream<Response.StreamPartEncoded> => {
  const piece = "all work and no play. ".repeat(200).slice(0, pieceBytes)
  const texts = Math.ceil(bytes / (pieceBytes * piecesPerText))
  return Stream.concat(
    Stream.execute(Deferred.await(gate)),
    Stream.range(1, texts).pipe(
      Stream.flatMap((text) => {
        const id = String(text)
        const deltas = Stream.map(Stream.range(1, piecesPerText), () => ({
          type: "text-delta" as const,
          id,
          delta: piece
        }))
        return Stream.make({ type: "text-start" as const, id }).pipe(
          Stream.concat(deltas),
          Stream.concat(Stream.make({ type: "text-end" as const, id }))
        )
      }),
      Stream.concat(
        Stream.make({
          type: "finish" as const,
          reason: "stop" as const,
          usage
        })
      )
    )
  )
}

/** Seconds until the reading client's `done`, and the peak resident megabytes of the process. */
const run = (directory: string, bytes: number, idle: number) =>
  Effect.gen(function* () {
    const { open, path } = yield* serving(directory, (gate) => answer(bytes, gate))
    const start = (mode: "reading" | "idle") =>
      Effect.gen(function* () {
        const [begun, done] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        yield* Effect.acquireRelease(
          Effect.sync(() => {
            const child = spawn(process.execPath, ["-e", client, path, mode], {
              stdio: ["ignore", "pipe", "inherit"]
            })
            child.stdout.on("data", (chunk: Buffer) => {
              if (chunk.includes("start")) Deferred.unsafeDone(begun, Exit.void)
              if (chunk.includes("done")) Deferred.unsafeDone(done, Exit.void)
            })
            return child
          }),
          (child) => Effect.sync(() => child.kill("SIGKILL"))
        )
        yield* Deferred.await(begun)
        return Deferred.await(done)
      })
    const scope = yield* Effect.scope
    const reading = yield* Scope.extend(start("reading"), scope)
    yield* Effect.replicateEffect(Scope.extend(start("idle"), scope), idle)
    collectGarbage()
    const { memory, seconds } = yield* measured(Effect.zipRight(open, reading))
    return { seconds, memory }
  }).pipe(Effect.scoped, Effect.runPromise)

export interface Result {
  readonly megabytes: number
  /** Seconds and megabytes with one reading client, and with an idle client beside it. */
  readonly alone: { readonly seconds: number; readonly memory: number }
  readonly beside: { readonly seconds: number; readonly memory: number }
  /** Medians of the ratios within a round. */
  readonly ratio: number
  /** Additional megabytes with the idle client. */
  readonly cost: number
}

/** Alternates both; medians over the rounds, without a first warm-up run, because a process keeps most resident memory. */
export const measure = async (directory: string, bytes: number, rounds: number): Promise<Result> => {
  let runs = 0
  const one = (idle: number) => run(join(directory, `slow${runs++}`), bytes, idle)
  await one(0)
  const found: Array<Pick<Result, "alone" | "beside">> = []
  for (let round = 0; round < rounds; round++) {
    const alone = await one(0)
    found.push({ alone, beside: await one(1) })
  }
  const of = (side: "alone" | "beside", what: "seconds" | "memory") => median(found.map((each) => each[side][what]))
  return {
    megabytes: bytes / 1e6,
    alone: { seconds: of("alone", "seconds"), memory: of("alone", "memory") },
    beside: { seconds: of("beside", "seconds"), memory: of("beside", "memory") },
    ratio: median(found.map(({ alone, beside }) => beside.seconds / alone.seconds)),
    cost: of("beside", "memory") - of("alone", "memory")
  }
}
