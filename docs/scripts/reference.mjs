/**
 * Writes the reference pages of the site from the sources: commands from the parser, configuration from its schema, events
 * from their definitions, HTTP from the OpenAPI document. `docs/reference/*.md` and `docs/public/openapi.json` are generated.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { openApi } from "@daybook/api/document/Document"
import { durableDefinitions, liveDefinitions } from "@daybook/log/events/SessionEvents"
import { WrittenConfig } from "../../packages/cli/src/config/Config.ts"
import { texts } from "../../packages/cli/src/main.ts"

const docs = fileURLToPath(new URL("..", import.meta.url))
const root = join(docs, "..")
const read = (file) => readFileSync(join(root, file), "utf8")

/** Text that Markdown and the page's templates leave as it is. */
const plain = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("{{", "&#123;&#123;").replaceAll("|", "\\|")
/** Text with pieces in backticks; only what is outside of them is escaped. */
const prose = (text) =>
  text
    .replaceAll(/\s+/g, " ")
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith("`") ? part.replaceAll("|", "\\|") : plain(part)))
    .join("")
const code = (text) => `\`${text.replaceAll("|", "\\|")}\``
const table = (head, rows) =>
  rows.length === 0
    ? ""
    : [
        `| ${head.join(" | ")} |`,
        `|${head.map(() => "---|").join("")}`,
        ...rows.map((row) => `| ${row.join(" | ")} |`),
        ""
      ].join("\n")
const fence = (language, text) => `\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\n`
const write = (name, title, parts) => {
  mkdirSync(join(docs, "reference"), { recursive: true })
  writeFileSync(join(docs, "reference", `${name}.md`), `---\neditLink: false\n---\n\n# ${title}\n\n${parts.join("\n")}`)
}

const commands = async () => {
  const { version } = JSON.parse(read("packages/cli/package.json"))
  const { root: help, verbs } = await texts(version)
  const parts = Object.entries(verbs).map(
    ([name, text]) => `${name.includes(" ") ? "###" : "##"} daybook ${name}\n\n${fence("text", text)}`
  )
  write("commands", "Commands", [
    "The texts of `daybook --help` and `daybook COMMAND --help`.\n",
    fence("text", help),
    ...parts
  ])
}

const messageOf = Symbol.for("effect/annotation/Message")
/** What a value of the schema is, in the words of its error. */
const expected = (ast) => {
  if (ast._tag === "Refinement" && ast.from._tag === "TypeLiteral") return expected(ast.from)
  const message = ast.annotations[messageOf]?.({ actual: "" })
  const text = typeof message === "string" ? message : message?.message
  if (text !== undefined) return text.replace(/^expected /, "").replace(/; .*$/s, "")
  return ast._tag === "Refinement" ? expected(ast.from) : undefined
}

/** The keys below a schema, each with what its value is. */
const keysOf = (ast, path = "") => {
  if (ast._tag === "Refinement" || ast._tag === "Suspend")
    return keysOf(ast._tag === "Suspend" ? ast.f() : ast.from, path)
  if (ast._tag === "Transformation") return keysOf(ast.from, path)
  if (ast._tag !== "TypeLiteral") return []
  const own = ast.propertySignatures.map(({ name, type }) => [
    path === "" ? String(name) : `${path}.${String(name)}`,
    type
  ])
  const named = ast.indexSignatures.map(({ type }) => [`${path}.NAME`, type])
  return [...own, ...named].flatMap(([key, type]) => [[key, type], ...keysOf(type, key)])
}

const configuration = () => {
  const example = /All keys; [^\n]*\n\n```yaml\n([\s\S]*?)```/.exec(read("specs/config.md"))?.[1]
  if (example === undefined) throw new Error("specs/config.md has no example of all keys")
  const keys = keysOf(WrittenConfig.ast)
  const lacking = WrittenConfig.ast.propertySignatures.filter(
    ({ name }) => !new RegExp(`^${String(name)}:`, "m").test(example)
  )
  if (lacking.length > 0)
    throw new Error(`the example of specs/config.md lacks ${lacking.map(({ name }) => name).join(", ")}`)
  write("configuration", "Configuration", [
    "The file is `daybook/config.yaml` in `XDG_CONFIG_HOME` or `~/.config`; `DAYBOOK_CONFIG` names another one. An unknown key and a " +
      "value of another kind are refused, all errors at once, each with its line. `daybook doctor` reports them.\n",
    "## All keys with their defaults\n",
    fence("yaml", example),
    "## What each value is\n",
    "`NAME` is a name that you choose.\n",
    table(
      ["key", "value"],
      keys.map(([key, type]) => [code(key), prose(expected(type) ?? "as in the example")])
    )
  ])
}

/** The comments of events, by the name of their type. */
const eventComments = () => {
  const folder = "packages/log/src/events"
  const source = readdirSync(join(root, folder))
    .map((file) => read(join(folder, file)))
    .join("\n")
  const pattern =
    /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?export const \w+ = (?:durable|live)\(\s*(?:"\w+",\s*)?"([\w.]+)"/g
  return new Map(
    Array.from(source.matchAll(pattern), ([, comment = "", type]) => [
      type,
      comment
        .replaceAll(/^\s*\* ?/gm, "")
        .replaceAll(/\{@link ([^}]*)\}/g, "`$1`")
        .trim()
    ])
  )
}

