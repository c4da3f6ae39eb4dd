/**
 * Checks a conversation by the rules of each protocol: pure functions from a request's body to its faults; an accepted body has
 * none. The rules come from the services' documentation and error messages.
 */
import { Predicate } from "effect"

type Json = Readonly<Record<string, unknown>>
export type Protocol = "anthropic" | "openai" | "openai-compatible" | "gemini"

const record = (value: unknown): Json => (Predicate.isRecord(value) ? value : {})
const list = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value.map(record) : [])
const saysSomething = (text: unknown): text is string =>
  Predicate.isString(text) && !/^[\s\p{Z}\p{Cc}\p{Cf}]*$/u.test(text)
const toolName = /^[a-zA-Z0-9_-]{1,64}$/
const pictures: ReadonlySet<unknown> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

const isObjectJson = (text: unknown): boolean => {
  try {
    return Predicate.isString(text) && Predicate.isRecord(JSON.parse(text))
  } catch {
    return false
  }
}

/** Records a fault and its place. */
type Note = (where: string, fault: string) => void

const loneSurrogates = (value: unknown, note: Note, where = "body"): void => {
  if (Predicate.isString(value)) {
    if (/\p{Cs}/u.test(value)) note(where, "holds half of a surrogate pair")
  } else if (Array.isArray(value)) {
    value.forEach((item, index) => loneSurrogates(item, note, `${where}.${index}`))
  } else if (Predicate.isRecord(value)) {
    for (const [key, item] of Object.entries(value)) {
      loneSurrogates(key, note, where)
      loneSurrogates(item, note, `${where}.${key}`)
    }
  }
}

/** Checks that the offered tools' names are valid and unique. */
const toolNames = (names: ReadonlyArray<unknown>, note: Note): void => {
  for (const name of names) if (!toolName.test(String(name))) note("tools", `the name ${String(name)} is not accepted`)
  if (new Set(names).size < names.length) note("tools", "a name is there twice")
}

/** Tracks calls whose results must come next, and all ids so far. */
const makeCalls = (note: Note, id: RegExp) => {
  const used = new Set<unknown>()
  return {
    made: (where: string, callID: unknown, name: unknown): void => {
      if (!id.test(String(callID))) note(where, `the id ${String(callID)} is not accepted`)
      if (used.has(callID)) note(where, `the id ${String(callID)} is used twice`)
      if (!toolName.test(String(name))) note(where, `the name ${String(name)} is not accepted`)
      used.add(callID)
    },
    /** Checks that these results belong to these calls, each once. */
    settled: (where: string, calls: ReadonlyArray<unknown>, results: ReadonlyArray<unknown>): void => {
      const [made, had] = [calls.map(String).sort().join(), results.map(String).sort().join()]
      if (made !== had) note(where, `results of (${had}) directly follow calls of (${made})`)
    }
  }
}

const anthropicText = (block: Json, where: string, note: Note): void => {
  if (!saysSomething(block["text"])) note(where, "text content blocks must contain non-whitespace text")
}

const anthropicUserBlock = (block: Json, where: string, note: Note): void => {
  const source = record(block["source"])
  switch (block["type"]) {
    case "text":
      return anthropicText(block, where, note)
    case "image":
      if (source["type"] === "base64" && !pictures.has(source["media_type"])) note(where, "media_type is not accepted")
      if (source["type"] === "base64" && !saysSomething(source["data"])) note(where, "the picture is empty")
      return
    case "document":
      if (source["type"] === "base64" && !saysSomething(source["data"])) note(where, "the document is empty")
      return
    case "tool_result":
      if (!saysSomething(block["content"])) note(where, "the result is empty")
      return
    default:
      note(where, `a user message has no block of type ${String(block["type"])}`)
  }
}

