/**
 * Reads an answer of the Responses API: items that are announced, grow and end. Servers leave out any of these events, their ids
 * and their positions, so an item is found by whatever tells it, and what was not streamed is taken from the events that hold it
 * whole. Spec: MD-100..MD-104 in specs/models.md.
 *
 *   output_item.added -> *.delta -> *.done -> output_item.done -> response.completed: each of them may be the only one
 */
import { Predicate } from "effect"
import { type Answer, inputText, usageOf } from "./Answer.ts"
import { defined, filled, type Json, list, record, text, wordsOf } from "./Json.ts"
import type { WireRequest } from "./Protocol.ts"

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

/** `response.output_text.delta`: what grows, and whether the event holds a piece or the whole. */
const growth =
  /^response\.(content|output|refusal|reasoning_summary|reasoning|function_call_arguments)(?:_text|_part)?\.(delta|done)$/

export class ResponsesReader {
  readonly #answer: Answer
  readonly #request: WireRequest
  readonly #items: Array<Item> = []

  constructor(answer: Answer, request: WireRequest) {
    this.#answer = answer
    this.#request = request
  }

  event(event: Json, name: string): void {
    const type = text(event["type"]) ?? name
    const [, what, phase] = growth.exec(type) ?? []
    if (what !== undefined) return this.#grow(what, event, phase === "done")
    const item = record(event["item"])
    if (/^response\.(?:completed|incomplete|failed|cancelled|done)$/.test(type)) return this.#end(event, type)
    if (type === "response.output_item.added") return this.#begin(item, markOf(event, item))
    const kind = kinds.get(item["type"])
    if (type === "response.output_item.done" && kind !== undefined) {
      return this.#settle(this.#itemOf(kind, markOf(event, item)), item)
    }
    const { id, model } = record(event["response"])
    if (event["object"] === "response" || Array.isArray(event["output"])) this.#end({ response: event }, type)
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

  #grow(what: string, event: Json, whole: boolean): void {
    const part = record(event["part"])
    const given = event["delta"] ?? event["text"] ?? event["refusal"] ?? part["text"] ?? part["refusal"]
    const words = wordsOf(given) ?? ""
    if (what === "function_call_arguments") {
      const item = this.#itemOf("call", markOf(event, {}))
      if (whole) this.#endInput(item, event["arguments"])
      else this.#receive(item, "input", inputText(event["delta"]))
    } else if (words !== "") {
      const isThought = what.startsWith("reasoning") || part["type"] === "reasoning_text"
      const item = this.#itemOf(isThought ? "reasoning" : "text", markOf(event, {}))
      const group = what === "reasoning_summary" ? "summary" : "content"
      const key = `${group} ${String(event["summary_index"] ?? event["content_index"] ?? 0)}`
      if (what === "refusal" || part["type"] === "refusal") this.#answer.refuse()
      this.#receive(item, key, whole ? restOf(words, item.received.get(key)) : words)
    }
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
      const key = `${group} ${index}`
      this.#receive(item, key, restOf(words, item.received.get(key)))
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
    const { error, status } = response
    this.#answer.identity(response["id"], response["model"])
    if (/failed|cancelled/.test(`${type} ${String(status)}`)) {
      const { code, message = text(error), type: kind } = record(error)
      return this.#answer.fail({ code: code ?? kind ?? "server_error", message: message ?? "the response failed" })
    }
    this.#settleAll(list(response["output"]).map(record))
    const cut = record(response["incomplete_details"])["reason"]
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

/** The rest of a whole text after what was received of it; nothing if it is another text. */
const restOf = (whole: string, received = ""): string =>
  whole.startsWith(received) ? whole.slice(received.length) : ""

const textsIn = (parts: unknown): ReadonlyArray<string> =>
  Predicate.isString(parts) ? [parts] : list(parts).map((part) => text(record(part)["refusal"]) ?? wordsOf(part) ?? "")

/** The input and the result of a hosted tool's call, as the tools' schemas describe them. */
const hostedFacts = (value: Json): { readonly params: Json; readonly result: Json } => {
  const { action, code, container_id, outputs, queries, results, status, type } = value
  return {
    params: defined({ action: Predicate.isRecord(action) ? actionOf(action) : undefined, code, container_id }),
    result:
      type === "code_interpreter_call"
        ? defined({ outputs })
        : defined({ status, queries, results: results ?? undefined })
  }
}

/** Newer searches list several queries. */
const actionOf = (action: Json): Json =>
  action["type"] !== "search" || Predicate.isString(action["query"])
    ? action
    : { ...action, query: list(action["queries"]).filter(Predicate.isString).join("; ") }
