/**
 * Shows Markdown as elements. No text becomes HTML: HTML in it is shown as it was written, pictures are not loaded, and only
 * web and mail addresses are links. Spec: IP-18, IP-30 in specs/http.md.
 */
import type { Token, Tokens } from "marked"
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
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
import { proseOf } from "../fold/Prose.ts"
import { visible } from "../fold/Words.ts"
import { Copy } from "./Parts.tsx"

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

const decode = (text: string): string =>
  text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")

const isSafe = (href: string): boolean => /^(?:https?|mailto):/i.test(href)

const codeNode = (node: CodeNode, key: number): ComponentChildren =>
  typeof node === "string" ? (
    node
  ) : (
    <span key={key} class={node.classes.join(" ")}>
      {node.children.map(codeNode)}
    </span>
  )

/** A block of code, with the colours of its language. */
export const Code = ({ language, text }: { readonly language: string; readonly text: string }) => {
  const nodes = useMemo(() => highlighted(visible(text), language.toLowerCase()), [text, language])
  return (
    <div class="copied">
      <Copy text={text} what="code" />
      <pre class="code" tabIndex={0} role="region" aria-label={language === "" ? "Code" : `Code, ${language}`}>
        <code>{nodes.map(codeNode)}</code>
      </pre>
    </div>
  )
}

const is = <T extends Tokens.Generic["type"]>(token: Token, type: T): token is Extract<Token, { type: T }> =>
  token.type === type

const children = (tokens: ReadonlyArray<Token> | undefined): ComponentChildren => (tokens ?? []).map(element)

const cells = (Cell: "th" | "td", row: ReadonlyArray<Tokens.TableCell>) =>
  row.map(({ tokens }, index) => <Cell key={index}>{children(tokens)}</Cell>)

const element = (token: Token, key: number): ComponentChildren => {
  if (is(token, "space") || is(token, "def")) return undefined
  if (is(token, "heading")) {
    // The page has the levels above; deeper levels look alike.
    const Level = token.depth <= 1 ? "h4" : token.depth === 2 ? "h5" : "h6"
    return <Level key={key}>{children(token.tokens)}</Level>
  }
  if (is(token, "paragraph")) return <p key={key}>{children(token.tokens)}</p>
  if (is(token, "code")) return <Code key={key} language={token.lang?.split(/\s/, 1)[0] ?? ""} text={token.text} />
  if (is(token, "blockquote")) return <blockquote key={key}>{children(token.tokens)}</blockquote>
  if (is(token, "list")) {
    const items = token.items.map((item: Tokens.ListItem, index: number) => (
      <li key={index}>
        {item.task ? <input type="checkbox" checked={item.checked === true} disabled aria-label="done" /> : undefined}
        {children(item.tokens)}
      </li>
    ))
    return token.ordered ? (
      <ol key={key} start={token.start === "" ? 1 : token.start}>
        {items}
      </ol>
    ) : (
      <ul key={key}>{items}</ul>
    )
  }
  if (is(token, "table")) {
    return (
      <div key={key} class="table" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead>
            <tr>{cells("th", token.header)}</tr>
          </thead>
          <tbody>
            {token.rows.map((row: ReadonlyArray<Tokens.TableCell>, index: number) => (
              <tr key={index}>{cells("td", row)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    )
  }
  if (is(token, "hr")) return <hr key={key} />
  if (is(token, "br")) return <br key={key} />
  if (is(token, "strong")) return <strong key={key}>{children(token.tokens)}</strong>
  if (is(token, "em")) return <em key={key}>{children(token.tokens)}</em>
  if (is(token, "del")) return <del key={key}>{children(token.tokens)}</del>
  if (is(token, "codespan")) return <code key={key}>{visible(token.text)}</code>
  if (is(token, "link")) {
    return isSafe(token.href) ? (
      <a key={key} href={token.href} rel="noopener noreferrer" target="_blank">
        {children(token.tokens)}
      </a>
    ) : (
      <span key={key}>{visible(token.raw)}</span>
    )
  }
  if (is(token, "image") || is(token, "html")) return <span key={key}>{visible(token.raw)}</span>
  if (is(token, "text") && token.tokens !== undefined) return <span key={key}>{children(token.tokens)}</span>
  return <span key={key}>{visible(decode("text" in token ? String(token.text) : token.raw))}</span>
}

export const Markdown = ({ text }: { readonly text: string }) => {
  const tokens = useMemo(() => proseOf(text), [text])
  return (
    <div class="markdown" dir="auto">
      {tokens === undefined ? <pre>{visible(text)}</pre> : tokens.map(element)}
    </div>
  )
}