const anthropicAnswerBlock = (block: Json, where: string, note: Note): void => {
  switch (block["type"]) {
    case "text":
      return anthropicText(block, where, note)
    case "thinking":
      if (!Predicate.isString(block["thinking"]) || !saysSomething(block["signature"])) note(where, "is not signed")
      return
    case "redacted_thinking":
      if (!saysSomething(block["data"])) note(where, "has no data")
      return
    case "tool_use":
      if (!Predicate.isRecord(block["input"])) note(where, "input: Input should be a valid dictionary")
      return
    case "server_tool_use":
      if (!String(block["id"]).startsWith("srvtoolu_")) note(where, "is not the id of a server tool")
      return
    case "web_search_tool_result":
    case "code_execution_tool_result":
      if (!Predicate.isObject(block["content"])) note(where, "has no content")
      return
    default:
      note(where, `an answer has no block of type ${String(block["type"])}`)
  }
}

const typed =
  (...types: ReadonlyArray<string>) =>
  (block: Json): boolean =>
    types.includes(String(block["type"]))

const isThought = typed("thinking", "redacted_thinking")

const anthropic = (body: Json, note: Note): void => {
  const messages = list(body["messages"])
  const calls = makeCalls(note, /^[a-zA-Z0-9_-]{1,64}$/)
  if (messages.length === 0) note("messages", "at least one message is required")
  if (messages[0]?.["role"] !== "user") note("messages.0", "first message must use the user role")
  if (messages.at(-1)?.["role"] !== "user") note("messages", "the conversation must end with a user message")
  for (const [index, message] of messages.entries()) {
    const where = `messages.${index}`
    const content = list(message["content"])
    const before = list(messages[index - 1]?.["content"])
    if (content.length === 0) note(where, "has no content")
    if (index > 0 && message["role"] === messages[index - 1]?.["role"]) note(where, "roles must alternate")
    if (message["role"] === "user") {
      for (const block of content) anthropicUserBlock(block, where, note)
      const results = content.filter(typed("tool_result"))
      if (!content.slice(0, results.length).every(typed("tool_result")))
        note(where, "tool_result blocks must come first")
      const made = before.filter(typed("tool_use")).map(({ id }) => id)
      calls.settled(
        where,
        made,
        results.map((block) => block["tool_use_id"])
      )
      continue
    }
    for (const block of content) anthropicAnswerBlock(block, where, note)
    for (const { id, name } of content.filter(typed("tool_use", "server_tool_use"))) calls.made(where, id, name)
    const last = content.at(-1)
    if (last !== undefined && isThought(last)) note(where, "the final block in an assistant message cannot be thinking")
    const hosted = content.filter(typed("web_search_tool_result", "code_execution_tool_result"))
    const served = content.filter(typed("server_tool_use"))
    calls.settled(
      where,
      served.map(({ id }) => id),
      hosted.map((block) => block["tool_use_id"])
    )
  }
  anthropicThinking(body, messages, note)
  const blocks = [...list(body["system"]), ...list(body["tools"]), ...messages.flatMap((one) => list(one["content"]))]
  if (blocks.filter((block) => "cache_control" in block).length > 4) note("body", "a maximum of 4 cache marks")
  if ("system" in body && list(body["system"]).length === 0) note("system", "is empty")
  for (const block of list(body["system"])) anthropicText(block, "system", note)
  toolNames(
    list(body["tools"]).map(({ name }) => name),
    note
  )
  if (list(body["tools"]).length === 0 && blocks.some(typed("tool_use", "tool_result"))) {
    note("tools", "requests which have tool blocks must define tools")
  }
}

/** With a thinking budget, the answer that the last results belong to must begin with thinking. */
const anthropicThinking = (body: Json, messages: ReadonlyArray<Json>, note: Note): void => {
  if (record(body["thinking"])["type"] !== "enabled") return
  const asked = messages.findLastIndex(
    (message) => message["role"] === "user" && !list(message["content"]).some(typed("tool_result"))
  )
  const first = list(messages[asked + 1]?.["content"])[0]
  if (first !== undefined && !isThought(first))
    note("messages", "a final assistant message must start with a thinking block")
}

const isAnswerItem = (item: Json): boolean =>
  item["role"] === "assistant" || item["type"] === "function_call" || item["type"] === "reasoning"

