/** What the command says of an answer that is not whole. Method: a model on the loopback that ends its answers so. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "./support/Bundle.ts"
import { held } from "./support/Held.ts"
import type { Exchange } from "./support/ModelServer.ts"

beforeAll(() => void build())

type Reason = Parameters<Exchange["finish"]>[0]

/** Prompts the session `fix`; each request is answered with the text and the reason. */
const prompted = Effect.fnUntraced(function* (
  flags: ReadonlyArray<string>,
  ...answers: ReadonlyArray<readonly [text: string, reason: Reason]>
) {
  const { env, here, model } = yield* held
  const run = yield* here.start(["prompt", "--session", "fix", ...flags, "Go"], { env })
  for (const [text, reason] of answers) {
    const turn = yield* model.next
    if (text !== "") yield* turn.text(text)
    yield* turn.finish(reason)
  }
  return { here, env, model, ...(yield* run.ended) }
})

const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1) ?? ""
const cut = "The answer was cut off at the model's output limit, after 2 tokens."

describe("an answer that is not whole", () => {
  it.scopedLive(
    "CL-620: a cut answer is on stdout, its sentence and the way on are on stderr, and it exits with 7",
    () =>
      Effect.gen(function* () {
        const { code, stderr, stdout } = yield* prompted([], ["Half of it", "length"])
        assert.strictEqual(stdout, "Half of it\n")
        assert.match(
          lastLine(stderr),
          new RegExp(`^daybook: ${cut.replaceAll(".", "\\.")} Go on: daybook resume ses_\\S+$`)
        )
        assert.strictEqual(code, 7)
      })
  )

  it.scopedLive("CL-620: resume continues a cut answer, and exits with 0 once it is whole", () =>
    Effect.gen(function* () {
      const { env, here, model } = yield* prompted([], ["Half of it", "length"])
      const resumed = yield* here.start(["resume", "fix"], { env })
      const turn = yield* model.next
      assert.include(JSON.stringify(turn.body.messages.at(-1)), "Your answer above was cut off.")
      yield* turn.text(" and the rest")
      yield* turn.finish()
      assert.strictEqual((yield* resumed.ended).code, 0)
    })
  )

  it.scopedLive("CL-620: a filtered answer exits with 8", () =>
    Effect.gen(function* () {
      const { code, stderr } = yield* prompted([], ["", "content_filter"])
      assert.strictEqual(lastLine(stderr), "daybook: The provider's filter withheld the answer.")
      assert.strictEqual(code, 8)
    })
  )

  it.scopedLive("CL-620: an answer that is empty twice exits with 10, after two requests", () =>
    Effect.gen(function* () {
      const { code, stderr } = yield* prompted([], ["", "stop"], ["", "stop"])
      assert.strictEqual(lastLine(stderr), "daybook: The model answered nothing.")
      assert.strictEqual(code, 10)
    })
  )

  it.scopedLive("CL-620: with --json the last event says what the answer lacks, and the exit code is the same", () =>
    Effect.gen(function* () {
      const { code, stdout } = yield* prompted(["--json"], ["Half of it", "length"])
      const settled = stdout.split("\n").find((line) => line.includes('"session.next.activity.settled"')) ?? "{}"
      const { data } = JSON.parse(settled)
      assert.deepInclude(data, { outcome: "completed", error: { type: "answer.cut", message: cut } })
      assert.strictEqual(code, 7)
    })
  )

  it.scopedLive("CL-621: sessions and show say it, in the head and after the answer", () =>
    Effect.gen(function* () {
      const { env, here } = yield* prompted([], ["Half of it", "length"])
      const listed = yield* (yield* here.start(["sessions"], { env })).ended
      assert.include(listed.stdout, "  answer cut  ")
      const shown = yield* (yield* here.start(["show", "fix"], { env })).ended
      assert.match(shown.stdout, /^activity +answer cut: The answer was cut off/m)
      assert.include(shown.stdout, `Half of it\n\n! ${cut}\n`)
      assert.strictEqual(shown.code, 0)
    })
  )
})
