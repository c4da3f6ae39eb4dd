/** The driver on the supported versions of Node. The abort that PA-11 is about is one that collections cause. */
import { assert, describe, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Effect } from "effect"
import { problemOf } from "@daybook/log/storage/Connection"
import { cases } from "../support/Cases.ts"
import { temporaryDatabase } from "../support/Database.ts"
import { program } from "../support/Program.ts"
import { waitingFor } from "../support/Waiting.ts"

it("PA-11: a driver before version 13 is refused on Node 24 and later, and every driver before Node 22", () => {
  const former = {}
  assert.isUndefined(problemOf(Sqlite.prototype, process.versions.node))
  assert.isUndefined(problemOf(Sqlite.prototype, "22.23.5"))
  assert.isUndefined(problemOf(former, "22.23.5"))
  assert.match(problemOf(former, "24.21.0") ?? "", /24\.21\.0; npm install better-sqlite3@13$/)
  assert.match(problemOf(former, "26.12.1") ?? "", /npm install better-sqlite3@13$/)
  assert.match(problemOf(Sqlite.prototype, "20.20.2") ?? "", /needs Node 22 or newer/)
})

/** CI ends 200 processes in each way. */
const patience = 600_000

const ends: Readonly<Record<string, [number | null, NodeJS.Signals | null]>> = {
  return: [0, null],
  exit: [7, null],
  throw: [1, null],
  signal: [null, "SIGTERM"]
}

describe("the end of a process that used a database", () => {
  const run = Effect.fnUntraced(function* (...words: ReadonlyArray<string>) {
    const file = yield* program(join(import.meta.dirname, "endingChild.ts"))
    const child = spawn(process.execPath, [file, ...words], { stdio: ["ignore", "ignore", "pipe"] })
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    const [code, signal] = yield* waitingFor("the end of the process")(Effect.promise(() => once(child, "close")))
    return { end: [code, signal], stderr }
  })

  it.scoped.each(Object.entries(ends))(
    "PA-12: %s: its code is the one of this end, each time",
    ([way, end]) =>
      Effect.gen(function* () {
        const filename = yield* temporaryDatabase
        yield* run("return", filename)
        const ended = yield* Effect.replicateEffect(run(way, filename), cases(4), { concurrency: 4 })
        for (const { end: found, stderr } of ended) assert.deepStrictEqual(found, end, stderr)
      }),
    patience
  )

  it.scoped(
    "PA-12: threads that use the database can be terminated at any time",
    () =>
      Effect.gen(function* () {
        const filename = yield* temporaryDatabase
        yield* run("return", filename)
        const { end, stderr } = yield* run("worker", filename, `${cases(8)}`)
        assert.deepStrictEqual(end, [0, null], stderr)
      }),
    patience
  )
})
