/** Implements the commands of `ctx`. Each reads files and writes to stdout. Spec: CL-106..CL-110 in specs/cli.md. */
import { join } from "node:path"
import type { Block, MessageRow } from "@daybook/transcript/row/Rows"
import { bytes, columns, escaped, jsonLine, oneLine, visible, wholeLength } from "../render/Plain.ts"
import { decoded, lastLine, lines, pieces } from "./Files.ts"
import { absent, damaged, isSessionName, type Options, Refused } from "./Options.ts"
import * as Files from "./Files.ts"

type Fields = { readonly [key: string]: unknown }

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isBlocks = (value: unknown): value is ReadonlyArray<Fields> =>
  Array.isArray(value) && value.every((each) => isFields(each) && typeof each["type"] === "string")

/** The fields of a row that are shown. They are checked by hand, because loading the schemas takes longer than reading. */
interface Row {
  readonly role: string
  readonly time: string
  readonly name: string
  readonly model: string
  readonly content: ReadonlyArray<Fields>
  readonly error: string | undefined
}

const text = (value: unknown): string => (typeof value === "string" ? value : "")

/** The row of a line, or `undefined` if the line is not a row. */
export const parseRow = (line: string): Row | undefined => {
  let row: unknown
  try {
    row = JSON.parse(line)
  } catch {
    return undefined
  }
  if (!isFields(row) || typeof row["role"] !== "string") return undefined
  const { content, error, model, name, role, time } = row
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content
  if (!isBlocks(blocks)) return undefined
  return {
    role,
    time: text(time),
    name: text(name),
    model: text(model),
    content: blocks,
    error: isFields(error) ? text(error["message"]) : undefined
  }
}

// The compiler checks that these names are those of the rows' schema.
const kind = (type: Block["type"]): string => type
const role = (name: MessageRow["role"]): string => name

const head = ({ model, role, time }: Row): string => {
  const when = time.slice(0, 19).replace("T", " ")
  return `## ${oneLine(role)}${model === "" ? "" : ` (${oneLine(model)})`}  ${oneLine(when)}`
}

const media = (block: Fields): string => {
  const size = typeof block["bytes"] === "number" ? `, ${bytes(block["bytes"])}` : ""
  return oneLine(`[media] ${text(block["name"]) || text(block["uri"])} (${text(block["media_type"])}${size})`, 400)
}

/** The result of a call, truncated to one line; the file has all of it. */
const result = (block: Fields): string => {
  const content = block["content"]
  const parts = isBlocks(content) ? content : [{ type: "text", text: text(content) }]
  const words = parts.map((part) => (part["type"] === kind("media") ? media(part) : text(part["text"]))).join("\n")
  return oneLine(words.trim(), 120)
}

const block = (item: Fields): string => {
  switch (item["type"]) {
    case kind("text"):
      return text(item["text"]).trimEnd()
    case kind("media"):
      return media(item)
    case kind("tool_call"):
      return `→ ${oneLine(text(item["name"]))} ${oneLine(JSON.stringify(item["input"]) ?? "", 160)}`
    case kind("tool_result"):
      return result(item)
    default:
      return `[${oneLine(text(item["type"]))}]`
  }
}

/** One row of the conversation, followed by an empty line. A terminal gets no control characters. */
export const rowText = (row: Row, terminal: boolean): string => {
  const safe = (words: string) => (terminal ? visible(words) : words)
  if (row.role === role("tool")) {
    const failed = row.content.some((item) => item["is_error"] === true)
    return `${failed ? "!" : "←"} ${oneLine(row.name)} ${row.content.map(block).join(" ")}`.trimEnd() + "\n\n"
  }
  const error = row.error === undefined ? [] : [`! ${oneLine(row.error, 400)}`]
  const body = safe([...row.content.map(block), ...error].filter((part) => part !== "").join("\n\n"))
  return `${head(row)}\n${body === "" ? "" : `\n${body}\n`}\n`
}

export interface Out {
  readonly terminal: boolean
  /** Waits for the reader. */
  readonly write: (text: string | Uint8Array) => Promise<void>
  readonly note: (text: string) => void
}

/** Buffers small writes. */
const gathered = (out: Out) => {
  let waiting: Array<string | Uint8Array> = []
  let length = 0
  const flush = async () => {
    if (waiting.length === 0) return
    const whole = Buffer.concat(waiting.map((part) => (typeof part === "string" ? Buffer.from(part) : part)))
    waiting = []
    length = 0
    await out.write(whole)
  }
  return {
    add: async (part: string | Uint8Array) => {
      // Copied, because the reader reuses its buffer.
      waiting.push(typeof part === "string" ? part : Uint8Array.from(part))
      length += part.length
      if (length >= 65_536) await flush()
    },
    flush
  }
}

const chosen = (sessions: Files.Sessions, given: string | undefined) => {
  const name = given ?? Files.currentName(sessions)
  return { name, path: Files.sessionFolder(sessions, name) }
}

const newline = Buffer.from("\n")

/** `ctx history`. Rows before a damaged line are written before the error. */
export const history = async (out: Out, root: string, { house, json, session }: Options): Promise<void> => {
  const { path } = chosen(Files.openSessions(root, house), session)
  const file = join(path, "messages.jsonl")
  const output = gathered(out)
  const rows = lines(file)
  /** The number of shown rows. */
  let number = 0
  try {
    for (let next = rows.next(); ; next = rows.next()) {
      if (next.done === true) {
        if (!next.value) throw damaged(`${file} is missing`)
        break
      }
      const line = decoded(next.value, `${file}, line ${number + 1}`)
      const row = parseRow(line)
      if (row === undefined) throw damaged(`${file}, line ${number + 1} is not a message`)
      if (!json) await output.add(rowText(row, out.terminal))
      else if (out.terminal) await output.add(`${escaped(line)}\n`)
      else {
        await output.add(next.value)
        await output.add(newline)
      }
      number += 1
    }
  } catch (cause) {
    // JSON output that has started ends as JSON (AB-3).
    if (json && number > 0 && cause instanceof Refused) {
      await output.add(`${jsonLine({ type: "error", code: cause.code, message: cause.message }, out.terminal)}\n`)
    }
    throw cause
  } finally {
    rows.return(true)
    await output.flush()
  }
}

