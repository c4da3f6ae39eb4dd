/**
 * Method: a generated conversation with compactions, prunings, switches, steers and restarts, as in Recorded.test.ts. Then
 * the history of every turn is read from where its last checkpoint was, and compared with the replay of the whole log.
 */
import { historyAt, lowerOne, SessionID, shownAt, shownBy, type Sent } from "@daybook/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../support/Harness.ts"
import { converse, open, stepsOf } from "./support/Conversation.ts"
import { transcript } from "./support/GeneratedModel.ts"
import { random } from "./support/Random.ts"
import { eventsOf } from "../runner/support/Runs.ts"

const sessionID = SessionID.make("ses_history")

describe("the history of a turn", () => {
  it.scopedLive(
    "RQ-34: read from its last checkpoint on, it is what the replay of the whole log shows, at every turn",
    () =>
      Effect.gen(function* () {
        const { filename } = yield* converse(yield* temporaryFolder, sessionID, 60, 11)
        const runtime = yield* open(filename, random(0), transcript())
        yield* Effect.gen(function* () {
          const steps = yield* stepsOf(sessionID)
          const prunings = (yield* eventsOf(sessionID)).flatMap((event) =>
            event.type === "session.next.context.pruned" ? [event] : []
          )
          for (const [nth, { seq }] of steps.entries()) {
            const whole = yield* shownAt(sessionID, seq)
            const prunedSeq = prunings.findLast((event) => event.seq < seq)?.data.through ?? -1
            const { agent, frame, model, step } = whole
            if (step === undefined) return assert.fail(`turn ${nth} is no step`)
            const sent: Sent = { agent, frame, model, step, prunedSeq }
            const history = yield* historyAt(sessionID, { baselineSeq: whole.frame.baselineSeq, before: seq })
            const shown = history.flatMap((message) => lowerOne(message, shownBy(sent)))
            assert.deepEqual(shown, whole.messages, `turn ${nth}`)
          }
          const count = (type: string) => steps.filter(({ between }) => between.has(type)).length
          assert.isAtLeast(count("compaction.ended"), 3)
          assert.isAtLeast(prunings.length, 1)
        }).pipe(Effect.provide(runtime))
      }),
    120_000
  )
})
