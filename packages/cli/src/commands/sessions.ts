/** `daybook sessions`, `daybook messages`, `daybook show`: lists and transcripts. Spec: CL-14..CL-16, CL-400. */
import { Chunk, Clock, Effect, Stream } from "effect"
import * as OwnerRows from "@daybook/log/coordination/OwnerRows"
import { problemOfMessage } from "@daybook/log/domain/AnswerProblem"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import {
  type AssistantMessage,
  type Message,
  type ToolPart,
  type UserMessage,
  withheldText,
  wordsOf
} from "@daybook/log/domain/Message"
import { modelText, type Expansion } from "@daybook/log/domain/Values"
import { Inbox } from "@daybook/log/store/Inbox"
import { allItems } from "@daybook/log/store/Pages"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as DatabasePath from "../config/DatabasePath.ts"
import { Remote } from "../host/Remote.ts"
import { withReader } from "../host/Runtime.ts"
import { bytes, dateTime, indent, oneLine, visible } from "../render/Plain.ts"
import { sessionHead, sessionTable } from "../render/SessionLine.ts"
import { Output, writeJson } from "../terminal/Output.ts"

/** Types of messages whose names are not words for people. */
const kinds: Readonly<Record<string, string>> = {
  "agent-switched": "agent",
  "branch-summary": "branch summary",
  compaction: "summary",
  "model-switched": "model",
  synthetic: "reminder"
}

/** What a message is, in a column. */
export const kindOf = ({ type }: { readonly type: string }): string =>
  (Object.hasOwn(kinds, type) ? (kinds[type] ?? type) : type).padEnd(14)

/** Sequence number, time, kind, id and the first words. */
export const messageLine = (message: Message): string =>
  `${String(message.seq).padStart(6)}  ${dateTime(message.createdAt)}  ${kindOf(message)}  ${message.id}  ${oneLine(words(message), 72)}\n`

const words = (message: Message): string => {
  if (message.type !== "assistant") return wordsOf(message)
  const text = message.content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join(" ")
  const tools = message.content.flatMap((part) => (part.type === "tool" ? [`[${part.name}]`] : []))
  return [text, ...tools, trouble(message)?.message ?? ""].filter((part) => part !== "").join(" ")
}

/** Why the request failed, or what the answer lacks (CL-621). */
const trouble = (message: AssistantMessage) => message.error ?? problemOfMessage(message)

/** Lines of a tool result that a transcript shows; the events have all of them. */
const resultLines = 12

/** One message of a transcript, followed by an empty line (CL-16). */
export const messageText = (message: Message, terminal: boolean): string => {
  const safe = (text: string) => (terminal ? visible(text) : text)
  const block = (title: string, body: string) => {
    const text = safe(
      [body.trimEnd(), ...edits(message), ...withheld(message)].filter((part) => part !== "").join("\n\n")
    )
    return `## ${title}  ${dateTime(message.createdAt)}\n${text === "" ? "" : `\n${text}\n`}\n`
  }
  switch (message.type) {
    case "user":
      return block("user", [message.text, ...asked(message), ...shownWith(message)].join("\n"))
    case "assistant": {
      const parts = message.content.map((part) => {
        if (part.type === "text") return part.text ?? "…"
        if (part.type === "reasoning") return indent((part.text ?? "…").trimEnd(), "  > ")
        return toolText(part)
      })
      const found = trouble(message)
      const error = found === undefined ? [] : [`! ${found.message}`]
      return block(`assistant (${modelText(message.model)})`, [...parts, ...error].filter(Boolean).join("\n\n"))
    }
    case "system":
      return block("system", message.text)
    case "synthetic":
      return block("reminder", message.text)
    case "shell":
      return block("shell", `$ ${message.command}\n${message.output ?? "…"}`)
    case "agent-switched":
      return block(`agent ${oneLine(message.agent)}`, "")
    case "model-switched":
      return block(`model ${oneLine(modelText(message.model))}`, "")
    case "branch-summary":
      return block("summary of a branch", [message.summary.trimEnd(), ...files(message)].join("\n"))
    case "compaction":
      return block(`summary (${message.reason})`, [message.summary.trimEnd(), ...files(message)].join("\n"))
  }
}

/** What the model is shown in place of the message, or of its results (CP-441). */
const edits = (message: Message): ReadonlyArray<string> =>
  (message.edits ?? []).map(({ callID, content }) => {
    const target = callID === undefined ? "this message" : `the result of ${oneLine(callID)}`
    if (content === undefined) return `~ the model is not shown ${target}`
    const texts = content.map((part) => (part.type === "text" ? part.text : `[${part.name ?? part.mime}]`))
    return `~ in place of ${target} the model is shown: ${oneLine(texts.join(" "), 400)}`
  })

