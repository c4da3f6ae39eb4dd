/** The list that a person chooses from, with a preview of what is chosen. Spec: SC-524 in specs/screen.md. */
import { matchesKey } from "@mariozechner/pi-tui/dist/keys.js"
import { Effect } from "effect"
import * as Ask from "./Ask.ts"
import type * as Commands from "./Commands.ts"
import type { Size } from "./Draw.ts"
import type { Talk } from "./Talk.ts"
import type { Theme } from "./Theme.ts"

interface OpenList {
  list: Ask.List
  preview: ReadonlyArray<string>
  previewOf: string | undefined
  readonly load: Commands.ChoiceRequest["preview"]
  readonly done: (choice: Ask.Choice | undefined) => void
}

export type Choosing = ReturnType<typeof make>

export const make = ({ act, changed }: { readonly act: Talk["act"]; readonly changed: () => void }) => {
  let open: OpenList | undefined

  const loadPreview = (choosing: OpenList) => {
    const choice = Ask.chosen(choosing.list)
    if (choosing.load === undefined || choice === undefined || choice.value === choosing.previewOf) return
    choosing.previewOf = choice.value
    choosing.preview = []
    act(
      Effect.map(choosing.load(choice), (lines) => {
        if (choosing.previewOf === choice.value) choosing.preview = lines
      })
    )
  }

  return {
    isOpen: () => open !== undefined,
    /** Opens a list; the effect ends with what is chosen. */
    choose: ({ at = 0, choices, preview, title }: Commands.ChoiceRequest) =>
      Effect.async<Ask.Choice | undefined>((resume) => {
        open = {
          list: { title, choices, filter: "", at },
          preview: [],
          previewOf: undefined,
          load: preview,
          done: (choice) => {
            open = undefined
            resume(Effect.succeed(choice))
          }
        }
        loadPreview(open)
        changed()
      }),
    /** The list's lines; undefined if none is open. */
    lines: (at: Size, theme: Theme): ReadonlyArray<string> | undefined =>
      open === undefined ? undefined : Ask.listLines(open.list, open.preview, at, theme),
    onKey: (key: string): void => {
      if (open === undefined) return
      if (matchesKey(key, "enter")) return open.done(Ask.chosen(open.list))
      if (matchesKey(key, "escape") || matchesKey(key, "ctrl+c")) return open.done(undefined)
      open.list = Ask.onListKey(open.list, key)
      loadPreview(open)
    }
  }
}
