/** Colours code for a terminal, line by line. Pure. Spec: SC-506 in specs/screen.md. */
import { common, createLowlight } from "lowlight"

export type Background = "dark" | "light"

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