/** The parts that a model is not shown, because its server refused them. */
const withheld = (message: Message): ReadonlyArray<string> =>
  (message.withheld ?? []).map((part) => `~ ${oneLine(withheldText(part), 400)}`)

/** How many files the summarized part read and changed. */
const files = ({
  modifiedFiles = [],
  readFiles = []
}: Extract<Message, { readonly type: "compaction" | "branch-summary" }>) => {
  const each = [
    readFiles.length === 0 ? [] : [`${readFiles.length} read`],
    modifiedFiles.length === 0 ? [] : [`${modifiedFiles.length} modified`]
  ].flat()
  return each.length === 0 ? [] : ["", `[files] ${each.join(", ")}`]
}

/** The prompt's system text, tools and schema, a line each. */
const asked = ({ output, system, tools }: UserMessage): ReadonlyArray<string> => [
  ...(system === undefined ? [] : [`[system] ${oneLine(system, 400)}`]),
  ...(tools === undefined
    ? []
    : [
        `[tools] ${oneLine(
          Object.entries(tools)
            .map(([pattern, on]) => `${pattern}=${on ? "on" : "off"}`)
            .join(" "),
          400
        )}`
      ]),
  ...(output === undefined ? [] : [`[answer] JSON of ${JSON.stringify(output.schema).length} characters of schema`])
]

/** The prompt's attachments and mentions, by name and size; JSON and the request contain them in full. */
const shownWith = ({ expansion, files = [] }: UserMessage): ReadonlyArray<string> => {
  if (expansion === undefined) return files.map((file) => `[file] ${oneLine(file.name ?? file.uri)} (${file.mime})`)
  const text = expansion.text === undefined ? [] : [`[template] ${oneLine(expansion.text, 400)}`]
  return [...text, ...expansion.parts.map(partLine)]
}

const partLine = ({ content, kind, name }: Expansion["parts"][number]): string => {
  const title = `[${kind}] ${oneLine(name, 400)}`
  if (content.type === "file") return `${title} (${content.mime})`
  if (kind === "failure") return `${title}: ${oneLine(content.text, 400)}`
  return `${title} (${bytes(Buffer.byteLength(content.text))})`
}

const toolText = (part: ToolPart): string => {
  const input = part.input === undefined ? (part.raw ?? "") : JSON.stringify(part.input)
  const head = `→ ${part.name} ${oneLine(input, 160)}`
  if (part.state === "error") return `${head}\n${indent(`! ${part.error?.message ?? "failed"}`, "  ")}`
  if (part.state !== "completed") return `${head}\n  (${part.state})`
  const lines = (part.content ?? [])
    .map((item) => (item.type === "text" ? item.text : `[file] ${item.name ?? item.uri} (${item.mime})`))
    .join("\n")
    .trimEnd()
    .split("\n")
  const shown = lines.slice(0, resultLines).map((line) => (line.length > 400 ? `${line.slice(0, 399)}…` : line))
  const rest = lines.length > resultLines ? [`… ${lines.length - resultLines} more lines`] : []
  return `${head}\n${indent([...shown, ...rest].join("\n"), "  | ")}`
}

const messagesGiven = {
  session: Flags.optional("SESSION"),
  after: Flags.integer("after", "SEQ", "only messages after this sequence number", 0),
  limit: Flags.integer("limit", "N", "at most N messages (default: 50)", 1),
  json: Flags.json
}

const runMessages = Effect.fn("Command.messages")(function* (options: FieldValues<typeof messagesGiven>) {
  const output = yield* Output
  const sessions = yield* SessionStore
  const session = yield* SessionReference.resolveHere(options.session)
  let left = options.limit ?? 50
  let cursor = options.after
  for (;;) {
    const page = yield* sessions.messages({ sessionID: session.id, limit: Math.min(left, 500), cursor })
    yield* options.json ? writeJson(...page.items) : output.write(page.items.map(messageLine).join(""))
    const last = page.items.at(-1)
    left -= page.items.length
    if (last === undefined || page.cursor === undefined) return
    cursor = last.seq
    if (left <= 0) return yield* output.note(`more: --after ${last.seq} (${page.total} in all)\n`)
  }
})

export const messages = verb({
  name: "messages",
  summary: "list a session's messages in order, one per line",
  words: "[SESSION]",
  details: [SessionReference.lastUsed],
  given: messagesGiven,
  examples: [
    ["daybook messages", "the first messages of the last session"],
    ["daybook messages fix --json --limit 1000", "whole messages with their parts, as JSON"]
  ],
  overServer: true,
  run: (given) => withReader(runMessages(given))
})

