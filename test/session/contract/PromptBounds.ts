/** What a prompt may be (IB-31, IB-32): at the bound it is admitted, beyond it is refused by its field and stores nothing. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { maximumBytes, maximumSystem, maximumText } from "../../../packages/core/src/session/PromptBounds.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { PromptInput } from "../../../packages/log/src/domain/Values.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { newSession, type Runtimes } from "../../support/Harness.ts"

export const promptBounds = ({ runtime }: Runtimes) => {
  /** A prompt whose JSON has this many bytes, in characters of three bytes each as far as it goes. */
  const ofBytes = (bytes: number): PromptInput => {
    const withName = (name: string): PromptInput => ({
      text: "see",
      files: [{ uri: "data:text/plain,x", mime: "text/plain", name }]
    })
    const rest = bytes - Buffer.byteLength(JSON.stringify(withName("")))
    return withName("\u20AC".repeat(Math.floor(rest / 3)) + "x".repeat(rest % 3))
  }

  const loop: Record<string, unknown> = { type: "object" }
  loop["self"] = loop

  const nested = (levels: number): Record<string, unknown> => {
    let items: Record<string, unknown> = { type: "object" }
    for (let level = 1; level < levels; level++) items = { items }
    return { ...items, type: "object" }
  }

  const bounds: ReadonlyArray<readonly [string, PromptInput | undefined, PromptInput, string]> = [
    [
      "its text",
      { text: "x".repeat(maximumText) },
      { text: "x".repeat(maximumText + 1) },
      "prompt.text: it has 1048577 characters, and at most 1048576 are allowed"
    ],
    [
      "its system text",
      { text: "x", system: "x".repeat(maximumSystem) },
      { text: "x", system: "x".repeat(maximumSystem + 1) },
      "prompt.system: it has 262145 characters, and at most 262144 are allowed"
    ],
    [
      "all of it",
      ofBytes(maximumBytes),
      ofBytes(maximumBytes + 1),
      "prompt: as JSON it has 33554433 bytes with its files, and at most 33554432 are allowed"
    ],
    [
      "a form that is no JSON",
      undefined,
      { text: "x", output: { schema: { type: "object", default: 1n } } },
      "prompt: it cannot be written as JSON"
    ],
    [
      "the nesting of the form of its answer",
      { text: "x", output: { schema: nested(98) } },
      { text: "x", output: { schema: nested(5_000) } },
      "prompt.output: it is nested more than 100 levels deep"
    ],
    [
      "a form that holds itself",
      undefined,
      { text: "x", output: { schema: loop } },
      "prompt.output: it is nested more than 100 levels deep"
    ]
  ]

  it.layer(runtime())("bounds", (it) => {
    for (const [what, most, over, message] of bounds) {
      it.effect(`IB-31: ${what} is bounded`, () =>
        Effect.gen(function* () {
          const sessions = yield* Sessions
          const log = yield* EventLog
          const { id: sessionID } = yield* newSession()
          const ask = (prompt: PromptInput) => sessions.prompt({ sessionID, prompt, resume: false, expand: false })
          if (most !== undefined) yield* ask(most)
          const before = yield* log.latest(sessionID)
          const error = yield* Effect.flip(ask(over))
          assert.strictEqual(String(error), `InvalidInput: ${message}`)
          assert.strictEqual(yield* log.latest(sessionID), before)
        })
      )
    }

    it.effect("IB-32: a blank prompt is refused, whatever its white space, and stores nothing", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const log = yield* EventLog
        const { id: sessionID } = yield* newSession()
        const before = yield* log.latest(sessionID)
        for (const text of ["", " ", "\n\n", "\t\r\n", "\u00a0", "\u3000", "\u200b\ufeff", "\u0085"]) {
          for (const more of [{}, { files: [] }, { agents: [], references: [], system: "Be brief." }]) {
            const error = yield* Effect.flip(sessions.prompt({ sessionID, prompt: { text, ...more }, resume: false }))
            assert.strictEqual(
              String(error),
              "InvalidInput: prompt.text: it is blank: write something, or attach a file"
            )
          }
        }
        assert.strictEqual(yield* log.latest(sessionID), before)
      })
    )

    it.effect("IB-32: a prompt without words is admitted with an attachment, an agent or a reference", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id: sessionID } = yield* newSession()
        const files = [{ uri: "data:text/plain,x", mime: "text/plain" }]
        for (const more of [{ files }, { agents: [{ name: "plan" }] }, { references: [{ name: "manual" }] }]) {
          const input = yield* sessions.prompt({ sessionID, prompt: { text: " \n", ...more }, resume: false })
          assert.strictEqual(input.prompt.text, " \n")
        }
      })
    )

    it.effect("IB-32: an exact retry of a blank prompt of an older log gets its receipt", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const log = yield* EventLog
        const { id: sessionID } = yield* newSession()
        const id = MessageID.make("msg_blank")
        const prompt = { text: "\n" }
        const [event] = yield* log.append(sessionID, [
          draft("session.next.prompt.admitted", { messageID: id, prompt, delivery: "steer" })
        ])
        const receipt = yield* sessions.prompt({ id, sessionID, prompt, resume: false })
        assert.strictEqual(receipt.admittedSeq, event.seq)
      })
    )
  })
}
