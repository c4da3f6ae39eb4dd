/**
 * The client in Deno and Bun. Method: npm installs them into an empty folder; a bundle of the client without modules of Node
 * follows a session over a connection that breaks, and prints the number of each event.
 */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../contracts/Samples.ts"
import * as Cutter from "../client/support/Cutter.ts"
import { bundled } from "../client/support/Follower.ts"
import { layer as served } from "../client/support/ServedClient.ts"
import { run } from "../packages/support/Packages.ts"
import { Served } from "../server/http/support/ServedApi.ts"
import { temporaryFolder } from "../support/Harness.ts"

const runtimes = [
  ["deno@2", ["deno", "run", "--allow-net"]],
  ["bun@1", ["bun", "run"]]
] as const

/** The lines that a program prints, until the scope closes. */
const lines = Effect.fnUntraced(function* (folder: string, [command, ...words]: ReadonlyArray<string>, file: string) {
  const printed = yield* Queue.unbounded<string>()
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(join(folder, "node_modules", ".bin", command ?? ""), [...words, file], {
        cwd: folder,
        stdio: ["ignore", "pipe", "inherit"]
      })
      createInterface({ input: child.stdout }).on("line", (line) => Queue.unsafeOffer(printed, line))
      return child
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  return printed
})

layer(served(), { excludeTestServices: true })("the client in other runtimes", (it) => {
  it.scoped.each(runtimes)(
    "HT-63: in %s its bundle replays and follows, each event once, over a connection that breaks",
    ([name, words]) =>
      Effect.gen(function* () {
        const [folder, log, { url }, id] = [yield* temporaryFolder, yield* EventLog, yield* Served, session()]
        writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }))
        yield* Effect.promise(() => run(folder, "npm", "install", "--no-audit", "--no-fund", name))
        yield* begin(id, 30)
        const cutter = yield* Cutter.make(url, () => undefined)
        writeFileSync(
          join(folder, "client.mjs"),
          yield* bundled(id, JSON.stringify(cutter.url), "console.log(String(seq))")
        )
        const printed = yield* lines(folder, words, "client.mjs")
        const seen = [...(yield* Queue.takeN(printed, 30))]
        yield* log.append(id, [renamed("while it follows")])
        seen.push(yield* Queue.take(printed))
        yield* cutter.cut
        yield* log.append(id, [renamed("while it is away")])
        seen.push(yield* Queue.take(printed))
        assert.deepEqual(
          seen,
          Array.from({ length: 32 }, (_, index) => String(index + 1))
        )
        assert.isAtLeast(cutter.connections(), 2)
      }),
    300_000
  )
})
