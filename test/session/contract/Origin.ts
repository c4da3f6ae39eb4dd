/** Where a session comes from, and its own instructions. Spec: IB-57, IB-58 in specs/sessions.md. */
import { tmpdir } from "node:os"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { type Runtimes } from "../../support/Harness.ts"

export const origin = ({ runtime }: Runtimes) => {
  const location = { directory: tmpdir() }

  it.layer(runtime())("the origin of a session", (it) => {
    it.effect("IB-57: a session of a scheduled job has source cron and the job's id, an ordinary one neither", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* sessions.create({ location, cronJobID: "nightly" })
        assert.deepStrictEqual((yield* sessions.get(id)).origin, { source: "cron", cronJobID: "nightly" })
        const { id: begun } = yield* sessions.create({ location, source: "interactive" })
        assert.deepStrictEqual((yield* sessions.get(begun)).origin, { source: "interactive" })
        const { id: plain } = yield* sessions.create({ location })
        assert.isUndefined((yield* sessions.get(plain)).origin)
      })
    )

    it.effect("IB-57: a job in an interactive session and an empty job are refused, and nothing is created", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        for (const [field, wrong] of [
          ["source", { source: "interactive", cronJobID: "nightly" }],
          ["cronJobID", { cronJobID: "" }],
          ["instructions", { instructions: "x".repeat(100_001) }]
        ] as const) {
          const error = yield* Effect.flip(sessions.create({ id: "ses_refused", location, ...wrong }))
          assert.deepInclude({ ...error }, { _tag: "InvalidInput", field })
        }
        assert.strictEqual((yield* Effect.flip(sessions.get(SessionID.make("ses_refused"))))._tag, "SessionNotFound")
      })
    )

    it.effect("IB-58: a session's own instructions follow the agent's prompt in its requests, and in no others", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* sessions.create({ location, instructions: "Answer in verse." })
        const { id: other } = yield* sessions.create({ location })
        assert.strictEqual((yield* sessions.get(id)).instructions, "Answer in verse.")
        const [own, theirs] = [
          yield* sessions.request({ sessionID: id }),
          yield* sessions.request({ sessionID: other })
        ]
        assert.strictEqual(own.frame.system[0], `${theirs.frame.system[0]}\n\nAnswer in verse.`)
        assert.strictEqual(own.frame.system.length, theirs.frame.system.length)
        const fork = yield* sessions.fork({ sessionID: id })
        assert.strictEqual((yield* sessions.get(fork.session.id)).instructions, "Answer in verse.")
      })
    )
  })
}
