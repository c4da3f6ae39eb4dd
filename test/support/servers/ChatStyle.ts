/**
 * How servers of chat completions write: the style of answers, the forms of thinking, and errors in OpenAI's form. The table of
 * servers is in `ChatServers.ts`.
 */
import type { ChatRules, Thinking } from "./ChatRules.ts"
import { type Action, type Json, list, pieces, type Refusal, refusal, type Reply, type Wire } from "./ModelServer.ts"

/** How a server writes its answers. */
export interface Style {
  readonly rules: ChatRules
  /** Ids of calls; an empty one, or none, where the server gives none. */
  readonly id?: (nth: number, call: number, tool: string) => string | undefined
  /** Whether the input of a call comes in pieces, or whole with its name. */
  readonly whole?: boolean
  /** `zero`: all calls have the index 0; `none`: none has one. */
  readonly index?: "zero" | "none"
  /** Repeats the id and the name, empty, with each piece. */
  readonly blanks?: boolean
  /** The finish reason of calls. */
  readonly calls?: string
  /** Where the usage stands: after the choices, beside the finish reason, within the choice, in `x_groq`, or nowhere. */
  readonly usage?: "after" | "beside" | "choice" | "x_groq" | "none"
  readonly noDone?: boolean
  /** Frames before the first one. */
  readonly first?: string
  readonly eol?: string
  /** Fields of every chunk. */
  readonly chunk?: Json
  /** Fields of every call. */
  readonly call?: Json
  /** The last chunk repeats the whole answer as a message. */
  readonly repeats?: boolean
}

const usage = {
  prompt_tokens: 120,
  completion_tokens: 30,
  total_tokens: 150,
  prompt_tokens_details: { cached_tokens: 20 }
}

const callDeltas = (style: Style, tool: string, input: string, nth: number, call: number): ReadonlyArray<Json> => {
  const id = style.id === undefined ? `call_${nth}_${call}` : style.id(nth, call, tool)
  const index = style.index === "none" ? {} : { index: style.index === "zero" ? 0 : call }
  const begin = { ...index, ...(id === undefined ? {} : { id }), type: "function", ...style.call }
  const one = (given: Json): Json => ({ tool_calls: [given] })
  if (style.whole === true) return [one({ ...begin, function: { name: tool, arguments: input } })]
  const more = style.blanks === true ? { id: "", type: "function" } : {}
  return [
    one({ ...begin, function: { name: tool, arguments: "" } }),
    ...pieces(input).map((piece) =>
      one({ ...index, ...more, function: { ...(style.blanks === true ? { name: "" } : {}), arguments: piece } })
    )
  ]
}

const deltasOf = (style: Style, actions: ReadonlyArray<Action>, nth: number): ReadonlyArray<Json> => {
  let call = 0
  return actions.flatMap((action): ReadonlyArray<Json> => {
    if ("text" in action) return pieces(action.text).map((content) => ({ content }))
    if ("reason" in action) return style.rules.thinking?.deltas(pieces(action.reason)) ?? []
    return callDeltas(style, action.tool, JSON.stringify(action.input), nth, call++)
  })
}

export const write =
  (model: string, style: Style) =>
  (actions: ReadonlyArray<Action>, nth: number): Wire => {
    const eol = style.eol ?? "\n"
    const frame = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}${eol}${eol}`
    const head = {
      id: `chatcmpl-${nth}`,
      object: "chat.completion.chunk",
      created: 1_790_000_000,
      model,
      ...style.chunk
    }
    const chunk = (delta: Json, finish_reason: string | null, more: Json = {}) =>
      frame({ ...head, choices: [{ index: 0, delta, finish_reason, ...more }] })
    const reason = actions.some((one) => "tool" in one) ? (style.calls ?? "tool_calls") : "stop"
    const message = { role: "assistant", content: actions.flatMap((one) => ("text" in one ? [one.text] : [])).join("") }
    const last = (): ReadonlyArray<string> => {
      const finish = { index: 0, delta: {}, finish_reason: reason }
      switch (style.usage ?? "after") {
        case "after":
          return [chunk({}, reason), frame({ ...head, choices: [], usage })]
        case "beside":
          return [
            frame({
              ...head,
              choices: [style.repeats === true ? { ...finish, delta: undefined, message } : finish],
              usage
            })
          ]
        case "choice":
          return [chunk({}, reason, { usage })]
        case "x_groq":
          return [frame({ ...head, choices: [finish], x_groq: { id: "req_1", usage } })]
        case "none":
          return [chunk({}, reason)]
      }
    }
    return {
      said: [
        ...(style.first === undefined ? [] : [style.first]),
        chunk({ role: "assistant", content: "" }, null),
        ...deltasOf(style, actions, nth).map((delta) => chunk(delta, null))
      ],
      end: [...last(), ...(style.noDone === true ? [] : [frame("[DONE]")])]
    }
  }

// --- thinking

export const field = (name: string): Thinking => ({
  deltas: (all) => all.map((piece) => ({ [name]: piece })),
  of: (message) => message[name]
})

/** Mistral's parts of the content. */
export const parts: Thinking = {
  deltas: (all) => all.map((text) => ({ content: [{ type: "thinking", thinking: [{ type: "text", text }] }] })),
  of: (message) =>
    list(message["content"])
      .filter(({ type }) => type === "thinking")
      .flatMap(({ thinking }) => list(thinking).map(({ text }) => text))
      .join("")
}

const format = "anthropic-claude-v1"

/** OpenRouter: the text beside details in pieces, of which the last one is signed. */
export const details: Thinking = {
  deltas: (all) => [
    ...all.map((text) => ({
      reasoning: text,
      reasoning_details: [{ type: "reasoning.text", text, format, index: 0 }]
    })),
    { reasoning_details: [{ type: "reasoning.text", signature: "SIGNED", format, index: 0 }] }
  ],
  of: (message) =>
    list(message["reasoning_details"])
      .map(({ signature, text }) => `${String(text)} ${String(signature)}`)
      .join(),
  wanted: (reason) => `${reason} SIGNED`
}

/** MiniMax: both a field and details, of which the details must come back. */
export const split: Thinking = {
  deltas: (all) =>
    all.map((text) => ({ reasoning_content: text, reasoning_details: [{ type: "reasoning.text", text, index: 0 }] })),
  of: (message) =>
    list(message["reasoning_details"])
      .map(({ text }) => text)
      .join("")
}

// --- errors

export type Errors = Readonly<Record<Refusal, Reply>>

/** Errors in OpenAI's form. */
export const errors = (overflow: string, more: Json = {}, status = 400): Errors => ({
  overflow: refusal(status, {
    error: { message: overflow, type: "invalid_request_error", param: null, code: null, ...more }
  }),
  rateLimit: refusal(
    429,
    { error: { message: "Rate limit reached", type: "rate_limit_error" } },
    { "retry-after": "7" }
  ),
  auth: refusal(401, { error: { message: "Incorrect API key provided", type: "authentication_error" } })
})
