/**
 * Reads an answer of the Responses API: items that are announced, grow and end. Servers leave out any of these events, their ids
 * and their positions, so an item is found by whatever tells it, and what was not streamed is taken from the events that hold it
 * whole. Spec: MD-100..MD-106 in specs/models.md.
 *
 *   output_item.added -> *.delta -> *.done -> output_item.done -> response.completed: each of them may be the only one
 */
import type * as Response from "@effect/ai/Response"
import { Predicate } from "effect"
import type { Answer } from "./Answer.ts"
import { defined, type Json, list, record, text } from "./Json.ts"
import type { Reader, WireRequest } from "./Protocol.ts"

type Kind = "message" | "reasoning" | "call" | "hosted"

interface Item {
  readonly key: string
  readonly kind: Kind
  id: string | undefined
  callID: string | undefined
  at: number | undefined
  /** Whether nothing more of it is awaited. */
  done: boolean
  /** The characters received of each block, or of a call's input under `input`. */
  readonly received: Map<string, number>
  /** What its announcement holds: used if no later event does. */
  announced: Json
}

/** What an event tells about its item. */
type Mark = Pick<Item, "id" | "callID" | "at">

const kinds: ReadonlyMap<unknown, Kind> = new Map([
  ["message", "message"],
  ["reasoning", "reasoning"],
  ["function_call", "call"],
  ["web_search_call", "hosted"],
  ["file_search_call", "hosted"],
  ["code_interpreter_call", "hosted"]
])

const kindOf = (item: Json): Kind | undefined => kinds.get(item["type"])

const markOf = (event: Json, item: Json = {}): Mark => ({
  id: text(item["id"]) ?? text(event["item_id"]),
  callID: text(item["call_id"]),
  at: Predicate.isNumber(event["output_index"]) ? event["output_index"] : undefined
})

/** Whether two facts do not contradict each other. */
const agree = (a: unknown, b: unknown): boolean => a === undefined || b === undefined || a === b

const isSaid = (value: unknown): boolean => value !== undefined && value !== null && value !== ""

const ends: ReadonlySet<string> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "response.done"
])

const reasons: Readonly<Record<string, Response.FinishReason>> = {
  max_output_tokens: "length",
  max_tokens: "length",
  length: "length",
  content_filter: "content-filter"
}

export class ResponsesReader implements Reader {
  readonly #answer: Answer
  readonly #request: WireRequest
  readonly #items: Array<Item> = []
  #identified = false
  #refused = false

  constructor(answer: Answer, request: WireRequest) {
    this.#answer = answer
    this.#request = request
  }

  event(event: Json, name: string): void {
    const type = text(event["type"]) ?? name
    const response = record(event["response"])
    if (ends.has(type)) return this.#end(type, Predicate.isRecord(event["response"]) ? response : event)
    this.#identify(response)
    const item = record(event["item"])
    switch (type) {
      case "response.output_item.added":
        return this.#begin(item, markOf(event, item))
      case "response.output_item.done": {
        const kind = kindOf(item)
        return kind === undefined ? undefined : this.#settle(this.#itemOf(kind, markOf(event, item)), item)
      }
      case "response.content_part.done": {
        const part = record(event["part"])
        return part["type"] === "reasoning_text"
          ? this.#think(event, "c", part["text"], true)
          : this.#say(event, part["refusal"] ?? part["text"], true, part["type"] === "refusal")
      }
      case "response.output_text.delta":
        return this.#say(event, event["delta"], false)
      case "response.output_text.done":
        return this.#say(event, event["text"], true)
      case "response.refusal.delta":
        return this.#say(event, event["delta"], false, true)
      case "response.refusal.done":
        return this.#say(event, event["refusal"], true, true)
      case "response.function_call_arguments.delta":
        return this.#input(event)
      case "response.function_call_arguments.done":
        return this.#inputWhole(event)
      case "response.reasoning_summary_part.done":
        return this.#think(event, "s", record(event["part"])["text"], true)
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_summary.delta":
        return this.#think(event, "s", event["delta"], false)
      case "response.reasoning_summary_text.done":
      case "response.reasoning_summary.done":
        return this.#think(event, "s", event["text"], true)
      case "response.reasoning_text.delta":
      case "response.reasoning.delta":
        return this.#think(event, "c", event["delta"], false)
      case "response.reasoning_text.done":
      case "response.reasoning.done":
        return this.#think(event, "c", event["text"], true)
    }
  }

