/** Screens in places of their own, with a model that answers when the test lets it. */
import { Effect } from "effect"
import { held } from "../../cli/support/Held.ts"
import * as Tmux from "./Tmux.ts"

/** The model in the status line: the screen is drawn. */
export const status = "openai-compatible/held"

/** A screen, once it can be typed at. */
export const opened = (options: Tmux.Options = {}) =>
  Effect.gen(function* () {
    const { env, here, model } = yield* held
    const pane = yield* Tmux.start(here, { env, ...options })
    yield* pane.until((screen) => screen.includes(status))
    return { env, here, model, pane }
  })

/** Waits until the text that was typed is in the editor, and sends it. */
export const send = (pane: Tmux.Pane, text: string) =>
  Effect.gen(function* () {
    yield* pane.type(text)
    yield* pane.until((screen) => screen.includes(text))
    yield* pane.press("Enter")
  })
