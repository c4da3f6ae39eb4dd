/** Two real processes on one file, and processes that are killed. What is waited for is a line, never a time. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { readAll } from "../support/Logs.ts"
import { invariants } from "./support/Invariants.ts"
import { survives } from "./support/Kills.ts"
import { runtime } from "./support/worker.ts"
import { program, startWorker } from "./support/Workers.ts"

const sessionID = SessionID.make("ses_followed")

it.live(
  "TL-7: a follower in another process, killed and started again at its cursor, prints the same as one read",
  () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const script = yield* program
      const effects = `${filename}.effects`
      const prompter = yield* startWorker(script, {
        do: "work",
        filename,
        sessionID,
        from: 1,
        to: 9,
        effects,
        every: 3
      })
      assert.strictEqual(yield* prompter.line, "ready")
      const printed: Array<string> = []
      const cursor = () => Number(printed.at(-1)?.split(" ")[1] ?? -1)
      // Eleven events after each start, then it is killed, as long as the prompts go on and once more.
      const follow = (until: (seen: number) => boolean) =>
        Effect.scoped(
          Effect.gen(function* () {
            const follower = yield* startWorker(script, { do: "follow", filename, sessionID, after: cursor() })
            for (let seen = 0; !until(seen); seen += 1) {
              const line = yield* follower.line
              assert.match(line, /^event /)
              printed.push(line)
            }
          })
        )
      for (let life = 0; life < 2; life += 1) yield* follow((seen) => seen === 11)
      const said: Array<string> = []
      while (said.at(-1) !== "done") said.push(yield* prompter.line)
      assert.strictEqual(said.length, 10)
      const whole = yield* Effect.provide(readAll(sessionID, 0), runtime(filename))
      yield* follow(() => cursor() === whole.at(-1)?.seq)
      assert.deepStrictEqual(
        printed,
        whole.map(({ id, seq, type }) => `event ${seq} ${id} ${type}`)
      )
    }).pipe(Effect.scoped)
)

it.live("CO-1: two processes that prompt one session at once run every prompt once, one drain at a time", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const script = yield* program
    const effects = `${filename}.effects`
    const base = { do: "work", filename, sessionID, effects, every: 4 } as const
    const workers = [
      yield* startWorker(script, { ...base, from: 1, to: 12 }),
      yield* startWorker(script, { ...base, from: 101, to: 112 })
    ]
    for (const worker of workers) {
      let line = ""
      while (line !== "done") {
        line = yield* worker.line
        assert.match(line, /^(ready|ack|done)/)
      }
    }
    yield* Effect.gen(function* () {
      const sessions = yield* Sessions
      const called = yield* invariants
      assert.sameMembers(readFileSync(effects, "utf8").trimEnd().split("\n"), [...called])
      assert.deepStrictEqual(yield* sessions.inbox(sessionID), [])
      const events = yield* readAll(sessionID)
      const promoted = events.filter(({ type }) => type === "session.next.prompt.promoted")
      assert.strictEqual(promoted.length, 24)
      // Activities do not overlap: each ends before the next begins.
      const bounds = events.flatMap(({ type }) => (type.startsWith("session.next.activity.") ? [type.slice(22)] : []))
      for (const [index, bound] of bounds.entries()) assert.strictEqual(bound, index % 2 === 0 ? "started" : "settled")
    }).pipe(Effect.provide(runtime(filename)))
  }).pipe(Effect.scoped)
)

it.live("IN-10: prompts that were acknowledged before a kill -9 are there once, and no tool ran twice", () =>
  Effect.flatMap(Random.nextIntBetween(0, 2 ** 31), (seed) => survives(2, Number(process.env["DAYBOOK_SEED"] ?? seed)))
)
