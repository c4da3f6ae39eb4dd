/**
 * Chooses colours by the terminal's background; without colours everything is still told by signs and words. Colours are the
 * sixteen of the person's own palette. Pure. Spec: SC-506, SC-540, SC-541 in specs/screen.md.
 */
import type { MarkdownTheme } from "@mariozechner/pi-tui/dist/components/markdown.js"
import type { SelectListTheme } from "@mariozechner/pi-tui/dist/components/select-list.js"
import { common, createLowlight } from "lowlight"
import { plain, type Style, styleOf } from "../render/Style.ts"

export type Background = "dark" | "light"

// Colours of code, line by line.

// Registering the languages takes a while; most screens open without code.
let registered: ReturnType<typeof createLowlight> | undefined
const lowlight = () => (registered ??= createLowlight(common))

/** Longer code is shown without colours. */
const longest = 20_000

/** Colours of the palette by the kind of token, on a dark and on a light background. */
const colours: ReadonlyArray<readonly [kind: RegExp, dark: string, light: string]> = [
  [/^hljs-(?:comment|quote|meta)/, "90", "90"],
  [/^hljs-(?:string|regexp|addition|char)/, "32", "32"],
  [/^hljs-(?:number|literal|symbol|bullet)/, "33", "35"],
  [/^hljs-(?:keyword|built_in|selector-tag|name|tag)/, "35", "34"],
  [/^hljs-(?:title|function|section|class)/, "36", "34"],
  [/^hljs-(?:deletion)/, "31", "31"],
  [/^hljs-(?:type|attr|attribute|variable|params|property)/, "34", "36"]
]

type Node = ReturnType<ReturnType<typeof lowlight>["highlight"]>["children"][number]

const colourOf = (node: Node, background: Background): string | undefined => {
  if (node.type !== "element") return undefined
  const { className } = node.properties
  const names = Array.isArray(className) ? className.map(String) : []
  const found = colours.find(([kind]) => names.some((name) => kind.test(name)))
  return background === "light" ? found?.[2] : found?.[1]
}

/** A colour ends with its line: each line can be drawn alone. */
const painted = (text: string, colour: string | undefined): string =>
  colour === undefined
    ? text
    : text
        .split("\n")
        .map((line) => (line === "" ? "" : `\u001b[${colour}m${line}\u001b[39m`))
        .join("\n")

const textOf = (nodes: ReadonlyArray<Node>, background: Background, outer: string | undefined): string =>
  nodes
    .map((node) => {
      if (node.type === "text") return painted(node.value, outer)
      return node.type === "element" ? textOf(node.children, background, colourOf(node, background) ?? outer) : ""
    })
    .join("")

/** The lines of code, in colours if the language is known. */
export const highlighted = (code: string, language: string | undefined, background: Background): Array<string> =>
  (language !== undefined && code.length <= longest && lowlight().registered(language)
    ? textOf(lowlight().highlight(language, code).children, background, undefined)
    : code
  ).split("\n")

// The theme of a terminal.

export interface Theme {
  readonly style: Style
  /** What the person said or chose. */
  readonly accent: (text: string) => string
  readonly markdown: MarkdownTheme
  readonly list: SelectListTheme
}

/** The background that a terminal reports, `rgb:1e1e/1e1e/1e1e`; undefined for anything else. */
export const backgroundOf = (report: string): Background | undefined => {
  const [, ...parts] = /rgb:([\da-f]{1,4})\/([\da-f]{1,4})\/([\da-f]{1,4})/i.exec(report) ?? []
  if (parts.length < 3) return undefined
  const [red = 0, green = 0, blue = 0] = parts.map((part) => Number.parseInt(part, 16) / (16 ** part.length - 1))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 ? "light" : "dark"
}

/** The background that `COLORFGBG` names: its last number is a colour of the palette. */
export const backgroundNamed = (variable: string | undefined): Background | undefined => {
  const last = variable?.split(";").at(-1)
  if (last === undefined || !/^\d+$/.test(last)) return undefined
  return Number(last) === 7 || Number(last) === 15 ? "light" : "dark"
}

const same = (text: string) => text
const sgr = (on: string, off: string) => (text: string) => (text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`)

export const themeOf = (env: Readonly<Record<string, string | undefined>>, background: Background): Theme => {
  const style = styleOf(env, true)
  const colour = (code: string) => (style === plain ? same : sgr(code, "39"))
  const form = (on: string, off: string) => (style === plain ? same : sgr(on, off))
  // Bright yellow and cyan cannot be read on a light background.
  const [accent, code, name] = background === "light" ? ["34", "35", "34"] : ["36", "33", "36"]
  const [bold, dim] = [style.strong, style.dim]
  return {
    style,
    accent: colour(accent),
    markdown: {
      heading: (text) => bold(colour(name)(text)),
      link: form("4", "24"),
      linkUrl: dim,
      code: colour(code),
      codeBlock: same,
      codeBlockBorder: dim,
      quote: form("3", "23"),
      quoteBorder: dim,
      hr: dim,
      listBullet: colour(accent),
      bold,
      italic: form("3", "23"),
      strikethrough: form("9", "29"),
      underline: form("4", "24"),
      ...(style === plain
        ? {}
        : { highlightCode: (text: string, language?: string) => highlighted(text, language, background) })
    },
    list: {
      selectedPrefix: colour(accent),
      selectedText: (text) => bold(colour(accent)(text)),
      description: dim,
      scrollInfo: dim,
      noMatch: dim
    }
  }
}
