/**
 * Finds the places where a source file can be mutated. A site is a range of the text with its replacement: a swapped operator,
 * an incremented number, a negated condition, a removed call. Strings are not mutated. Pure: text in, sites out.
 */
import { parseSync } from "oxc-parser"

const swapped = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "==": "!=",
  "!=": "==",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "&&": "||",
  "||": "&&"
}

const isText = (node) => node.type === "TemplateLiteral" || (node.type === "Literal" && typeof node.value === "string")

/** A site that replaces an expression. */
const instead = (node, kind, replacement) => ({ kind, start: node.start, end: node.end, replacement, statement: false })

const binary = (node, text) => {
  const operator = swapped[node.operator]
  if (operator === undefined) return []
  if (node.operator === "+" && (isText(node.left) || isText(node.right))) return []
  const [left, right] = [text.slice(node.left.start, node.left.end), text.slice(node.right.start, node.right.end)]
  return [instead(node, node.operator, `((${left}) ${operator} (${right}))`)]
}

const logical = (node, text) =>
  node.operator === "??" ? [instead(node, "??", `(${text.slice(node.left.start, node.left.end)})`)] : binary(node, text)

const literal = (node) =>
  typeof node.value === "boolean"
    ? [instead(node, "boolean", String(!node.value))]
    : typeof node.value === "number"
      ? [instead(node, "number", `(${node.raw} + 1)`)]
      : []

/** Negates a condition. An equality is skipped: it is already mutated as an operator. */
const negated = (node, text) =>
  node.operator === "===" || node.operator === "!=="
    ? []
    : [instead(node, "condition", `!(${text.slice(node.start, node.end)})`)]

const extremes = { "Math.min": "Math.max", "Math.max": "Math.min" }

const call = (node, text) => {
  const other = extremes[text.slice(node.callee.start, node.callee.end)]
  return other === undefined ? [] : [instead(node.callee, "Math", other)]
}

const here = (node, text) => {
  switch (node.type) {
    case "BinaryExpression":
      return binary(node, text)
    case "LogicalExpression":
      return logical(node, text)
    case "Literal":
      return literal(node)
    case "IfStatement":
    case "ConditionalExpression":
      return negated(node.test, text)
    case "CallExpression":
      return call(node, text)
    case "ExpressionStatement":
      return node.directive === undefined || node.directive === null
        ? [{ kind: "call removed", start: node.start, end: node.end, replacement: ";", statement: true }]
        : []
    default:
      return []
  }
}

/** Whether a node is code that runs: types, imports and keys are not. */
const runs = (key, node, parent) =>
  !(node.type.startsWith("TS") && node.expression === undefined) &&
  !node.type.startsWith("Import") &&
  !node.type.startsWith("ExportAll") &&
  !(key === "key" && parent.computed !== true) &&
  !(key === "property" && parent.computed !== true) &&
  key !== "typeAnnotation" &&
  key !== "typeArguments" &&
  key !== "typeParameters" &&
  key !== "returnType"

const isFunction = ({ type }) => type === "ArrowFunctionExpression" || type.startsWith("Function")

/** All sites of the file, in text order. `called`: the site runs in a function, not at module load. */
export const sitesOf = (file, text) => {
  const sites = []
  const visit = (node, called) => {
    sites.push(...here(node, text).map((site) => ({ ...site, file, called })))
    const within = called || isFunction(node)
    for (const [key, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (child !== null && typeof child === "object" && typeof child.type === "string" && runs(key, child, node)) {
          visit(child, within)
        }
      }
    }
  }
  visit(parseSync(file, text).program, false)
  return sites.toSorted((a, b) => a.start - b.start)
}

/** A key per site that stays the same in later commits unless the site's text changes. */
export const keysOf = (sites, text) => {
  const counts = new Map()
  return sites.map(({ end, file, replacement, start }) => {
    const change = `${file}: ${text.slice(start, end)} -> ${replacement}`
    const nth = (counts.get(change) ?? 0) + 1
    counts.set(change, nth)
    return `${change} (${nth})`
  })
}

/** The text with the site's replacement. */
export const mutated = (text, { end, replacement, start }) => text.slice(0, start) + replacement + text.slice(end)

/** The text in which each site reports its name before it runs. Sites of one file may overlap. */
export const instrumented = (text, sites) => {
  const inserts = sites.flatMap(({ end, name, start, statement }) =>
    statement
      ? [
          { at: start, order: start - end, insert: `{ globalThis.__hit?.("${name}"); ` },
          { at: end, order: end - start, insert: " }" }
        ]
      : [
          { at: start, order: start - end, insert: `(globalThis.__hit?.("${name}"), ` },
          { at: end, order: end - start, insert: ")" }
        ]
  )
  let result = ""
  let from = 0
  // At the same place, the outer site opens first and closes last.
  for (const { at, insert } of inserts.toSorted((a, b) => a.at - b.at || a.order - b.order)) {
    result += text.slice(from, at) + insert
    from = at
  }
  return header + result + text.slice(from)
}

/** A function that runs as text in another thread has nothing to report to. */
const header =
  'import { appendFileSync as __append } from "node:fs"; globalThis.__hit ??= (() => { const seen = new Map(); ' +
  'const { DAYBOOK_HITS: hits, DAYBOOK_TEST_FILE: own = "?" } = process.env; return (name) => { ' +
  "if (hits === undefined) return; const file = globalThis.__test ?? own; if (seen.get(name) === file) return; " +
  'seen.set(name, file); try { __append(hits, name + " " + file + "\\n") } catch {} } })(); '