const openaiMessage = (item: Json, where: string, note: Note): void => {
  if (item["role"] === "system" || item["role"] === "developer") {
    if (!saysSomething(item["content"])) note(where, "is empty")
    return
  }
  const content = list(item["content"])
  if (content.length === 0) note(where, "has no content")
  for (const part of content) {
    const type = part["type"]
    if (type === "input_text" || type === "output_text") {
      if (!saysSomething(part["text"])) note(where, "has a blank text")
      if ((type === "output_text") !== (item["role"] === "assistant")) note(where, `takes no ${String(type)}`)
    } else if (type === "input_image") {
      if (!saysSomething(part["image_url"])) note(where, "has an empty picture")
    } else if (type === "input_file") {
      if (!saysSomething(part["filename"]) || !saysSomething(part["file_data"])) note(where, "has an empty file")
    } else note(where, `takes no part of type ${String(type)}`)
  }
}

const openai = (body: Json, note: Note): void => {
  const items = list(body["input"])
  const calls = makeCalls(note, /^[\x21-\x7e]{1,64}$/)
  const ids = items.flatMap((item) => ("id" in item ? [item["id"]] : []))
  if (!ids.every(saysSomething)) note("input", "an item has an id that is no text")
  if (new Set(ids).size < ids.length) note("input", "duplicate item found")
  const spoken = items.filter((item) => item["role"] !== "system" && item["role"] !== "developer")
  if (spoken[0]?.["role"] !== "user") note("input", "does not begin with the user")
  const end = items.at(-1)
  if (end === undefined || isAnswerItem(end)) note("input", "ends with an answer")
  let made: Array<unknown> = []
  let settled: Array<unknown> = []
  for (const [index, item] of items.entries()) {
    const where = `input.${index}`
    if (item["type"] === "function_call") {
      calls.made(where, item["call_id"], item["name"])
      if (!isObjectJson(item["arguments"])) note(where, "has arguments that are no JSON object")
      made.push(item["call_id"])
    } else if (item["type"] === "function_call_output") {
      if (!saysSomething(item["output"])) note(where, "has an empty output")
      settled.push(item["call_id"])
    } else if (item["type"] === "reasoning") {
      const next = items[index + 1]
      if (!saysSomething(item["id"]) || !saysSomething(item["encrypted_content"]))
        note(where, "reasoning is incomplete")
      if (next === undefined || !isAnswerItem(next)) note(where, "was provided without its required following item")
    } else openaiMessage(item, where, note)
    if (item["type"] === "function_call_output" && items[index + 1]?.["type"] === "function_call_output") continue
    if (item["type"] !== "function_call_output" && isAnswerItem(item)) continue
    calls.settled(where, made, settled)
    ;[made, settled] = [[], []]
  }
  toolNames(
    list(body["tools"]).map(({ name }) => name),
    note
  )
}

const chatContent = (content: unknown, where: string, note: Note): void => {
  if (Predicate.isString(content)) {
    if (!saysSomething(content)) note(where, "has a blank text")
    return
  }
  if (list(content).length === 0) note(where, "has no content")
  for (const part of list(content)) {
    if (part["type"] === "text" && !saysSomething(part["text"])) note(where, "has a blank text")
    if (part["type"] === "image_url" && !saysSomething(record(part["image_url"])["url"])) note(where, "has no picture")
  }
}

