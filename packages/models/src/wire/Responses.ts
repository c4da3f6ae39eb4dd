/**
 * OpenAI's Responses API and the servers that speak it. An answer has items that are announced, grow and end. Servers leave out any
 * of these events, their ids and their positions, so an item is found by whatever tells it, and what was not streamed is taken from
 * the events that hold it whole. Spec: MD-14, MD-20, MD-22, MD-49, MD-100..MD-106, MD-787 in specs/models.md.
 *
 *   output_item.added -> *.delta -> *.done -> output_item.done -> response.completed: each of them may be the only one
 */
import type * as Prompt from "@effect/ai/Prompt"
import { Predicate } from "effect"
import { present } from "@daybook/log/support/Optional"
import type { Profile } from "../Profiles.ts"
import { type Answer, inputText, usageOf } from "./Answer.ts"
import { notedOn, resultInWords, resultText, urlOf } from "./History.ts"
import { filled, type Json, list, record, text, wordsOf } from "./Json.ts"
import type { Protocol, WireRequest, WireTool } from "./Protocol.ts"

// --- writing

type Content = Prompt.AssistantMessage["content"]

const write = (request: WireRequest): Json => {
  const { format, messages, model, profile, settings, thinks, tools } = request
  const { effort, maxOutputTokens, temperature, topP } = settings
  const sampled = !thinks || effort === "none"
  const include = [...(thinks ? ["reasoning.encrypted_content"] : []), ...tools.flatMap(includedBy)]
  return present({
    model,
    input: messages.flatMap((message) => itemsOf(message, profile)),
    stream: true,
    // Nothing is stored at the provider: each request is built from the session's log.
    store: false,
    include: include.length === 0 ? undefined : [...new Set(include)],
    reasoning: filled({
      summary: thinks ? "auto" : undefined,
      effort: profile.effort === "none" ? undefined : effort
    }),
    max_output_tokens: maxOutputTokens,
    temperature: sampled ? temperature : undefined,
    top_p: sampled ? topP : undefined,
    text:
      format === undefined
        ? undefined
        : { format: { type: "json_schema", name: format.name, schema: format.schema, strict: false } },
    ...(tools.length === 0 ? {} : { tools: tools.map(toolOf), tool_choice: choiceOf(request) })
  })
}

// --- tools

const hostedType = (id: string): string => id.replace(/^openai\./, "")

const toolOf = (tool: WireTool): Json =>
  tool._tag === "Hosted"
    ? { ...tool.args, type: hostedType(tool.id) }
    : present({
        type: "function",
        name: tool.name,
        description: tool.description,
        parameters: tool.schema,
        strict: false
      })

/** What the results of a hosted tool lack unless it is asked for. */
const includedBy = (tool: WireTool): ReadonlyArray<string> => {
  if (tool._tag === "Local") return []
  const type = hostedType(tool.id)
  if (type === "code_interpreter") return ["code_interpreter_call.outputs"]
  return type.startsWith("web_search") ? ["web_search_call.action.sources"] : []
}

const choiceOf = ({ toolChoice, tools }: WireRequest): unknown => {
  if (Predicate.isString(toolChoice)) return toolChoice
  const hosted = tools.find((tool) => tool._tag === "Hosted")
  const isLocal = tools.some((tool) => tool._tag === "Local" && tool.name === toolChoice.tool)
  return hosted?._tag === "Hosted" && !isLocal
    ? { type: hostedType(hosted.id) }
    : { type: "function", name: toolChoice.tool }
}

// --- conversation

const itemsOf = (message: Prompt.Message, profile: Profile): ReadonlyArray<Json> => {
  switch (message.role) {
    case "system":
      return [{ role: profile.systemRole, content: message.content }]
    case "user":
      return [{ role: "user", content: message.content.map(inputOf) }]
    case "assistant":
      return answerItems(message.content)
    case "tool":
      return message.content.map((part) => ({
        type: "function_call_output",
        call_id: part.id,
        output: resultText(part)
      }))
  }
}

const inputOf = (part: Prompt.UserMessagePart): Json => {
  if (part.type === "text") return { type: "input_text", text: part.text }
  if (part.mediaType !== "application/pdf") {
    return {
      type: "input_image",
      image_url: urlOf(part),
      detail: text(notedOn(part, "openai")["imageDetail"]) ?? "auto"
    }
  }
  return part.data instanceof URL
    ? { type: "input_file", file_url: urlOf(part) }
    : { type: "input_file", filename: part.fileName ?? "document.pdf", file_data: urlOf(part) }
}