/** `ctx latest`. */
export const latest = async (out: Out, root: string, { house, json, session }: Options): Promise<void> => {
  const { name, path } = chosen(Files.openSessions(root, house), session)
  const file = join(path, "latest.md")
  const text = decoder(file)
  const parts = pieces(file)
  // Held back: the file's final newline is not part of the text, and a line may end in two characters.
  let held = ""
  let begun = false
  for (let next = parts.next(); ; next = parts.next()) {
    if (next.done === true) {
      if (!next.value) throw absent(`session ${name} has no answer yet`)
      break
    }
    if (json && !begun) await out.write(`{"session":${JSON.stringify(name)},"text":"`)
    begun = true
    if (!json && !out.terminal) {
      await out.write(Uint8Array.from(next.value))
      continue
    }
    const words = held + text(next.value)
    const end = wholeLength(words.slice(0, /\r?\n?$/.exec(words)?.index))
    held = words.slice(end)
    await out.write(shown(words.slice(0, end), json, out.terminal))
  }
  if (json) await out.write(`${shown(`${held}${text()}`.replace(/\n$/, ""), json, out.terminal)}"}\n`)
  else if (out.terminal) await out.write(visible(`${held}${text()}`))
}

/** Decodes a file piece by piece; a call without a piece ends it. */
const decoder = (file: string): ((piece?: Uint8Array) => string) => {
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  return (piece) => {
    try {
      return piece === undefined ? utf8.decode() : utf8.decode(piece, { stream: true })
    } catch {
      throw damaged(`${file} is not UTF-8`)
    }
  }
}

const shown = (text: string, json: boolean, terminal: boolean): string => {
  if (!json) return visible(text)
  const quoted = JSON.stringify(text).slice(1, -1)
  return terminal ? escaped(quoted) : quoted
}

const lastEvent = (path: string): string | undefined => {
  const file = join(path, "events.jsonl")
  const line = lastLine(file)
  if (line === undefined) throw damaged(`${file} is missing`)
  if (line === "") return undefined
  try {
    const row: unknown = JSON.parse(line)
    if (typeof row === "object" && row !== null && "id" in row && typeof row.id === "string") return row.id
  } catch {
    // Reported below.
  }
  throw damaged(`${file}: its last line is not an event`)
}

/** `ctx resume`: prints what a client needs to continue. */
export const resume = async (out: Out, root: string, { cwd, house, json }: Options): Promise<void> => {
  const sessions = Files.openSessions(root, house)
  const name = cwd === undefined ? Files.currentName(sessions) : Files.sessionOfCwd(sessions, cwd)
  const path = Files.sessionFolder(sessions, name)
  const found = {
    session: name,
    state: Files.needed(path, "state"),
    cwd: Files.needed(path, "cwd"),
    updated_at: Files.needed(path, "updated_at"),
    after: lastEvent(path)
  }
  const rows = [
    ["session", found.session],
    ["state", found.state],
    ["cwd", found.cwd],
    ["updated", found.updated_at],
    ["after", found.after ?? "(no event yet)"]
  ]
  await out.write(
    json ? `${jsonLine(found, out.terminal)}\n` : columns(rows.map((row) => row.map((cell) => oneLine(cell, 4_400))))
  )
}

/** `ctx sessions`: lists sessions in the order of `index/list`. A session that cannot be read does not hide the others. */
export const sessions = async (out: Out, root: string, { house, json }: Options): Promise<void> => {
  const all = Files.openSessions(root, house)
  const index = Files.indexFolder(all)
  const none = absent(`there is no list of the sessions of ${house.name}; daybook files rebuild creates it`)
  if (index === undefined) throw none
  const file = join(index, "list")
  const names = lines(file)
  const output = gathered(out)
  let first: Refused | undefined
  for (let next = names.next(); ; next = names.next()) {
    if (next.done === true) {
      if (!next.value) throw none
      break
    }
    try {
      await output.add(listed(all, next.value.toString("utf8"), file, json, out.terminal))
    } catch (cause) {
      if (!(cause instanceof Refused)) throw cause
      first ??= cause
      out.note(`ctx: ${oneLine(cause.message, 2_000)}\n`)
    }
  }
  await output.flush()
  if (first !== undefined) throw new Refused(first.code, "not every session could be read: see above", first.exit)
}

const listed = (all: Files.Sessions, name: string, file: string, json: boolean, terminal: boolean): string => {
  if (!isSessionName(name)) throw damaged(`${file} contains ${oneLine(name, 80)}, which is not a session's name`)
  const path = Files.sessionFolder(all, name)
  const found = {
    session: name,
    state: Files.needed(path, "state"),
    updated_at: Files.needed(path, "updated_at"),
    cwd: Files.needed(path, "cwd"),
    title: Files.title(path)
  }
  if (json) return `${jsonLine(found, terminal)}\n`
  const when = found.updated_at.slice(0, 19).replace("T", " ")
  const words = [when, found.state.padEnd(6), name, oneLine(found.cwd, 400), oneLine(found.title ?? "", 80)]
  return `${words.join("  ").trimEnd()}\n`
}