const fieldsOf = ({ ast }) =>
  ast.propertySignatures.map(({ isOptional, name, type }) => {
    const text = String(type).replaceAll(/a string matching the pattern \S+ & Brand<"(\w+)">/g, "$1")
    return [
      code(`${String(name)}${isOptional ? "?" : ""}`),
      code(text.length > 160 ? `${text.slice(0, 157)}...` : text)
    ]
  })

const families = {
  about: "The session and its settings",
  prompts: "Prompts and the inbox",
  steps: "Activities and their steps",
  requests: "Requests to the model",
  texts: "Texts of answers",
  calls: "Tool calls and commands",
  compactions: "Compactions",
  tree: "The tree of messages, forks and files",
  decisions: "Decisions of people",
  shells: "Live shells"
}

const events = () => {
  const comments = eventComments()
  const shown = (definition, version) =>
    [
      `### ${definition.type}\n`,
      `${version}${prose(comments.get(definition.type) ?? "")}\n`,
      table(["field", "type"], fieldsOf(definition.data))
    ].join("\n")
  const unknown = durableDefinitions.filter(({ family }) => !(family in families))
  if (unknown.length > 0) throw new Error(`no title for the family ${unknown[0].family}`)
  write("events", "Events", [
    "A stored event has `position` (in the order of all sessions), `seq` (in its session), `id`, `sessionID`, `type`, `version`, " +
      "`created` (milliseconds) and `data`. The tables list the fields of `data`; a `?` marks one that may be absent. A reader skips " +
      "types that it does not know.\n",
    ...Object.entries(families).flatMap(([family, title]) => [
      `## ${title}\n`,
      ...durableDefinitions
        .filter((each) => each.family === family)
        .map((each) => shown(each, `Version ${each.version}. `))
    ]),
    "## Live events\n",
    "They are sent to connected readers only and are never stored.\n",
    ...liveDefinitions.map((each) => shown(each, ""))
  ])
}

const resolved = (document, schema) =>
  schema?.$ref === undefined ? schema : document.components.schemas[schema.$ref.split("/").at(-1)]
const kindOf = (schema) =>
  schema === undefined
    ? ""
    : (schema.$ref?.split("/").at(-1) ??
      (Array.isArray(schema.enum) ? schema.enum.map((each) => JSON.stringify(each)).join(", ") : undefined) ??
      (schema.type === "array" ? `list of ${kindOf(schema.items) || "values"}` : undefined) ??
      (Array.isArray(schema.anyOf) ? schema.anyOf.map(kindOf).filter(Boolean).join(" or ") : undefined) ??
      schema.type ??
      "")

/** One endpoint: its words, arguments and answers. */
const endpoint = (document, path, method, operation) => {
  const parameters = (operation.parameters ?? []).map(({ description = "", in: place, name, required, schema }) => [
    code(`${name}${required ? "" : "?"}`),
    place,
    prose(kindOf(schema)),
    prose(description)
  ])
  const body = resolved(document, operation.requestBody?.content?.["application/json"]?.schema)
  const fields = Object.entries(body?.properties ?? {}).map(([name, schema]) => [
    code(`${name}${body.required?.includes(name) ? "" : "?"}`),
    "body",
    prose(kindOf(schema)),
    prose(schema.description ?? resolved(document, schema)?.description ?? "")
  ])
  const answers = Object.entries(operation.responses)
    .filter(([status]) => !["401", "403", "413", "429", "500"].includes(status))
    .map(([status, { description = "" }]) => [status, prose(description)])
  return [
    `### ${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}\n`,
    `${prose(operation.description ?? operation.summary ?? "")}\n`,
    table(["argument", "in", "kind", "meaning"], [...parameters, ...fields]),
    table(["status", "meaning"], answers)
  ].join("\n")
}

const http = () => {
  const document = openApi()
  mkdirSync(join(docs, "public"), { recursive: true })
  writeFileSync(join(docs, "public", "openapi.json"), JSON.stringify(document))
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation }))
  )
  write("http", "HTTP", [
    "`daybook serve --http HOST:PORT` serves these endpoints. Each request has `authorization: Bearer TOKEN`; `daybook token` prints one. " +
      "The server describes itself at `/openapi.json` and `/reference`.\n",
    "Every endpoint may also answer 401 (no valid token), 403 (the token does not permit this, or a page of another origin asks), " +
      "413 (the body is too large), 429 (too many requests) and 500 (the server failed). An error is JSON with `_tag` and `message`.\n",
    ...document.tags.flatMap(({ description = "", name }) => [
      `## ${name}\n`,
      `${prose(description)}\n`,
      ...operations
        .filter(({ operation }) => operation.tags.includes(name))
        .map(({ method, operation, path }) => endpoint(document, path, method, operation))
    ])
  ])
}

await commands()
configuration()
events()
http()