const chat = (body: Json, note: Note): void => {
  const messages = list(body["messages"])
  const calls = makeCalls(note, /^[\x21-\x7e]{1,40}$/)
  const spoken = messages.filter(({ role }) => role !== "system" && role !== "developer")
  if (spoken[0]?.["role"] !== "user") note("messages", "the first message is not the user's")
  const end = messages.at(-1)?.["role"]
  if (end === undefined || end === "assistant") note("messages", `ends with the role ${String(end)}`)
  for (const [index, message] of messages.entries()) {
    const where = `messages.${index}`
    const toolCalls = list(message["tool_calls"])
    if (message["role"] === "tool") {
      if (!saysSomething(message["content"])) note(where, "has an empty result")
      const before = messages[index - 1]
      if (before?.["role"] !== "tool" && list(before?.["tool_calls"]).length === 0) note(where, "follows no call")
      continue
    }
    if (message["role"] !== "assistant") {
      chatContent(message["content"], where, note)
      continue
    }
    if (messages[index - 1]?.["role"] === "assistant") note(where, "follows another answer")
    const blank = message["content"] === null || message["content"] === ""
    if (!blank || toolCalls.length === 0) chatContent(message["content"], where, note)
    for (const call of toolCalls) {
      const { arguments: input, name } = record(call["function"])
      calls.made(where, call["id"], name)
      if (!isObjectJson(input)) note(where, "has arguments that are no JSON object")
    }
    const after = messages.slice(index + 1)
    const results = after.slice(0, after.findIndex(({ role }) => role !== "tool") >>> 0)
    calls.settled(
      where,
      toolCalls.map(({ id }) => id),
      results.map((result) => result["tool_call_id"])
    )
  }
  toolNames(
    list(body["tools"]).map((tool) => record(tool["function"])["name"]),
    note
  )
}

const geminiPart = (part: Json, where: string, note: Note): void => {
  const kinds = ["text", "inlineData", "fileData", "functionCall", "functionResponse"].filter((kind) => kind in part)
  if (kinds.length !== 1) note(where, "required oneof field 'data' must have one initialized field")
  if ("text" in part && part["thought"] !== true && !saysSomething(part["text"])) note(where, "has a blank text")
  if ("inlineData" in part && !saysSomething(record(part["inlineData"])["data"])) note(where, "has no data")
}

const gemini = (body: Json, note: Note): void => {
  const contents = list(body["contents"])
  const calls = makeCalls(note, /^[\x21-\x7e]{1,64}$/)
  if (contents[0]?.["role"] !== "user") note("contents", "does not begin with the user")
  if (contents.at(-1)?.["role"] !== "user") note("contents", "does not end with the user")
  for (const [index, content] of contents.entries()) {
    const where = `contents.${index}`
    const parts = list(content["parts"])
    const made = parts.flatMap((part) => ("functionCall" in part ? [record(part["functionCall"])] : []))
    const before = list(contents[index - 1]?.["parts"]).flatMap((part) => ("functionCall" in part ? [part] : []))
    const results = parts.flatMap((part) => ("functionResponse" in part ? [record(part["functionResponse"])] : []))
    if (parts.length === 0) note(where, "parts must not be empty")
    for (const part of parts) geminiPart(part, where, note)
    for (const { args, id, name } of made) {
      calls.made(where, id, name)
      if (!Predicate.isRecord(args)) note(where, "args must be an object")
    }
    if (content["role"] === "model") {
      if (contents[index - 1]?.["role"] === "model") note(where, "follows another answer")
      const first = parts.find((part) => "functionCall" in part)
      if (first !== undefined && !saysSomething(first["thoughtSignature"]))
        note(where, "is missing a thought_signature")
    } else if (made.length > 0) note(where, "the user makes no calls")
    calls.settled(
      where,
      before.map((part) => record(part["functionCall"])["id"]),
      results.map(({ id }) => id)
    )
    for (const { response } of results) if (!Predicate.isRecord(response)) note(where, "response must be an object")
  }
  toolNames(
    list(list(body["tools"])[0]?.["functionDeclarations"]).map(({ name }) => name),
    note
  )
}

const rules: Readonly<Record<Protocol, (body: Json, note: Note) => void>> = {
  anthropic,
  openai,
  "openai-compatible": chat,
  gemini
}

/** The reasons why a provider would reject this body. */
export const faultsOf = (protocol: Protocol, body: Json): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const note: Note = (where, fault) => void faults.push(`${where}: ${fault}`)
  rules[protocol](body, note)
  loneSurrogates(body, note)
  return faults
}
