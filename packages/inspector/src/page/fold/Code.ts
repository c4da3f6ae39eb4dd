/** Highlights code of known languages as a tree of texts with classes. Pure. Spec: IP-18 in specs/inspector.md. */
import bash from "highlight.js/lib/languages/bash"
import css from "highlight.js/lib/languages/css"
import diff from "highlight.js/lib/languages/diff"
import go from "highlight.js/lib/languages/go"
import javascript from "highlight.js/lib/languages/javascript"
import json from "highlight.js/lib/languages/json"
import markdown from "highlight.js/lib/languages/markdown"
import python from "highlight.js/lib/languages/python"
import rust from "highlight.js/lib/languages/rust"
import sql from "highlight.js/lib/languages/sql"
import typescript from "highlight.js/lib/languages/typescript"
import xml from "highlight.js/lib/languages/xml"
import yaml from "highlight.js/lib/languages/yaml"
import { createLowlight } from "lowlight"

const lowlight = createLowlight({
  bash,
  css,
  diff,
  go,
  javascript,
  json,
  markdown,
  python,
  rust,
  sql,
  typescript,
  xml,
  yaml
})

/** Longer code is shown without colours. */
const longest = 50_000

export type CodeNode = string | { readonly classes: ReadonlyArray<string>; readonly children: ReadonlyArray<CodeNode> }

type Root = ReturnType<typeof lowlight.highlight>

const nodesOf = (children: Root["children"]): ReadonlyArray<CodeNode> =>
  children.flatMap((node): ReadonlyArray<CodeNode> => {
    if (node.type === "text") return [node.value]
    if (node.type !== "element") return []
    const { className } = node.properties
    return [{ classes: Array.isArray(className) ? className.map(String) : [], children: nodesOf(node.children) }]
  })

/** The code in its parts; one text if the language is not known or the code is long. */
export const highlighted = (code: string, language: string): ReadonlyArray<CodeNode> =>
  code.length <= longest && lowlight.registered(language)
    ? nodesOf(lowlight.highlight(language, code).children)
    : [code]
