/**
 * Method: a process admits prompts and runs them. It is killed with `kill -9` at a random instant after a random number of
 * acknowledgements, repeatedly; each successor repeats the unacknowledged prompt. At the end every acknowledged prompt must
 * exist once, every sequence must have no gap, every projection must equal the fold, and no call may have run twice.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Random } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { temporaryFolder } from "../../support/Harness.ts"
import { readAll } from "../../support/Logs.ts"
import { invariants } from "./Invariants.ts"
import { type Order, promptOf, registerNote, runtime } from "./worker.ts"
import { program, startWorker } from "./Workers.ts"

const sessionID = SessionID.make("ses_killed")

/** One life of the process; returns the last number that it acknowledged. */
const life = Effect.fnUntraced(function* (script: string, order: Extract<Order, { readonly do: "work" }>) {
  const worker = yield* startWorker(script, order)
  let acknowledged = order.from - 1
  const allowed = yield* Random.nextIntBetween(0, 6)
  const take = Effect.map(worker.line, (line) => {
    const [word, number] = line.split(" ")
    if (word === "ack") acknowledged = Number(number)
    return line
  })
  while (acknowledged < order.from - 1 + allowed) {
    const line = yield* take
    assert.notInclude(["ended", "done"], line)
    assert.notMatch(line, /^failed/)
  }
  // The random instant of the kill; no assertion depends on this time.
  yield* Effect.sleep(`${yield* Random.nextIntBetween(0, 25)} millis`)
  yield* worker.kill
  yield* Effect.repeat(take, { until: (line) => line === "ended" })
  return acknowledged
}, Effect.scoped)

export const survives = (lives: number, seed: number) =>
  Effect.gen(function* () {
    console.log(`seed ${seed}: ${lives} lives`)
    const folder = yield* temporaryFolder
    const [filename, effects] = [join(folder, "daybook.db"), join(folder, "effects")]
    const script = yield* program
    let acknowledged = 0
    for (let count = 0; count < lives; count += 1) {
      const from = acknowledged + 1
      acknowledged = yield* life(script, {
        do: "work",
        filename,
        sessionID,
        from,
        to: from + 1_000,
        effects,
        every: 4
      })
    }
    yield* Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* registerNote(effects)
      if (acknowledged === 0) return
      yield* invariants
      // Waiting prompts run with the next prompt: here, an exact retry of the last one.
      for (let number = 1; number <= acknowledged; number += 1) {
        const receipt = yield* sessions.prompt({ ...promptOf(sessionID, number), resume: number === acknowledged })
        assert.strictEqual(receipt.prompt.text, `prompt ${number}`)
      }
      yield* sessions.wait(sessionID)
      assert.deepStrictEqual(yield* sessions.inbox(sessionID), [])
      const events = yield* readAll(sessionID)
      for (const type of ["session.next.prompt.admitted", "session.next.prompt.promoted"] as const) {
        const ids = events.flatMap((event) => (event.type === type ? [event.data.messageID as string] : []))
        assert.strictEqual(new Set(ids).size, ids.length)
        const wanted = Array.from({ length: acknowledged }, (_, index) => `msg_${index + 1}`)
        // The prompt in progress when the process died may exist too.
        assert.includeMembers(ids, wanted)
        assert.isAtMost(ids.length, acknowledged + 1)
      }
      const called = yield* invariants
      const ran = readFileSync(effects, "utf8").trimEnd().split("\n")
      assert.strictEqual(new Set(ran).size, ran.length)
      assert.includeMembers([...called], ran)
    }).pipe(Effect.provide(runtime(filename)), Effect.scoped)
  }).pipe(Effect.withRandom(Random.make(seed)), Effect.scoped)
