/** Checks requests of chat completions by the rules of one server. The rules come from its documentation and its error messages. */
import { Predicate } from "effect"
import { faultsOf } from "../ProviderHistory.ts"
import { type Action, type Json, list, type Note, reasonOf, record, repeated } from "./ModelServer.ts"

/** How thinking stands in messages. */
export interface Thinking {
  /** The pieces in which it is sent; `signed` is the last one. */
  readonly deltas: (pieces: ReadonlyArray<string>) => ReadonlyArray<Json>
  /** The thinking of a message that comes back; undefined if it has none. */
  readonly of: (message: Json) => unknown
  /** What must come back for it, if not the text itself. */
  readonly wanted?: (reason: string) => unknown
}

export interface ChatRules {
  readonly systemRole?: "system" | "developer"
  readonly system?: "one" | "anywhere"
  readonly alternates?: boolean
  readonly noUserAfterTool?: boolean
  readonly ids?: RegExp
  readonly thinking?: Thinking
  /** Which answers must come back with their thinking. */
  readonly back?: "calls" | "all"
  /** A field without which, or with an empty one, an answer with calls is rejected, whoever wrote it. */
  readonly required?: string
  /** Fields of messages and requests other than these are rejected. */
  readonly strict?: { readonly answer: ReadonlyArray<string>; readonly request: ReadonlyArray<string> }
  /** Fields of messages that are rejected. */
  readonly rejects?: ReadonlyArray<string>
  readonly media?: boolean
  readonly limit?: "max_tokens" | "max_completion_tokens"
  /** Values of the tool choice that are accepted. */
  readonly choices?: ReadonlyArray<unknown>
  /** Content may be `null` beside calls. */
  readonly noNull?: boolean
  /** Fields that each request needs. */
  readonly needs?: Json
  /** Whether the first call of an answer needs Google's signature. */
  readonly signed?: boolean
}

const isText = (value: unknown): boolean => Predicate.isString(value) && value !== ""

const inputOf = (call: Json | undefined): string | undefined => {
  const input = record(call?.["function"])["arguments"]
  return Predicate.isString(input) ? input : undefined
}

const textOf = (content: unknown): string =>
  Predicate.isString(content)
    ? content
    : list(content)
        .flatMap(({ text, type }) => (type === "text" ? [String(text)] : []))
        .join("")

export const checkChat =
  (rules: ChatRules) =>
  (body: Json, said: ReadonlyArray<ReadonlyArray<Action>>, note: Note): void => {
    for (const fault of faultsOf("openai-compatible", body)) note(fault)
    const messages = list(body["messages"])
    checkRoles(messages, rules, note)
    for (const [index, message] of messages.entries()) {
      const where = `messages.${index}`
      for (const field of rules.rejects ?? [])
        if (field in message) note(`${where}: property '${field}' is unsupported`)
      if (message["role"] === "assistant") checkAnswer(message, rules, said, (fault) => note(`${where}: ${fault}`))
      for (const part of list(message["content"]))
        checkPart(part, message, rules, (fault) => note(`${where}: ${fault}`))
    }
    checkRequest(body, rules, note)
  }

const checkRoles = (messages: ReadonlyArray<Json>, rules: ChatRules, note: Note): void => {
  const { alternates = false, noUserAfterTool = false, system = "one", systemRole = "system" } = rules
  const roles = messages.map(({ role }) => role)
  for (const role of roles) {
    if (!["user", "assistant", "tool", systemRole].includes(String(role))) note(`unknown role ${String(role)}`)
  }
  const last = roles.lastIndexOf(systemRole)
  if (system === "one" && last > 0) note("System message must be at the beginning.")
  for (const [index, role] of roles.entries()) {
    const before = roles[index - 1]
    if (noUserAfterTool && role === "user" && before === "tool") note("Unexpected role 'user' after role 'tool'")
    if (alternates && role === "user" && before === "user") note("Conversation roles must alternate")
  }
}

const checkAnswer = (message: Json, rules: ChatRules, said: ReadonlyArray<ReadonlyArray<Action>>, note: Note): void => {
  const calls = list(message["tool_calls"])
  for (const { id } of calls)
    if (rules.ids !== undefined && !rules.ids.test(String(id))) note(`Tool call id was ${String(id)}`)
  if (rules.noNull === true && message["content"] === null) note("content must not be null")
  if (calls.length > 0 && rules.required !== undefined && !isText(message[rules.required])) {
    note(`The \`${rules.required}\` in the thinking mode must be passed back to the API.`)
  }
  const signature = record(record(calls[0]?.["extra_content"])["google"])["thought_signature"]
  if (rules.signed === true && calls.length > 0 && !Predicate.isString(signature)) {
    note("Function call is missing a thought_signature in functionCall parts.")
  }
  const strange = Object.keys(message).filter(
    (field) => rules.strict !== undefined && !rules.strict.answer.includes(field)
  )
  if (strange.length > 0) note(`Extra inputs are not permitted: ${strange.join()}`)
  const before = repeated(said, inputOf(calls[0]), textOf(message["content"]))
  const reason = before === undefined ? "" : reasonOf(before)
  if (rules.thinking === undefined || reason === "" || rules.back === undefined) return
  if (rules.back === "calls" && calls.length === 0) return
  const [wanted, sent] = [rules.thinking.wanted?.(reason) ?? reason, rules.thinking.of(message)]
  if (wanted !== sent) note(`its thinking was ${JSON.stringify(wanted)}, not ${JSON.stringify(sent)}`)
}

const checkPart = (part: Json, message: Json, rules: ChatRules, note: Note): void => {
  const isPicture = part["type"] === "image_url"
  if (isPicture && rules.media === false) note("unknown variant `image_url`, expected `text`")
  if (isPicture && message["role"] !== "user") note("only a user message takes pictures")
  if (part["type"] === "file" && rules.media === false) note("unsupported content[].type")
}

const checkRequest = (body: Json, rules: ChatRules, note: Note): void => {
  const { choices, limit = "max_tokens", needs = {}, strict } = rules
  if (body["stream"] !== true) note("stream is not set")
  if (!Predicate.isNumber(body[limit])) note(`${limit} is missing`)
  if (["max_tokens", "max_completion_tokens"].filter((name) => name in body).length > 1) note("two limits are set")
  for (const tool of list(body["tools"])) {
    const { name, parameters } = record(tool["function"])
    if (tool["type"] !== "function" || record(parameters)["type"] !== "object")
      note(`the tool ${String(name)} has no schema`)
  }
  if (choices !== undefined && "tool_choice" in body && !choices.includes(body["tool_choice"])) {
    note("Thinking mode does not support this tool_choice")
  }
  for (const [name, value] of Object.entries(needs)) if (body[name] !== value) note(`${name} must be ${String(value)}`)
  const strange = Object.keys(body).filter((field) => strict !== undefined && !strict.request.includes(field))
  if (strange.length > 0) note(`Extra inputs are not permitted: ${strange.join()}`)
}
