/**
 * The context files of every step of random logs, made when the log holds much more by then. What was shown is told by the
 * replay of the whole log, which knows nothing of lines and keys.
 */
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Effect, FastCheck as fc, Layer } from "effect"
import { conversation } from "../../../packages/core/src/request/Lowering.ts"
import { historyAt, shownAt, shownBy } from "../../../packages/core/src/request/Recorded.ts"
import { sentOf } from "../../../packages/files/src/context/Pack.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import * as SqlSessionStore from "../../../packages/log/src/store/SqlSessionStore.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { replayedAt } from "../../request/support/Replayed.ts"
import { cases } from "../../support/Cases.ts"
import { memoryLog } from "../../support/Database.ts"
import { plausibleLog } from "../../support/PlausibleLogs.ts"
import { type Context, contextsOf, rowsOf } from "./support/Contexts.ts"
import { framedLog } from "./support/FramedLogs.ts"

const sessionID = SessionID.make("ses_random")

/** Every step framed; most of what is drawn frames nothing. */
const withFrames = (drafts: ReadonlyArray<Draft>): ReadonlyArray<Draft> =>
  drafts.flatMap((next): ReadonlyArray<Draft> =>
    next.type === "session.next.step.started"
      ? [draft("session.next.request.framed", { hash: "x", system: ["You help."] }), next]
      : [next]
  )

/** Holds the law for every step of random logs; each log is in the store alone. */
const check = (
  law: (context: Context) => Effect.Effect<void, unknown, EventLog | SessionStore>,
  logs: fc.Arbitrary<ReadonlyArray<Draft>> = framedLog("x")
) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const runtime = yield* Effect.runtime<EventLog | SessionStore>()
    let steps = 0
    const holds = Effect.fnUntraced(
      function* (drafts: ReadonlyArray<Draft>) {
        if (!Arr.isNonEmptyReadonlyArray(drafts)) return
        yield* log.append(sessionID, drafts)
        const { made } = yield* contextsOf(sessionID, law)
        steps += made.length
      },
      Effect.ensuring(Effect.orDie(log.remove(sessionID)))
    )
    const property = fc.asyncProperty(logs, (drafts) => Effect.runPromise(Effect.provide(holds(drafts), runtime)))
    yield* Effect.promise(() => fc.assert(property, { numRuns: cases(5) }))
    assert.isAbove(steps, 0)
  }).pipe(Effect.provide(SqlSessionStore.layer.pipe(Layer.provideMerge(memoryLog))))

describe("any step of any log", () => {
  it.live("RQ-56, RQ-34: what is read by keys is what the replay of the whole log shows", () =>
    check(({ seq, state }) =>
      Effect.gen(function* () {
        const replayed = yield* replayedAt(sessionID, seq)
        const sent = sentOf(state)
        if (sent === undefined || replayed === undefined) return assert.fail("a framed step is nothing that was sent")
        assert.deepEqual(sent, replayed.sent)
        const history = yield* historyAt(sessionID, { baselineSeq: sent.frame.baselineSeq, before: seq })
        assert.deepEqual(history, replayed.history)
        const { frame, messages } = yield* shownAt(sessionID, seq)
        assert.deepEqual(
          [frame, messages],
          [sent.frame, conversation(history, shownBy(sent)).flatMap(({ shown }) => shown)]
        )
      })
    )
  )

  it.live("PK-2: the items are the whole request within the budget, and every source resolves", () =>
    check(({ files, messages, seq }) =>
      Effect.gen(function* () {
        const whole = yield* shownAt(sessionID, seq)
        const pack = JSON.parse(String(files.get("pack.json")))
        const items: ReadonlyArray<{ readonly source: string; readonly range?: string; readonly tokens: number }> =
          pack.items
        const sum = items.reduce((total, { tokens }) => total + tokens, 0)
        assert.strictEqual(sum, whole.estimate.total)
        assert.isAtMost(sum, pack.budget_tokens)
        const lines = messages.toString().split("\n").length - 1
        for (const { range, source } of items) {
          if (source !== "../messages.jsonl") assert.isTrue(files.has(source), source)
          else {
            const [from = 0, to = 0] = String(range).split("-").map(Number)
            assert.isTrue(1 <= from && from <= to && to <= lines, `${range} of ${lines}`)
          }
        }
      })
    )
  )

  it.live(
    "PK-2: a log that no runner would write has files for each of its framed steps, and their sources resolve",
    () =>
      check(
        ({ files, messages }) =>
          Effect.sync(() => {
            const lines = messages.toString().split("\n").length - 1
            const { budget_tokens, items } = JSON.parse(String(files.get("pack.json")))
            let sum = 0
            for (const { range, source, tokens } of items) {
              sum += tokens
              if (source !== "../messages.jsonl") assert.isTrue(files.has(source), source)
              else assert.isAtMost(Number(String(range).split("-")[1]), lines)
            }
            assert.isAtMost(sum, budget_tokens)
          }),
        plausibleLog("x", 120).map(withFrames)
      )
  )

  it.live("PK-4: no line is both in the pack and swapped out, and none of the conversation is in neither", () =>
    check(({ files, messages, state }) =>
      Effect.sync(() => {
        const times = new Map<number, number>()
        const count = (range: unknown) => {
          const [from = 0, to = 0] = String(range).split("-").map(Number)
          for (let line = from; line <= to; line++) times.set(line, (times.get(line) ?? 0) + 1)
        }
        const { items } = JSON.parse(String(files.get("pack.json")))
        for (const { range, source } of items) if (source === "../messages.jsonl") count(range)
        for (const row of rowsOf(files, "swap/index.jsonl")) if (row["kind"] === "message_range") count(row["range"])
        const { baselineSeq } = state.framed.frame
        const contained = new Set([...state.shown].filter(({ kind, seq }) => kind === "told" && seq <= baselineSeq))
        const rows = messages.toString().split("\n").slice(0, -1)
        for (const [nth, row] of rows.entries()) {
          const line = nth + 1
          assert.isAtMost(times.get(line) ?? 0, 1, row)
          if (times.has(line) || [...contained].some((told) => told.line === line)) continue
          // An answer that said nothing is nothing to show; a command that ended after its checkpoint goes with the next.
          const content: ReadonlyArray<{ readonly from?: string; readonly type: string; readonly text?: string }> =
            JSON.parse(row).content
          const said = content.filter(({ text, type }) => type !== "text" || /\S/.test(text ?? ""))
          if (content[0]?.from !== "shell") assert.deepEqual(said, [], row)
        }
      })
    )
  )
})