/** The parts of one item stand together: texts of a message, summaries of reasoning. */
const answerItems = (content: Content): ReadonlyArray<Json> => {
  const items: Array<Json> = []
  const parts = new Map<string, Array<Json>>()
  /** The list of an item's parts; the first part adds the item. */
  const partsOf = (id: string | undefined, item: (parts: ReadonlyArray<Json>) => Json): Array<Json> => {
    const known = id === undefined ? undefined : parts.get(id)
    if (known !== undefined) return known
    const made: Array<Json> = []
    items.push(item(made))
    if (id !== undefined) parts.set(id, made)
    return made
  }
  for (const part of content) {
    const { encryptedContent, itemId, phase } = notedOn(part, "openai")
    const id = text(itemId)
    if (part.type === "text") {
      const texts = partsOf(id, (content) => present({ role: "assistant", content, id, phase: text(phase) }))
      texts.push({ type: "output_text", text: part.text })
    } else if (part.type === "tool-call") {
      const input = JSON.stringify(record(part.params))
      items.push(present({ type: "function_call", call_id: part.id, name: part.name, arguments: input, id }))
    } else if (part.type === "reasoning" && id !== undefined) {
      const reasoning = { id, type: "reasoning", encrypted_content: encryptedContent }
      const summary = partsOf(id, (summary) => ({ ...reasoning, summary }))
      if (part.text !== "") summary.push({ type: "summary_text", text: part.text })
    }
  }
  return items
}

/**
 * Reasoning is sent back only with its encrypted content and what followed it: the provider stores nothing, so an id
 * alone is rejected. If part of that is missing, or an id is repeated, the answer is sent without reasoning, and
 * without the ids of its other parts, which would require it (MD-14).
 */
const makeLower = () => {
  const used = new Set<string>()
  return (content: Content): Content => {
    const ids = idsOf(content)
    if (ids === undefined || ids.some((id) => used.has(id))) return content.flatMap(withoutItem)
    for (const id of ids) used.add(id)
    return content
  }
}

const withoutItem = (part: Content[number]): Content => {
  if (part.type === "reasoning") return []
  if (part.type === "tool-result") return [resultInWords(part)]
  const { phase } = notedOn(part, "openai")
  const options = phase === undefined ? {} : { openai: { phase } }
  return part.type === "tool-call" && part.providerExecuted ? [] : [{ ...part, options }]
}

/** The item ids of an answer; undefined if it cannot be sent back unchanged. */
const idsOf = (content: Content): ReadonlyArray<string> | undefined => {
  const [reasonings, messages] = [new Set<string>(), new Set<string>()]
  const calls: Array<string> = []
  for (const part of content) {
    const { encryptedContent, itemId: id } = notedOn(part, "openai")
    if (part.type === "reasoning") {
      if (!Predicate.isString(id) || !Predicate.isString(encryptedContent)) return undefined
      reasonings.add(id)
    } else if (part.type === "tool-result" || (part.type === "tool-call" && part.providerExecuted)) {
      // Calls of hosted tools are not sent back, and their results as text only.
      return undefined
    } else if (id !== undefined) {
      if (!Predicate.isString(id)) return undefined
      if (part.type === "text") messages.add(id)
      else calls.push(id)
    }
  }
  const ids = [...reasonings, ...messages, ...calls]
  return content.at(-1)?.type === "reasoning" || new Set(ids).size < ids.length ? undefined : ids
}

// --- reading

type Kind = "text" | "reasoning" | "call" | "hosted"

interface Item {
  readonly key: string
  readonly kind: Kind
  id: string | undefined
  callID: string | undefined
  at: number | undefined
  /** Whether nothing more of it is awaited. */
  done: boolean
  /** The text received of each block, or of a call's input. */
  readonly received: Map<string, string>
  /** The block of each part, by its group and position. */
  readonly parts: Map<string, string>
  /** What its announcement holds: used if no later event does. */
  announced: Json
}

const kinds: ReadonlyMap<unknown, Kind> = new Map([
  ["message", "text"],
  ["reasoning", "reasoning"],
  ["function_call", "call"],
  ["tool_call", "call"],
  ["web_search_call", "hosted"],
  ["file_search_call", "hosted"],
  ["code_interpreter_call", "hosted"]
])

type Mark = Pick<Item, "id" | "callID" | "at">

