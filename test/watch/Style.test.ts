/** Whether the colours of the live page can be read. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"

const css = readFileSync(fileURLToPath(new URL("../../packages/inspector/src/page/base.css", import.meta.url)), "utf8")

/** The colours of the light page, and of the dark one. */
const themes = [...css.matchAll(/:root(?:\[data-theme="dark"\])? \{([^}]*)\}/g)].map(([, block = ""]) =>
  Object.fromEntries(
    Array.from(block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g), ([, name = "", color = ""]) => [name, color])
  )
)

/** The relative luminance of WCAG. */
const luminance = (color: string): number => {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const contrast = (one: string, other: string): number => {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

/** Which colours stand on which. */
const pairs = [
  ...["ink", "soft"].flatMap((text) => ["paper", "ground", "sunken"].map((on) => [text, on])),
  ...["accent", "bad", "warn"].flatMap((text) => ["paper", "ground", `${text}-soft`].map((on) => [text, on])),
  ["ink", "bad-soft"],
  ["ink", "found"],
  ["soft", "warn-soft"],
  ["paper", "accent"]
]

it("SL-224: text has a contrast of at least 4.5 to 1, in light and in dark", () => {
  assert.strictEqual(themes.length, 2)
  for (const theme of themes) {
    for (const [text = "", on = ""] of pairs) {
      assert.isAtLeast(contrast(theme[text] ?? "", theme[on] ?? ""), 4.5, `${text} on ${on}`)
    }
  }
})
