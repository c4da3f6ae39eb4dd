/** The description of the API: an OpenAPI document, and a page without a script. Spec: HT-2 in specs/http.md. */
import { createHash } from "node:crypto"
import type { OpenAPISpec, OpenAPISpecMethodName, OpenAPISpecOperation } from "@effect/platform/OpenApi"
import type { JsonSchema } from "@effect/platform/OpenApiJsonSchema"
import { openApi as described } from "@daybook/api/document/Document"
import type { Page, Pages } from "./Gate.ts"
import { once } from "@daybook/log/support/Once"

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 0 auto; padding: 1rem }
nav ul { columns: 3 14rem; padding-left: 1.2rem }
h2 { border-bottom: 1px solid; margin-top: 2.5rem }
h3 { margin: 2rem 0 .3rem; font-size: 1rem }
code, pre { font: .875rem/1.4 ui-monospace, monospace }
pre { overflow-x: auto; max-height: 22rem; padding: .6rem; border: 1px solid; border-radius: .3rem }
table { border-collapse: collapse }
td { padding: .1rem 1rem .1rem 0; vertical-align: top }
summary { cursor: pointer }
`

/** Nothing but the page's own style is loaded. */
const referencePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }

const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (sign) => escapes[sign] ?? sign)

const code = (text: string): string => `<code>${escaped(text)}</code>`

const prose = (text: string): string => escaped(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>")

const linkTo = (name: string): string => `<a href="#schema-${escaped(name)}">${escaped(name)}</a>`

const shape = (schema: JsonSchema): string =>
  escaped(JSON.stringify(schema, undefined, 2)).replaceAll(
    /\{\s*&quot;\$ref&quot;: &quot;#\/components\/schemas\/([^&]+)&quot;\s*\}/g,
    (_, name: string) => linkTo(name)
  )

const details = (summary: string, schema: JsonSchema): string =>
  `<details><summary>${summary}</summary><pre tabindex="0">${shape(schema)}</pre></details>`

const bodies = (content: Readonly<Record<string, { readonly schema: JsonSchema }>> | undefined) =>
  Object.entries(content ?? {})

const operation = (path: string, method: string, each: OpenAPISpecOperation): string => {
  const parameters = each.parameters.map(
    ({ description = "", in: place, name, required }) =>
      `<tr><td>${code(name)}<td>${place}<td>${required ? "required" : "optional"}<td>${prose(description)}</tr>`
  )
  const responses = Object.entries(each.responses).flatMap(([status, response]) => {
    const found = bodies(response?.content)
    if (found.length === 0) return [`<p>${code(status)} without a body</p>`]
    // The description of a failed request has a sentence for each error.
    const meaning = Number(status) < 400 ? "" : ` ${prose(response?.description ?? "")}`
    return found.map(([type, { schema }]) => details(`${code(status)} ${escaped(type)}${meaning}`, schema))
  })
  return [
    `<h3 id="${escaped(each.operationId)}">${code(`${method.toUpperCase()} ${path}`)}</h3>`,
    `<p><strong>${escaped(each.summary ?? each.operationId)}.</strong> ${prose(each.description ?? "")}</p>`,
    parameters.length === 0 ? "" : `<table>${parameters.join("")}</table>`,
    ...bodies(each.requestBody?.content).map(([type, { schema }]) => details(`body ${escaped(type)}`, schema)),
    ...responses
  ].join("\n")
}

const methods: ReadonlyArray<OpenAPISpecMethodName> = ["get", "post", "put", "patch", "delete"]

/** The operations of a group, in the order of the document. */
const operationsOf = ({ paths }: OpenAPISpec, tag: string) =>
  Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const each = item[method]
      return each?.tags.includes(tag) === true ? [{ path, method, each }] : []
    })
  )

const meaningOf = ({ description }: JsonSchema) => (description === undefined ? "" : `<p>${prose(description)}</p>`)

const referencePage = (document: OpenAPISpec): string => {
  const groups = (document.tags ?? []).map(({ description, name }) => {
    const operations = operationsOf(document, name)
    const links = operations.map(
      ({ each: { operationId } }) => `<li><a href="#${escaped(operationId)}">${escaped(operationId)}</a></li>`
    )
    return {
      nav: `<li>${escaped(name)}<ul>${links.join("")}</ul></li>`,
      body: [
        `<h2>${escaped(name)}</h2><p>${escaped(description ?? "")}</p>`,
        ...operations.map(({ each, method, path }) => operation(path, method, each))
      ].join("\n")
    }
  })
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) =>
      `<h3 id="schema-${escaped(name)}">${escaped(name)}</h3>${meaningOf(schema)}<pre tabindex="0">${shape(schema)}</pre>`
  )
  return [
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escaped(document.info.title)}: reference</title>`,
    `<meta name="viewport" content="width=device-width"><style>${style}</style>`,
    `<h1>${escaped(document.info.title)}</h1><p>${escaped(document.info.description ?? "")} `,
    `<a href="openapi.json">openapi.json</a></p>`,
    `<nav aria-label="Endpoints"><ul>${groups.map(({ nav }) => nav).join("")}</ul></nav>`,
    `<main>${groups.map(({ body }) => body).join("\n")}<h2>Schemas</h2>${schemas.join("\n")}</main></html>`
  ].join("\n")
}

const document = once(described)

const openApi = once((): Page => ({ contentType: "application/json", body: JSON.stringify(document()) }))

const reference = once((): Page => ({
  contentType: "text/html; charset=utf-8",
  body: referencePage(document()),
  policy: referencePolicy
}))

export const pages: Pages = new Map([
  ["/openapi.json", openApi],
  ["/reference", reference]
])