/** The messages of a session, page by page. */
export const allMessages = (sessionID: SessionID) =>
  Stream.unwrap(
    Effect.map(SessionStore, (sessions) =>
      allItems((cursor: number | undefined) => sessions.messages({ sessionID, limit: 50, cursor }))
    )
  )

const showGiven = { session: Flags.optional("SESSION"), json: Flags.json }

const runShow = Effect.fn("Command.show")(function* (options: FieldValues<typeof showGiven>) {
  const output = yield* Output
  const sessions = yield* SessionStore
  const session = yield* SessionReference.resolveHere(options.session)
  if (!options.json) {
    const metrics = yield* sessions.metrics(session.id, yield* Clock.currentTimeMillis)
    const [found = session] = yield* OwnerRows.findHere([session])
    yield* output.write(`${sessionHead(found, metrics)}\n`)
  }
  yield* Stream.runForEachChunk(allMessages(session.id), (page) =>
    options.json
      ? writeJson(...page)
      : output.write(
          Chunk.toArray(page)
            .map((message) => messageText(message, output.terminal))
            .join("")
        )
  )
  const waiting = options.json ? [] : yield* (yield* Inbox).waiting(session.id, { limit: 1_000 })
  if (waiting.length > 0) {
    const inputs = waiting.length === 1 ? "1 prompt waits" : `${waiting.length} prompts wait`
    yield* output.note(`${inputs} in the inbox: daybook resume ${session.id}\n`)
  }
})

export const show = verb({
  name: "show",
  summary: "print a session's transcript",
  words: "[SESSION]",
  details: [
    `${SessionReference.lastUsed} Long tool results are truncated; daybook messages --json prints them in full.`
  ],
  given: showGiven,
  examples: [
    ["daybook show | less", "the last session"],
    ["daybook show ses_01JD", "the session with this id"]
  ],
  overServer: true,
  run: (given) => withReader(runShow(given))
})

const sessionsGiven = {
  cwd: Flags.text("cwd", "DIR", "only sessions of this folder"),
  search: Flags.text("search", "TEXT", "only sessions with this text in their title or a prompt"),
  limit: Flags.integer("limit", "N", "at most N sessions (default: 50)", 1),
  cursor: Flags.text("cursor", "C", "the page after the one that printed this cursor"),
  json: Flags.json
}

/** The workspaces that no node has, of sessions that wait for one. On a file nothing waits for a node. */
const missing = Effect.gen(function* () {
  if ((yield* Remote) === undefined && (yield* DatabasePath.place)._tag === "File") return []
  const { found } = yield* Effect.promise(() => import("../host/Nodes.ts"))
  return (yield* found).waiting
})

/** The sessions with waiting prompts. */
const allWaiting = Effect.gen(function* () {
  const sessions = yield* (yield* Inbox).sessions
  const needsNode = sessions.some(({ location }) => location.workspaceID !== undefined)
  const names = new Map((needsNode ? yield* missing : []).map(({ sessionID, workspaceID }) => [sessionID, workspaceID]))
  return new Map(sessions.map(({ id }) => [id, { workspaceID: names.get(id) }]))
})

const runSessions = Effect.fn("Command.sessions")(function* (options: FieldValues<typeof sessionsGiven>) {
  const output = yield* Output
  const sessions = yield* SessionStore
  const directory = options.cwd === undefined ? undefined : yield* Folder.selected(options.cwd)
  const waiting = options.json ? new Map() : yield* allWaiting
  let left = options.limit ?? 50
  let cursor = options.cursor
  do {
    const page = yield* sessions.list({ directory, search: options.search, limit: Math.min(left, 500), cursor })
    const items = yield* OwnerRows.findHere(page.items)
    yield* options.json ? writeJson(...items) : output.write(sessionTable(items, waiting))
    left -= page.items.length
    cursor = page.cursor
  } while (cursor !== undefined && left > 0)
  if (cursor !== undefined) yield* output.note(`more: --cursor ${cursor}\n`)
})

export const sessions = verb({
  name: "sessions",
  summary: "list sessions, the last used first",
  words: "",
  details: [
    "The columns are: last use (UTC), state, id, title, folder. The state is that of the last activity, cut off if its " +
      "process ended before it was done, or waiting if prompts wait for a run: daybook resume runs both. Prompts that " +
      "wait for a node with a workspace name it (daybook nodes)."
  ],
  given: sessionsGiven,
  examples: [
    ["daybook sessions --cwd .", "the sessions of this folder"],
    ['daybook sessions --search "login page" --json', "the matching sessions, as JSON"]
  ],
  overServer: true,
  run: (given) => withReader(runSessions(given))
})
