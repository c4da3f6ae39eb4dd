/**
 * Method: a generated conversation with compactions, prunings, switches, steers and restarts, as in Recorded.test.ts. Then
 * the history of every turn is read from where its last checkpoint was, and compared with the replay of the whole log.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { conversation } from "../../packages/core/src/request/Lowering.ts"
import { shownAt, shownBy } from "../../packages/core/src/request/Recorded.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { converse, open, stepsOf } from "./support/Conversation.ts"
import { transcript } from "./support/GeneratedModel.ts"
import { random } from "./support/Random.ts"
import { replayedAt } from "./support/Replayed.ts"

const sessionID = SessionID.make("ses_history")

describe("the history of a turn", () => {
  it.scopedLive(
    "RQ-56, RQ-34: read from its last checkpoint on, it is what the replay of the whole log shows, at every turn",
    () =>
      Effect.gen(function* () {
        const { filename } = yield* converse(yield* temporaryFolder, sessionID, 60, 11)
        const runtime = yield* open(filename, random(0), transcript())
        yield* Effect.gen(function* () {
          const steps = yield* stepsOf(sessionID)
          for (const [nth, { seq }] of steps.entries()) {
            const replayed = yield* replayedAt(sessionID, seq)
            if (replayed === undefined) return assert.fail(`turn ${nth} is no step`)
            const { history, sent } = replayed
            const shown = yield* shownAt(sessionID, seq)
            assert.deepEqual(
              shown.messages,
              conversation(history, shownBy(sent)).flatMap(({ shown }) => shown),
              `turn ${nth}`
            )
            assert.deepEqual(shown.frame, sent.frame, `turn ${nth}`)
            assert.deepEqual([shown.agent, shown.model, shown.step], [sent.agent, sent.model, sent.step])
          }
          const count = (type: string) => steps.filter(({ between }) => between.has(type)).length
          assert.isAtLeast(count("compaction.ended"), 3)
          assert.isAtLeast(count("context.pruned"), 1)
        }).pipe(Effect.provide(runtime))
      }),
    120_000
  )
})
