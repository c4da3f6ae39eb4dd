/** What the screen tells a terminal that is not in front. Method: a pseudo-terminal whose bytes are read as they come. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "../cli/support/Bundle.ts"
import { held } from "../cli/support/Held.ts"

beforeAll(() => void build())

const [toFront, toBack] = ["\u001b[I", "\u001b[O"]
const told = "\u0007\u001b]9;daybook: "

/** Sends a prompt while the terminal is in front or behind, and reads until the answer is there and the editor is free. */
const answered = (focus: string, config = "") =>
  Effect.gen(function* () {
    const { env, here, model } = yield* held
    const folder = join(here.root, "config", "daybook")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, "config.yaml"), config)
    const more = { ...env, XDG_CONFIG_HOME: join(here.root, "config") }
    const running = yield* here.startAlone([], { env: more, terminal: { columns: 80, rows: 24 } })
    yield* running.until("stdout", (text) => text.includes("openai-compatible/held"))
    yield* running.type(focus)
    yield* running.type("Go")
    yield* running.until("stdout", (text) => text.includes("Go"))
    yield* running.type("\r")
    const turn = yield* model.next
    yield* turn.text("All of it.")
    yield* turn.finish()
    // The status line has the tokens of the answer once the run has ended.
    yield* running.until("stdout", (text) => text.includes("5 tokens"))
    return running
  })

describe("notifications", () => {
  it.scopedLive("SC-542: the end of a run is told to a terminal that is not in front", () =>
    Effect.gen(function* () {
      const running = yield* answered(toBack)
      const text = yield* running.until("stdout", (text) => text.includes(told))
      assert.include(text, `${told}Go is done\u001b\\\u001b]777;notify;daybook;Go is done`)
    })
  )

  for (const [why, focus, config] of [
    ["a terminal in front", toFront, ""],
    ["a person who configured none", toBack, "notifications: off\n"]
  ] as const) {
    it.scopedLive(`SC-542: nothing is told to ${why}`, () =>
      Effect.gen(function* () {
        const running = yield* answered(focus, config)
        yield* running.type("\u0004")
        const { stdout } = yield* running.ended
        assert.include(stdout, "All of it.")
        assert.notInclude(stdout, told)
      })
    )
  }
})