const markOf = (event: Json, item: Json): Mark => ({
  id: text(item["id"]) ?? text(event["item_id"]),
  callID: text(item["call_id"]),
  at: Predicate.isNumber(event["output_index"]) ? event["output_index"] : undefined
})

const note = (item: Item, mark: Mark): Item => {
  item.id ??= mark.id
  item.callID ??= mark.callID
  item.at ??= mark.at
  return item
}

/** Whether two facts do not contradict each other. */
const agree = (a: unknown, b: unknown): boolean => a === undefined || b === undefined || a === b

/** `response.output_text.delta`: what grows, and whether the event announces it, or holds a piece or the whole. */
const growth =
  /^response\.(content|output|refusal|reasoning_summary|reasoning|function_call_arguments)(?:_text|_part)?\.(added|delta|done)$/

/** A response that goes on: it holds no output yet. */
const going = /^(?:queued|in_progress)$/

class ResponsesReader {
  readonly #answer: Answer
  readonly #request: WireRequest
  readonly #items: Array<Item> = []

  constructor(answer: Answer, request: WireRequest) {
    this.#answer = answer
    this.#request = request
  }

  event(event: Json, name: string): void {
    const type = text(event["type"]) ?? name
    const [, what, phase = "delta"] = growth.exec(type) ?? []
    if (what !== undefined) return this.#grow(what, event, phase)
    const item = record(event["item"])
    if (/^response\.(?:completed|incomplete|failed|cancelled|done)$/.test(type)) return this.#end(event, type)
    if (type === "response.output_item.added") return this.#begin(item, markOf(event, item))
    const kind = kinds.get(item["type"])
    if (type === "response.output_item.done" && kind !== undefined) {
      return this.#settle(this.#itemOf(kind, markOf(event, item)), item)
    }
    const { id, model } = record(event["response"])
    const isWhole = event["object"] === "response" || Array.isArray(event["output"])
    if (isWhole && !going.test(String(event["status"]))) this.#end({ response: event }, type)
    else this.#answer.identity(id, model)
  }

  // --- items

  /**
   * The item of an event, which begins here if none is known: by its id, else its position, else its call's id, else the last open
   * one that the event does not contradict. Some servers give an item another id in each event.
   */
  #itemOf(kind: Kind, mark: Mark): Item {
    const { at, callID, id } = mark
    const item =
      this.#known(kind, id) ??
      this.#open(kind, (one) => at !== undefined && one.at === at && agree(one.callID, callID)) ??
      this.#open(kind, (one) => callID !== undefined && one.callID === callID) ??
      this.#open(kind, (one) => agree(one.id, id) && agree(one.at, at) && agree(one.callID, callID))
    return note(item ?? this.#newItem(kind), mark)
  }

