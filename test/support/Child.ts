/** Runs programs of tests: `logChild.ts` on a database file with a queue of its answers, and those that kill themselves. */
import { fork, type ChildProcess } from "node:child_process"
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, Queue } from "effect"
import type { Answer, Command } from "./logChild.ts"
import { program } from "./Program.ts"
import { waitingFor } from "./Waiting.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

/** A child's program as JavaScript; `source` is a file beside this one. */
export const childProgram = (source = "logChild.ts") =>
  Effect.map(program(resolve(here, source)), (outfile) => ({ outfile }))

export interface Child {
  readonly tell: (command: Command) => Effect.Effect<void>
  /** The next answer. */
  readonly answer: Effect.Effect<Answer>
  /** Kills the process immediately, like a power cut, and waits for its end. */
  readonly kill: Effect.Effect<void>
}

/** Runs a program that kills itself at some point or ends; true if it killed itself. */
export const runChild = (program: string, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const ended = yield* Deferred.make<boolean>()
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => fork(program, [...args], { stdio: "inherit", execArgv: [] })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    )
    child.on("exit", (code, signal) =>
      Deferred.unsafeDone(
        ended,
        code === 0 || signal === "SIGKILL"
          ? Effect.succeed(code !== 0)
          : Effect.dieMessage(`the child ended with ${code}`)
      )
    )
    return yield* waitingFor("the end of the child")(Deferred.await(ended))
  }).pipe(Effect.scoped)

/** Starts a child on the file; it is killed when the scope closes. */
export const startChild = (program: string, filename: string, options: { readonly uid?: number } = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.gen(function* () {
        const answers = yield* Queue.unbounded<Answer>()
        const ended = yield* Deferred.make<void>()
        const child: ChildProcess = fork(program, [filename], { stdio: "inherit", execArgv: [], ...options })
        child.on("message", (answer: Answer) => Queue.unsafeOffer(answers, answer))
        child.on("exit", () => Deferred.unsafeDone(ended, Effect.void))
        const kill = Effect.zipRight(
          Effect.sync(() => child.kill("SIGKILL")),
          Deferred.await(ended)
        )
        return {
          tell: (command) => Effect.sync(() => void child.send(command)),
          answer: waitingFor(`an answer of the child on ${filename}`)(Queue.take(answers)),
          kill
        } satisfies Child
      }),
      ({ kill }) => kill
    ),
    (child): Child => child
  )
