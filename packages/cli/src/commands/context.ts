/** `daybook context`: shows the next request to the model, or an earlier one. Spec: CL-75..CL-79. */
import { Effect } from "effect"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { shownAt, type ShownRequest } from "@daybook/core/request/Recorded"
import type { FramedTool } from "@daybook/core/request/RequestFrame"
import { Sessions } from "@daybook/core/session/Sessions"
import { modelText } from "@daybook/log/domain/Values"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { Remote, type Server } from "../host/Remote.ts"
import { withConfigured, withReader, withSessions } from "../host/Runtime.ts"
import { bytes, columns, jsonLine, oneLine, visible } from "../render/Plain.ts"
import { thousands } from "../support/Amounts.ts"
import { Output } from "../terminal/Output.ts"

/** A request and the model's context window. */
interface RequestView {
  readonly request: ShownRequest
  /** Tokens that fit the model's context window, if known. */
  readonly window: number | undefined
}

type Message = ShownRequest["messages"][number]
type Part = Exclude<Message["content"], string>[number]
type FilePart = Extract<Part, { readonly type: "file" }>

const tokens = (value: number): string => `${thousands(value)} ${value === 1 ? "token" : "tokens"}`

/** Bytes of a file's data in any encoding; undefined for a file at a URL. */
const sizeOf = (data: FilePart["data"]): number | undefined => {
  if (data instanceof URL) return undefined
  if (typeof data !== "string") return data.length
  const encoded = data.startsWith("data:") ? data.slice(data.indexOf(",") + 1) : data
  return /^https?:/.test(data) ? undefined : Math.floor((encoded.replace(/=+$/, "").length * 3) / 4)
}

const media = ({ data, fileName, mediaType }: FilePart): string => {
  const size = sizeOf(data)
  const name = fileName === undefined ? "" : ` ${oneLine(fileName)}`
  return `[${oneLine(mediaType)},${size === undefined ? ` ${oneLine(String(data), 400)}` : ` ${bytes(size)}`}${name}]`
}

const text = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "")

/** Names provider data that is sent back unchanged (signatures, encrypted reasoning) by its length. */
const native = ({ options }: Part): string => {
  const size = options === undefined ? 2 : JSON.stringify(options).length
  return size <= 2 ? "" : `\n[with ${thousands(size)} characters of ${Object.keys(options ?? {}).join(", ")}'s own]`
}

const partText = (part: Part): string => {
  switch (part.type) {
    case "text":
      return `${part.text}${native(part)}`
    case "reasoning":
      return `[reasoning]\n${part.text}${native(part)}`
    case "file":
      return `${media(part)}${native(part)}`
    case "tool-call":
      return `→ ${part.name} (${part.id})\n${text(part.params)}${native(part)}`
    case "tool-result":
      return `${part.isFailure ? "✗" : "←"} ${part.name} (${part.id})\n${text(part.result)}${native(part)}`
  }
}

const body = ({ content }: Message): string =>
  typeof content === "string" ? content : content.map(partText).join("\n\n")

const section = (title: string, content: string): string =>
  `## ${title}\n\n${content}${content === "" ? "" : content.endsWith("\n") ? "\n" : "\n\n"}`

const toolText = ({ description, name, parameters }: FramedTool, size: number): string =>
  section(
    `tool ${name} (${tokens(size)})`,
    `${description === undefined ? "" : `${description}\n\n`}${text(parameters)}`
  )

/** The estimated tokens, and the room left in the window. */
const room = ({ request, window }: RequestView): string => {
  const { total } = request.estimate
  if (window === undefined) return `${thousands(total)} estimated`
  const left = window - total
  return `${thousands(total)} estimated, ${left < 0 ? `${thousands(-left)} more than` : `${thousands(left)} left of`} the model's ${thousands(window)}`
}

const head = (shown: RequestView): string => {
  const { agent, frame, model, sessionID, step } = shown.request
  const settings = Object.keys(frame.settings).length === 0 ? [] : [["settings", JSON.stringify(frame.settings)]]
  return columns([
    ["session", sessionID],
    ["turn", step === undefined ? "the next one" : `event ${step.seq}, answered by ${step.messageID}`],
    ["agent", oneLine(agent)],
    ["model", oneLine(modelText(model))],
    ...settings,
    ["tokens", room(shown)]
  ])
}

/** The whole request in the model's order, as consecutive pieces. */
export function* requestText(shown: RequestView, terminal: boolean): Generator<string> {
  const safe = (piece: string) => (terminal ? visible(piece) : piece)
  const { estimate, frame, messages } = shown.request
  yield safe(`${head(shown)}\n`)
  for (const [at, words] of frame.system.entries()) {
    yield safe(section(`system ${at + 1} (${tokens(estimate.perSystem[at] ?? 0)})`, words))
  }
  for (const [at, tool] of frame.tools.entries()) yield safe(toolText(tool, estimate.perTool[at] ?? 0))
  for (const [at, message] of messages.entries()) {
    yield safe(section(`${at + 1} ${message.role} (${tokens(estimate.perMessage[at] ?? 0)})`, body(message)))
  }
}