  whole(body: Json): void {
    if (Array.isArray(body["output"])) return this.#end("response.completed", body)
    const message = "the server sent JSON that is not an answer of the Responses API: check its address"
    this.#answer.breakOff({ code: "not_an_answer", message })
  }

  // --- items

  /**
   * The item of an event, which begins here if none is known: by its id, else its position, else its call's id, else the last open
   * one that the event does not contradict. Some servers give an item another id in each event.
   */
  #itemOf(kind: Kind, mark: Mark): Item {
    const item =
      this.#known(kind, mark.id) ??
      this.#open(kind, (one) => mark.at !== undefined && one.at === mark.at && agree(one.callID, mark.callID)) ??
      this.#open(kind, (one) => mark.callID !== undefined && one.callID === mark.callID) ??
      this.#open(kind, (one) => agree(one.id, mark.id) && agree(one.at, mark.at) && agree(one.callID, mark.callID)) ??
      this.#newItem(kind)
    item.id ??= mark.id
    item.callID ??= mark.callID
    item.at ??= mark.at
    return item
  }

  #known(kind: Kind, id: string | undefined): Item | undefined {
    return id === undefined ? undefined : this.#items.findLast((item) => item.id === id && item.kind === kind)
  }

  #open(kind: Kind, test: (item: Item) => boolean): Item | undefined {
    return this.#items.findLast((item) => item.kind === kind && !item.done && test(item))
  }

  #newItem(kind: Kind): Item {
    const item: Item = {
      key: `item_${this.#items.length}`,
      kind,
      id: undefined,
      callID: undefined,
      at: undefined,
      done: false,
      received: new Map(),
      announced: {}
    }
    this.#items.push(item)
    return item
  }

  #begin(announced: Json, mark: Mark): void {
    const kind = kindOf(announced)
    if (kind === undefined) return
    const isAgain = (one: Item) => mark.callID !== undefined && one.callID === mark.callID && agree(one.id, mark.id)
    const item = this.#known(kind, mark.id) ?? this.#open(kind, isAgain) ?? this.#newItem(kind)
    if (item.done) return
    item.id ??= mark.id
    item.callID ??= mark.callID
    item.at ??= mark.at
    item.announced = announced
    if (kind === "call") this.#answer.call(item.key, { id: mark.callID ?? mark.id, name: text(announced["name"]) })
    if (kind === "hosted") this.#callHosted(item, announced)
  }

  /** Takes an item as it is at its end. */
  #settle(item: Item, value: Json): void {
    if (item.done) return
    item.done = true
    switch (item.kind) {
      case "message":
        return this.#settleMessage(item, value)
      case "reasoning":
        return this.#settleReasoning(item, value)
      case "call":
        return this.#settleCall(item, value)
      case "hosted":
        return this.#settleHosted(item, value)
    }
  }

  // --- text

  #say(event: Json, words: unknown, whole: boolean, refusal = false): void {
    if (text(words) === undefined) return
    const item = this.#itemOf("message", markOf(event))
    if (item.done) return
    if (refusal) this.#refused = true
    const key = `${item.key} ${String(event["content_index"] ?? 0)}`
    this.#grow(item, "text", key, String(words), whole)
    if (whole) this.#answer.close("text", key, "", itemMetadata(item))
  }

  #settleMessage(item: Item, value: Json): void {
    const content = list(value["content"]).length > 0 ? value["content"] : item.announced["content"]
    for (const [index, part] of list(content).map(record).entries()) {
      if (part["type"] === "refusal") this.#refused = true
      this.#grow(item, "text", `${item.key} ${index}`, text(part["refusal"] ?? part["text"]) ?? "", true)
    }
    for (const key of item.received.keys()) this.#answer.close("text", key, "", itemMetadata(item))
  }

  /** More of a block, or its whole text, of which the rest is sent. */
  #grow(item: Item, kind: "text" | "reasoning", key: string, words: string, whole: boolean): void {
    const received = item.received.get(key) ?? 0
    const more = whole ? words.slice(received) : words
    if (more === "") return
    item.received.set(key, received + more.length)
    this.#answer.extend(kind, key, more)
  }

  // --- thinking

  #think(event: Json, group: "s" | "c", words: unknown, whole: boolean): void {
    if (text(words) === undefined) return
    const item = this.#itemOf("reasoning", markOf(event))
    if (item.done) return
    const index = event["summary_index"] ?? event["content_index"] ?? 0
    this.#grow(item, "reasoning", `${item.key} ${group}${String(index)}`, String(words), whole)
  }

  /** The encrypted content comes last, and belongs to all parts. A summary says what the text says. */
  #settleReasoning(item: Item, value: Json): void {
    const from = isSaid(value["summary"]) || isSaid(value["content"]) ? value : item.announced
    const groups = { s: list(from["summary"]), c: list(from["content"]) }
    const group = groups.s.length > 0 ? "s" : "c"
    for (const [index, part] of groups[group].entries()) {
      this.#grow(item, "reasoning", `${item.key} ${group}${index}`, text(record(part)["text"]) ?? "", true)
    }
    const encryptedContent = text(value["encrypted_content"]) ?? text(item.announced["encrypted_content"])
    const facts = defined({ itemId: item.id, encryptedContent })
    const metadata = Object.keys(facts).length === 0 ? undefined : { openai: facts }
    // Without a summary its encrypted content still has to go back.
    const keys = item.received.size === 0 ? [item.key] : item.received.keys()
    for (const key of keys) this.#answer.close("reasoning", key, "", metadata)
  }

  // --- calls

  #input(event: Json): void {
    const item = this.#itemOf("call", markOf(event))
    const { delta } = event
    if (item.done || !isSaid(delta)) return
    item.received.set("input", (item.received.get("input") ?? 0) + (Predicate.isString(delta) ? delta.length : 1))
    this.#answer.call(item.key, { input: delta })
  }

  /** The end of a call's input ends the call, if it is known which one it is; else its item does. */
  #inputWhole(event: Json): void {
    const item = this.#itemOf("call", markOf(event))
    if (item.done) return
    const isKnown = text(item.announced["name"]) !== undefined && item.callID !== undefined
    const input = event["arguments"]
    this.#rest(item, input)
    if (isKnown && this.#answer.isWhole(item.key)) this.#settleCall(item, {})
  }

  /** Sends what the whole input has and the pieces did not. */
  #rest(item: Item, whole: unknown): void {
    if (!isSaid(whole) || this.#answer.isWhole(item.key)) return
    const received = item.received.get("input") ?? 0
    const rest = Predicate.isString(whole) ? whole.slice(received) : received === 0 ? whole : undefined
    if (!isSaid(rest)) return
    item.received.set("input", received + (Predicate.isString(rest) ? rest.length : 1))
    this.#answer.call(item.key, { input: rest })
  }

  #settleCall(item: Item, value: Json): void {
    item.done = true
    this.#answer.call(item.key, {
      id: item.callID ?? item.id,
      name: text(value["name"]) ?? text(item.announced["name"]),
      metadata: itemMetadata(item)
    })
    this.#rest(item, isSaid(value["arguments"]) ? value["arguments"] : item.announced["arguments"])
    // A call that was cut stays open: the reason of the end decides about it.
    if (value["status"] !== "incomplete") this.#answer.complete(item.key)
  }

  // --- hosted tools

  #callHosted(item: Item, value: Json): string {
    const type = String(value["type"]).replace(/_call$/, "")
    // A search is called by the name under which it was offered: `web_search_preview`.
    const offered = this.#request.tools.find((tool) => tool._tag === "Hosted" && tool.name.startsWith(type))
    const name = offered?.name ?? type
    this.#answer.call(item.key, { id: item.id ?? item.key, name, hosted: true })
    return name
  }

  #settleHosted(item: Item, value: Json): void {
    const name = this.#callHosted(item, value)
    const { params, result } = hostedFacts(value)
    this.#answer.complete(item.key, params)
    this.#answer.result({ id: item.id ?? item.key, name, result, isFailure: value["status"] === "failed" })
  }

  // --- the end

  #identify(response: Json): void {
    const [id, modelId] = [text(response["id"]), text(response["model"])]
    if (this.#identified || (id ?? modelId) === undefined) return
    this.#identified = true
    this.#answer.identity({ id, modelId })
  }

  #end(type: string, response: Json): void {
    this.#identify(response)
    const { error, status } = response
    if (type === "response.failed" || type === "response.cancelled" || status === "failed" || status === "cancelled") {
      const { code, message, type: kind } = record(error)
      return this.#answer.fail({ code: code ?? kind ?? "server_error", message: message ?? "the response failed" })
    }
    this.#settleAll(list(response["output"]).map(record))
    this.#answer.usage(usageOf(record(response["usage"])))
    const cut = text(record(response["incomplete_details"])["reason"])
    const isCut = cut !== undefined || type === "response.incomplete" || status === "incomplete"
    const reason = isCut ? (reasons[cut ?? ""] ?? "unknown") : "stop"
    if (this.#refused) this.#answer.finish("content-filter", { daybook: { refusal: true } })
    else this.#answer.finish(reason)
    this.#answer.end(true)
  }

  /** Takes from the whole output what was not streamed: an item of another id is the next one of its kind that is not known by id. */
  #settleAll(output: ReadonlyArray<Json>): void {
    const items = output.map((value) => {
      const kind = kindOf(value)
      return { value, kind, item: kind === undefined ? undefined : this.#known(kind, text(value["id"])) }
    })
    const taken = new Set(items.map(({ item }) => item))
    for (const { item: known, kind, value } of items) {
      if (kind === undefined) continue
      const callID = text(value["call_id"])
      const free = this.#items.filter((one) => one.kind === kind && !taken.has(one))
      const item =
        known ??
        free.find((one) => callID !== undefined && one.callID === callID) ??
        free.find((one) => agree(one.callID, callID)) ??
        this.#newItem(kind)
      taken.add(item)
      item.id ??= text(value["id"])
      item.callID ??= callID
      this.#settle(item, value)
    }
  }
}