  #known(kind: Kind, id: string | undefined): Item | undefined {
    return id === undefined ? undefined : this.#items.findLast((item) => item.id === id && item.kind === kind)
  }

  #open(kind: Kind, test: (item: Item) => boolean): Item | undefined {
    return this.#items.findLast((item) => item.kind === kind && !item.done && test(item))
  }

  #newItem(kind: Kind): Item {
    const key = `item_${this.#items.length}`
    const item: Item = {
      key,
      kind,
      id: undefined,
      callID: undefined,
      at: undefined,
      done: false,
      received: new Map(),
      parts: new Map(),
      announced: {}
    }
    this.#items.push(item)
    return item
  }

  #begin(announced: Json, mark: Mark): void {
    const kind = kinds.get(announced["type"])
    if (kind === undefined) return
    const isAgain = (one: Item) => mark.callID !== undefined && one.callID === mark.callID && agree(one.id, mark.id)
    const item = note(this.#known(kind, mark.id) ?? this.#open(kind, isAgain) ?? this.#newItem(kind), mark)
    if (item.done) return
    item.announced = announced
    if (kind === "call") this.#answer.call(item.key, { id: mark.callID ?? mark.id, name: text(announced["name"]) })
    if (kind === "hosted") this.#callHosted(item, announced)
  }

  #grow(what: string, event: Json, phase: string): void {
    const part = record(event["part"])
    const given = event["delta"] ?? event["text"] ?? event["refusal"] ?? part["text"] ?? part["refusal"]
    const words = wordsOf(given) ?? ""
    if (what === "function_call_arguments") {
      const item = this.#itemOf("call", markOf(event, {}))
      if (phase === "done") this.#endInput(item, event["arguments"])
      else this.#receive(item, "input", inputText(event["delta"]))
    } else if (words !== "" || phase === "added") {
      const isThought = what.startsWith("reasoning") || part["type"] === "reasoning_text"
      const item = this.#itemOf(isThought ? "reasoning" : "text", markOf(event, {}))
      const group = what === "reasoning_summary" ? "summary" : "content"
      const index = event["summary_index"] ?? event["content_index"] ?? 0
      if (what === "refusal" || part["type"] === "refusal") this.#answer.refuse()
      this.#receivePart(item, group, index, words, phase)
    }
  }

  /**
   * Receives a text of a part. A part that is not announced goes on where the one before it ended: vLLM gives each piece another
   * position. A whole text may then be that of several parts.
   */
  #receivePart(item: Item, group: string, index: unknown, words: string, phase: string): void {
    const name = `${group} ${String(index)}`
    const key = item.parts.get(name) ?? (phase === "added" ? name : blockOf(item, name, words, phase))
    item.parts.set(name, key)
    this.#receive(item, key, phase === "done" ? restOf(words, item.received.get(key)) : words)
  }

  #receive(item: Item, key: string, piece: string): void {
    if (item.done || piece === "") return
    item.received.set(key, (item.received.get(key) ?? "") + piece)
    if (item.kind === "text" || item.kind === "reasoning") this.#answer.extend(item.kind, `${item.key} ${key}`, piece)
    else this.#answer.call(item.key, { input: piece })
  }

  #settle(item: Item, value: Json): void {
    if (item.done) return
    if (item.kind === "call") this.#settleCall(item, value)
    else if (item.kind === "hosted") this.#settleHosted(item, value)
    else this.#settleBlocks(item, item.kind, value)
    item.done = true
  }

  /** The encrypted content of thinking comes last, and belongs to all its parts. Of two texts of it, the summary is read. */
  #settleBlocks(item: Item, kind: "text" | "reasoning", value: Json): void {
    const from = [...textsIn(value["summary"]), ...textsIn(value["content"])].length > 0 ? value : item.announced
    const group = textsIn(from["summary"]).length > 0 ? "summary" : "content"
    for (const [index, words] of textsIn(from[group]).entries()) {
      this.#receivePart(item, group, index, words, "done")
    }
    if (list(from["content"]).some((part) => record(part)["type"] === "refusal")) this.#answer.refuse()
    const encryptedContent = text(value["encrypted_content"]) ?? text(item.announced["encrypted_content"])
    const phase = text(value["phase"]) ?? text(item.announced["phase"])
    const openai = filled({ itemId: item.id, encryptedContent, phase })
    // Thinking without a text still has to go back.
    const keys = kind === "reasoning" && item.received.size === 0 ? ["content 0"] : item.received.keys()
    for (const key of keys) {
      if (openai !== undefined) this.#answer.extend(kind, `${item.key} ${key}`, "", { openai })
      this.#answer.close(kind, `${item.key} ${key}`)
    }
  }

  // --- calls

  /** The end of a call's input ends the call, if it is known which one it is; else its item does. */
  #endInput(item: Item, input: unknown): void {
    this.#receiveRest(item, input)
    const isKnown = text(item.announced["name"]) !== undefined && item.callID !== undefined
    if (isKnown && this.#answer.isWhole(item.key)) this.#settle(item, {})
  }

  /** Sends what the whole input has and the pieces did not. */
  #receiveRest(item: Item, whole: unknown): void {
    if (!this.#answer.isWhole(item.key))
      this.#receive(item, "input", restOf(inputText(whole), item.received.get("input")))
  }

  #settleCall(item: Item, value: Json): void {
    this.#answer.call(item.key, {
      id: item.callID ?? item.id,
      name: text(value["name"]) ?? text(item.announced["name"]),
      metadata: item.id === undefined ? undefined : { openai: { itemId: item.id } }
    })
    this.#receiveRest(item, inputText(value["arguments"]) === "" ? item.announced["arguments"] : value["arguments"])
    // A call that was cut stays open: the reason of the end decides about it.
    if (value["status"] !== "incomplete") this.#answer.complete(item.key)
  }

  /** A search is called by the name under which it was offered: `web_search_preview`. */
  #callHosted(item: Item, value: Json): string {
    const type = String(value["type"]).replace(/_call$/, "")
    const name = this.#request.tools.find((tool) => tool._tag === "Hosted" && tool.name.startsWith(type))?.name ?? type
    this.#answer.call(item.key, { id: item.id ?? item.key, name, hosted: true })
    return name
  }

  #settleHosted(item: Item, value: Json): void {
    const name = this.#callHosted(item, value)
    const { params, result } = hostedFacts(value)
    this.#answer.complete(item.key, params)
    this.#answer.result(item.id ?? item.key, name, result, value["status"] === "failed")
  }

  // --- the end

  #end(event: Json, type: string): void {
    const response = record(event["response"] ?? event)
    const { error, incomplete_details: details, status } = response
    this.#answer.identity(response["id"], response["model"])
    if (/failed|cancelled/.test(`${type} ${String(status)}`) || text(record(error)["message"]) !== undefined) {
      const { code, message = text(error), type: kind } = record(error)
      return this.#answer.fail({ code: code ?? kind ?? "server_error", message: message ?? "the response failed" })
    }
    this.#settleAll(list(response["output"]).map(record))
    const cut = text(details) ?? record(details)["reason"]
    const isCut = text(cut) !== undefined || type === "response.incomplete" || status === "incomplete"
    // What has no end of its own ends here.
    for (const item of this.#items) if (!isCut && item.kind !== "hosted") this.#settle(item, {})
    this.#answer.usage(usageOf(record(response["usage"])))
    this.#answer.finish(isCut ? (text(cut) ?? "unknown") : "stop")
    this.#answer.end(true)
  }

  /** Takes from the whole output what was not streamed. */
  #settleAll(output: ReadonlyArray<Json>): void {
    const found = output.flatMap((value) => {
      const kind = kinds.get(value["type"])
      return kind === undefined ? [] : [{ value, kind, known: this.#known(kind, text(value["id"])) }]
    })
    const taken = new Set(found.map(({ known }) => known))
    for (const { kind, known, value } of found) {
      const free = this.#items.filter((item) => item.kind === kind && !taken.has(item))
      const item = note(known ?? streamed(free, value) ?? this.#newItem(kind), markOf({}, value))
      taken.add(item)
      this.#settle(item, value)
    }
  }
}

/** The item whose end this is, under another id or none: the one with its call's id, else the one with most of its text. */
const streamed = (items: ReadonlyArray<Item>, value: Json): Item | undefined => {
  const callID = text(value["call_id"])
  const whole = [textsIn(value["content"]).join(""), textsIn(value["summary"]).join(""), inputText(value["arguments"])]
  const fitting = items.filter(
    (item) => agree(item.callID, callID) && whole.some((one) => one.startsWith(receivedOf(item)))
  )
  return (
    items.find((item) => callID !== undefined && item.callID === callID) ??
    fitting.toSorted((a, b) => receivedOf(b).length - receivedOf(a).length)[0]
  )
}

const receivedOf = (item: Item): string => [...item.received.values()].join("")

/** The block of a part that was not announced. */
const blockOf = ({ received }: Item, name: string, words: string, phase: string): string => {
  if (!name.startsWith("content")) return name
  const last = [...received.keys()].findLast((key) => key.startsWith("content"))
  return last !== undefined && (phase === "delta" || received.get(last) === words) ? last : name
}

/** The rest of a whole text after what was received of it; nothing if it is another text. */
const restOf = (whole: string, received = ""): string =>
  whole.startsWith(received) ? whole.slice(received.length) : ""

const textsIn = (parts: unknown): ReadonlyArray<string> =>
  Predicate.isString(parts) ? [parts] : list(parts).map((part) => text(record(part)["refusal"]) ?? wordsOf(part) ?? "")

/** The input and the result of a hosted tool's call, as the tools' schemas describe them. */
const hostedFacts = (value: Json): { readonly params: Json; readonly result: Json } => {
  const { action, code, container_id, outputs, queries, results, status, type } = value
  return {
    params: present({ action: Predicate.isRecord(action) ? actionOf(action) : undefined, code, container_id }),
    result:
      type === "code_interpreter_call"
        ? present({ outputs })
        : present({ status, queries, results: results ?? undefined })
  }
}

/** Newer searches list several queries. */
const actionOf = (action: Json): Json =>
  action["type"] !== "search" || Predicate.isString(action["query"])
    ? action
    : { ...action, query: list(action["queries"]).filter(Predicate.isString).join("; ") }

export const responses: Protocol = {
  path: () => "responses",
  write,
  whole: ["output"],
  read: (answer, request) => {
    const reader = new ResponsesReader(answer, request)
    return (event, name) => reader.event(event, name)
  },
  // The writer turns their results into text: an answer with one goes back without its reasoning.
  takesHosted: () => true,
  makeLower
}