const firstWords = (message: Message): string => {
  if (typeof message.content === "string") return oneLine(message.content, 60)
  const words = message.content.map((part): string => {
    switch (part.type) {
      case "text":
      case "reasoning":
        return part.text.slice(0, 500)
      case "file":
        return media(part)
      case "tool-call":
        return `→ ${part.name}`
      case "tool-result":
        return `← ${part.name}`
    }
  })
  return oneLine(words.join(" "), 60)
}

export const sizeTable = (shown: RequestView): string => {
  const { estimate, frame, messages } = shown.request
  const row = (size: number | undefined, what: string, words = "") => [thousands(size ?? 0).padStart(9), what, words]
  return columns([
    ...frame.system.map((words, at) => row(estimate.perSystem[at], `system ${at + 1}`, oneLine(words, 60))),
    ...frame.tools.map(({ name }, at) => row(estimate.perTool[at], "tool", name)),
    ...messages.map((message, at) => row(estimate.perMessage[at], `${at + 1} ${message.role}`, firstWords(message))),
    row(estimate.total, "total", room(shown))
  ])
}

/** The request as one JSON object; bytes of media are base64. */
export const requestJson = ({ request, window }: RequestView, terminal: boolean): string => {
  const { agent, estimate, frame, messages, model, sessionID, step } = request
  const encoded = messages.map(({ content, ...message }) => ({
    ...message,
    content:
      typeof content === "string"
        ? content
        : content.map((part) =>
            part.type === "file" && part.data instanceof Uint8Array
              ? { ...part, data: Buffer.from(part.data).toString("base64") }
              : part
          )
  }))
  return jsonLine(
    {
      sessionID,
      ...(step === undefined ? {} : { step }),
      agent,
      model,
      settings: frame.settings,
      system: frame.system,
      tools: frame.tools,
      messages: encoded,
      tokens: { ...estimate, ...(window === undefined ? {} : { window, left: window - estimate.total }) }
    },
    terminal
  )
}

const given = {
  session: Flags.optional("SESSION"),
  at: Flags.integer("at", "SEQ", "the request of the turn that event SEQ belongs to, or of the last turn before it", 0),
  tokens: Flags.toggle("tokens", "only the table of sizes"),
  json: Flags.json
}

type Options = FieldValues<typeof given>

const print = Effect.fnUntraced(function* (
  { json, tokens }: Options,
  request: ShownRequest,
  window: number | undefined
) {
  const output = yield* Output
  const shown = { request, window }
  if (json) return yield* output.write(`${requestJson(shown, output.terminal)}\n`)
  if (tokens) return yield* output.write(sizeTable(shown))
  for (const piece of requestText(shown, output.terminal)) yield* output.write(piece)
})

/** An earlier turn, from the log alone. */
const runAt = Effect.fn("Command.context.at")(function* (options: Options, seq: number) {
  const session = yield* SessionReference.resolveHere(options.session)
  yield* print(options, yield* shownAt(session.id, seq), undefined)
})

/** The next turn, as the runtime would make it. */
const runNext = Effect.fn("Command.context.next")(function* (options: Options) {
  const sessions = yield* Sessions
  const session = yield* SessionReference.resolveHere(options.session)
  const request = yield* sessions.request({ sessionID: session.id })
  const { info } = yield* (yield* ModelResolver).resolve(request.model)
  yield* print(options, request, info.contextTokens > 0 ? info.contextTokens : undefined)
})

/** Either turn, as a server shows it. */
const runOver = Effect.fn("Command.context.over")(function* (server: Server, options: Options) {
  const { at } = options
  const session = yield* SessionReference.resolveHere(options.session)
  const request = yield* (yield* Sessions).request({ sessionID: session.id, at })
  const { limits } = yield* Effect.promise(() => import("../host/RemoteHost.ts"))
  yield* print(options, request, at === undefined ? (yield* limits(server, session.id)).contextTokens : undefined)
})

export const context = verb({
  name: "context",
  summary: "show the next request to the model, or an earlier one",
  words: "[SESSION]",
  details: [
    `${SessionReference.lastUsed} ` +
      "It prints the whole request as it would be sent: system texts, tools, messages with their calls and results, each " +
      "with its estimated tokens. Nothing is written, no model is called, and no MCP server is started, so MCP tools are " +
      "not listed.",
    "With --at it prints the request of an earlier turn, from the log alone: no configuration, model or server is needed. " +
      "daybook events prints the sequence numbers."
  ],
  given,
  examples: [
    ["daybook context | less", "the next request of the last session"],
    ["daybook context fix --tokens", "the size of each part"],
    ["daybook context fix --at 41 --json", "the request of the turn at event 41, as one JSON object"]
  ],
  overServer: true,
  run: (options) =>
    Effect.flatMap(Remote, (server) => {
      if (server !== undefined) return withSessions(runOver(server, options))
      return options.at === undefined ? withConfigured(runNext(options)) : withReader(runAt(options, options.at))
    })
})