const itemMetadata = ({ id }: Item) => (id === undefined ? undefined : { openai: { itemId: id } })

/** The input and the result of a hosted tool's call, as the tools' schemas describe them. */
const hostedFacts = (value: Json): { readonly params: Json; readonly result: Json } => {
  const { action, code, container_id, outputs, queries, results, status } = value
  switch (value["type"]) {
    case "web_search_call":
      return { params: { action: actionOf(record(action)) }, result: defined({ status }) }
    case "file_search_call":
      return { params: {}, result: defined({ status, queries, results: results ?? undefined }) }
    default:
      return { params: defined({ code, container_id }), result: defined({ outputs }) }
  }
}

/** Newer answers list several queries. */
const actionOf = (action: Json): Json =>
  action["type"] !== "search" || Predicate.isString(action["query"])
    ? action
    : { ...action, query: list(action["queries"]).filter(Predicate.isString).join("; ") }

const usageOf = (usage: Json) => {
  const details = record(usage["input_tokens_details"])
  return {
    input: usage["input_tokens"] ?? usage["prompt_tokens"],
    output: usage["output_tokens"] ?? usage["completion_tokens"],
    reasoning: record(usage["output_tokens_details"])["reasoning_tokens"],
    cacheRead: details["cached_tokens"],
    cacheWrite: details["cache_write_tokens"]
  }
}
