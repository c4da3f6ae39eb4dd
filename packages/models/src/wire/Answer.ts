/**
 * Builds one answer from the pieces that a protocol's reader finds, in whatever order and form they come: joins what comes in
 * pieces, accepts what comes whole, completes each call once, and ends once. Readers know their protocol; this knows the runtime's
 * parts. Spec: MD-90..MD-96, MD-784..MD-786 in specs/models.md.
 *
 *   reader: text / reasoning / call / usage / finish ...  ->  parts: start, delta, end, tool-call, finish | error
 */
import type * as Response from "@effect/ai/Response"
import { Predicate } from "effect"
import { present } from "@daybook/log/support/Optional"
import { count, type Json, objectsIn, parse, record, text } from "./Json.ts"
import { type Kind, type Piece, Tags } from "./Tags.ts"

export type Part = Response.StreamPartEncoded
type Metadata = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** Kinds of counts. `input` includes what was read from the cache and written to it; `freshInput` does not. */
const counted = ["input", "freshInput", "output", "reasoning", "cacheRead", "cacheWrite"] as const

export type UsageFacts = { readonly [K in (typeof counted)[number]]?: unknown }

/** The usage of OpenAI's two protocols, and of the servers that follow them. */
export const usageOf = (usage: Json): UsageFacts => {
  const details = record(usage["prompt_tokens_details"] ?? usage["input_tokens_details"])
  const { reasoning_tokens: reasoning } = record(usage["completion_tokens_details"] ?? usage["output_tokens_details"])
  const input = usage["prompt_tokens"] ?? usage["input_tokens"]
  const output = usage["completion_tokens"] ?? usage["output_tokens"]
  // xAI counts thinking beside the output: only the total tells.
  const [said = 0, thought = 0] = [count(output), count(reasoning)]
  const isApart = thought > 0 && count(usage["total_tokens"]) === (count(input) ?? 0) + said + thought
  return {
    input,
    output: isApart ? said + thought : output,
    reasoning,
    cacheRead:
      details["cached_tokens"] ??
      usage["cached_tokens"] ??
      usage["prompt_cache_hit_tokens"] ??
      usage["cache_read_input_tokens"],
    cacheWrite:
      details["cache_write_tokens"] ?? details["cache_creation_tokens"] ?? usage["cache_creation_input_tokens"]
  }
}

/** Why answers end, in the words of all protocols. */
const reasons: ReadonlyArray<readonly [Response.FinishReason, RegExp]> = [
  ["stop", /^(?:stop|end_turn|eos|eos_token|complete|stop_sequence)$/],
  [
    "length",
    /^(?:length|max_tokens|max_(?:output|new|completion)_tokens|model_length|(?:model_)?context_\w+_exceeded)$/
  ],
  ["tool-calls", /^(?:tool_calls|tool_use|function_call)$/],
  ["pause", /^pause_turn$/],
  [
    "content-filter",
    /^(?:content[_-]filter.*|(?:image_)?(?:safety|recitation|prohibited_content)|sensitive|refusal|blocklist|spii|model_armor|guardrail_\w+)$/
  ]
]

/** Reasons that are errors: the server or the model failed, not the request. */
const failed =
  /^(?:error|abort(?:ed)?|cancel+ed|timeout|network_error|engine_overloaded|insufficient_system_resource|load)$/i
const faults: ReadonlyMap<string, string> = new Map([
  ["missing_thought_signature", "the server misses a signature"],
  ["malformed_function_call", "the model wrote a call that the server could not read"],
  ["malformed_response", "the model wrote an answer that the server could not read"],
  ["unexpected_tool_call", "the model called a tool that was not offered"],
  ["too_many_tool_calls", "the model made too many calls in a row"]
])

/** A piece of a call. Fields that are absent or empty say nothing. */
export interface CallPiece {
  readonly id?: string | undefined
  readonly name?: string | undefined
  /** More of its input: text that is appended, or the whole input as a JSON value. */
  readonly input?: unknown
  readonly metadata?: Metadata | undefined
  readonly hosted?: boolean
}

interface Block {
  readonly kind: Kind
  readonly id: string
  metadata: Metadata
}

interface Call {
  id: string
  name: string
  input: string
  /** Whether its start was sent: that needs a name. */
  begun: boolean
  /** Whether the last piece of the input may end it: only then it is read as a whole. */
  mayEnd: boolean
  metadata: Metadata
  hosted: boolean
}

/** Why an answer cannot be used, in a form that `classifyError` reads. */
export interface Fault {
  readonly code: string
  readonly message: string
}

const incomplete: Fault = { code: "incomplete_response", message: "the answer ended before it was complete" }

const merged = (a: Metadata, b: Metadata | undefined): Metadata => {
  if (b === undefined) return a
  const all: Record<string, Readonly<Record<string, unknown>>> = { ...a }
  for (const [key, value] of Object.entries(b)) all[key] = { ...all[key], ...value }
  return all
}

const withMetadata = (metadata: Metadata) => (Object.keys(metadata).length === 0 ? {} : { metadata })

/** The text of an input, or of a piece of one, that may come as a JSON value. */
export const inputText = (input: unknown): string =>
  Predicate.isString(input) ? input : Predicate.isNullable(input) ? "" : JSON.stringify(input)

/**
 * A call's input: `{}` for none; the object in a string literal, a list of its own or a code block; of several the last one. What a
 * template adds after it is not read. Else the JSON value; the text itself if it is not JSON.
 */
const inputOf = (source: string): unknown => {
  if (source.trim() === "" || source.trim() === "null") return {}
  const value = parse(source)
  if (Predicate.isString(value)) {
    const inner = parse(value)
    if (Predicate.isRecord(inner)) return inner
  }
  if (Array.isArray(value) && value.length === 1 && Predicate.isRecord(value[0])) return value[0]
  if (value !== undefined) return value
  const { objects, rest } = objectsIn(source)
  return /^(?:`+(?:json)?|[}\]]|<[/|]?\w+\|?>|\s)*$/.test(rest) ? (objects.at(-1) ?? source) : source
}

/** The input of a call that ended: servers lose its last bracket (SGLang with GLM). */
const endedInput = (source: string): unknown => {
  const input = inputOf(source)
  return Predicate.isString(input) ? (parse(`${input}}`) ?? input) : input
}

export class Answer {
  /** Returns the toolkit's name of a tool that the server calls by another. */
  readonly #ownName: (name: string, hosted: boolean) => string
  readonly #tags: Tags | undefined
  readonly #blocks = new Map<string, Block>()
  readonly #ended = new Set<string>()
  readonly #calls = new Map<string, Call>()
  readonly #ids = new Set<string>()
  #parts: Array<Part> = []
  #next = 0
  /** The open block of `say`. */
  #said: { readonly kind: Kind; readonly key: string } | undefined
  #identified = false
  #refused = false
  #reason: Response.FinishReason | undefined
  readonly #usage: { -readonly [K in keyof UsageFacts]?: number } = {}
  #called = false
  #stray: Fault | undefined
  begun = false
  /** Whether the answer's end, or an error, was sent: nothing more is read. */
  over = false
  broken: Fault | undefined

  /** `tagged`: whether thinking may stand between tags in the text. */
  constructor(ownName: (name: string, hosted: boolean) => string, tagged: boolean) {
    this.#ownName = ownName
    this.#tags = tagged ? new Tags() : undefined
  }

  /** Whether the reason of the end is known, so that only usage and the end mark may follow. */
  get finishing(): boolean {
    return this.#reason !== undefined
  }

  /** What `take` would return. */
  get parts(): ReadonlyArray<Part> {
    return this.#parts
  }

  take(): ReadonlyArray<Part> {
    const parts = this.#parts
    if (parts.length > 0) this.#parts = []
    return parts
  }

  /** The server's id and model of the answer; the first that are known count. */
  identity(id: unknown, modelId: unknown): void {
    if (this.#identified) return
    const given = present({ id: text(id), modelId: text(modelId) })
    if (Object.keys(given).length === 0) return
    this.#identified = true
    this.#parts.push({ type: "response-metadata", ...given })
  }

  /** More of a block; the first piece opens it. Metadata of all pieces is sent with its end. */
  extend(kind: Kind, key: string, delta: string, metadata?: Metadata): void {
    if (kind === "text" && this.#tags !== undefined) this.say(kind, delta, metadata)
    else this.#grow(kind, key, delta, metadata)
  }

  close(kind: Kind, key: string): void {
    if (kind === "text" && this.#tags !== undefined) this.#endSaid()
    else this.#end(`${kind} ${key}`)
  }

  closeAll(): void {
    this.#endSaid()
    for (const key of this.#blocks.keys()) this.#end(key)
  }

  get saying(): Kind | undefined {
    return this.#said?.kind
  }

  /** More words of an answer whose blocks follow each other: another kind ends the open block. */
  say(kind: Kind, words: string, metadata?: Metadata): void {
    if (kind === "text" && words !== "" && this.#tags !== undefined) {
      for (const piece of this.#tags.feed(words)) this.#say(piece)
      if (metadata !== undefined) this.#say({ kind, words: "" }, metadata)
    } else this.#say({ kind, words }, metadata)
  }

  /** A piece of the call under this key of the reader's; a complete call takes none. */
  call(key: string, { hosted = false, id = "", input, metadata, name = "" }: CallPiece): void {
    if (this.over || this.#ended.has(`call ${key}`)) return
    this.begun = true
    const call = this.#calls.get(key) ?? this.#newCall(key)
    const piece = inputText(input)
    call.metadata = merged(call.metadata, metadata)
    call.hosted ||= hosted
    call.input += piece
    if (piece.trim() !== "") call.mayEnd = /[}"`]\s*$/.test(piece.slice(-80))
    if (!call.begun && id !== "") call.id = id
    if (!call.begun && name !== call.name) call.name += name
    if (call.begun || (call.name !== "" && piece !== "")) this.#send(call, piece)
  }

  isWhole(key: string): boolean {
    const { input, mayEnd } = this.#calls.get(key) ?? { input: "", mayEnd: false }
    return mayEnd && input.trim() !== "" && Predicate.isRecord(inputOf(input))
  }

  isCut(key: string): boolean {
    const call = this.#calls.get(key)
    return call !== undefined && !call.hosted && call.input.trim() !== "" && !this.isWhole(key)
  }

  /** Completes the call. `whole`, if given, is its complete input, used if it did not come in pieces. */
  complete(key: string, whole?: unknown): void {
    const call = this.#calls.get(key)
    if (call === undefined || this.over) return
    if (call.input === "" && whole !== undefined) this.call(key, { input: whole })
    this.#calls.delete(key)
    this.#ended.add(`call ${key}`)
    this.#send(call, "")
    const { hosted: providerExecuted, id, input, metadata, name } = call
    if (!providerExecuted) this.#called = true
    this.#parts.push(
      { type: "tool-params-end", id },
      { type: "tool-call", id, name, params: endedInput(input), providerExecuted, ...withMetadata(metadata) }
    )
  }

  get openCalls(): ReadonlyArray<string> {
    return [...this.#calls.keys()]
  }

  result(id: string, name: string, result: unknown, isFailure: boolean): void {
    if (this.over) return
    this.#parts.push({
      type: "tool-result",
      id,
      name: this.#ownName(name, true),
      result,
      isFailure,
      providerExecuted: true
    })
  }

  /** Counts, in any number of reports: the last one of each wins, unless it is zero after others. */
  usage(facts: UsageFacts): void {
    // What the cache served or took is all of the input.
    const isCached = (count(facts.cacheRead) ?? 0) + (count(facts.cacheWrite) ?? 0) > 0
    for (const name of counted) {
      const tokens = count(facts[name])
      const isTrue = name === "freshInput" && isCached
      if (tokens !== undefined) this.#usage[name] = isTrue ? tokens : tokens || (this.#usage[name] ?? 0)
    }
  }

  /** A refusal: the answer ends as filtered, which is noted in the metadata (`daybook.refusal`). */
  refuse(): void {
    this.#refused = true
  }

  /**
   * Why the answer ends, in the server's word; the end itself follows with `end`. A reason that is an error fails the answer, with
   * what else the server says of it. `otherwise` is the reason of a word that is not known.
   */
  finish(word: string, details: Json = {}, otherwise: Response.FinishReason = "unknown"): void {
    const fault = faults.get(word.toLowerCase())
    if (fault !== undefined || failed.test(word)) {
      const message = fault === undefined ? `the server ended the answer with ${word}` : `${fault} (${word})`
      // In the words of `classifyError`: retryable.
      return this.fail({ code: "server_error", message, ...details })
    }
    const known = reasons.find(([, pattern]) => pattern.test(word.toLowerCase()))?.[0] ?? otherwise
    this.#readHeld()
    // A gateway's own end after the server's does not make a cut answer whole.
    const isBad = this.#reason === "length" || this.#reason === "content-filter"
    if (!isBad) this.#reason = this.#refused ? "content-filter" : known
    // At the output limit an open call may be cut: then its input is not what the model wanted.
    for (const key of this.openCalls) if (this.#reason !== "length" || this.isWhole(key)) this.complete(key)
  }

  /** An error that the server reports within its answer. Nothing follows it. */
  fail(error: unknown): void {
    if (this.over) return
    this.over = true
    this.#parts.push({ type: "error", error })
  }

  /** A line that belongs to no answer: why there is none, if nothing else comes. */
  stray(fault: Fault): void {
    this.#stray = fault
  }

  /** The answer broke off: what was read of it stays, nothing follows. */
  breakOff(fault: Fault): void {
    if (this.over) return
    this.over = true
    this.broken = fault
  }

  /**
   * The protocol's end mark, or the end of the body. Without a reason the answer is incomplete, unless `marked` says that the mark
   * was there and something was read.
   */
  end(marked: boolean): void {
    if (this.over) return
    this.#readHeld()
    if (this.#reason === undefined && !(marked && this.begun))
      return this.breakOff((this.begun ? undefined : this.#stray) ?? incomplete)
    this.closeAll()
    const reason = this.#reason ?? "unknown"
    if (reason !== "length") for (const key of this.openCalls) this.complete(key)
    this.over = true
    const { cacheRead, cacheWrite, freshInput, output, reasoning } = this.#usage
    const input = freshInput === undefined ? this.#usage.input : freshInput + (cacheRead ?? 0) + (cacheWrite ?? 0)
    const daybook = present({
      refusal: this.#refused ? true : undefined,
      cacheWriteTokens: cacheWrite === 0 ? undefined : cacheWrite
    })
    this.#parts.push({
      type: "finish",
      reason: this.#called && (reason === "stop" || reason === "unknown") ? "tool-calls" : reason,
      usage: {
        inputTokens: input,
        outputTokens: output,
        totalTokens: input === undefined && output === undefined ? undefined : (input ?? 0) + (output ?? 0),
        ...present({ reasoningTokens: reasoning, cachedInputTokens: cacheRead })
      },
      ...(Object.keys(daybook).length === 0 ? {} : { metadata: { daybook } })
    })
  }

  // --- blocks

  #say({ kind, words }: Piece, metadata?: Metadata): void {
    if (words === "" && metadata === undefined) return
    if (this.#said?.kind !== kind) {
      if (this.#said !== undefined) this.#end(`${this.#said.kind} ${this.#said.key}`)
      this.#said = { kind, key: `said ${this.#next}` }
    }
    this.#grow(kind, this.#said.key, words, metadata)
  }

  /** Gives the text that was held back because a tag might have followed. */
  #readHeld(): void {
    for (const piece of this.#tags?.end() ?? []) this.#say(piece)
  }

  #endSaid(): void {
    this.#readHeld()
    if (this.#said !== undefined) this.#end(`${this.#said.kind} ${this.#said.key}`)
    this.#said = undefined
  }

  #grow(kind: Kind, key: string, delta: string, metadata?: Metadata): void {
    const known = this.#blocks.get(`${kind} ${key}`)
    if (this.over || (delta === "" && metadata === undefined)) return
    const block = known ?? this.#open(kind, `${kind} ${key}`)
    if (block === undefined) return
    block.metadata = merged(block.metadata, metadata)
    if (delta !== "") this.#parts.push({ type: `${kind}-delta`, id: block.id, delta })
  }

  #open(kind: Kind, key: string): Block | undefined {
    if (this.#ended.has(key)) return undefined
    this.begun = true
    const block: Block = { kind, id: `${kind}-${this.#next++}`, metadata: {} }
    this.#blocks.set(key, block)
    this.#parts.push({ type: `${kind}-start`, id: block.id })
    return block
  }

  #end(key: string): void {
    const block = this.#blocks.get(key)
    if (block === undefined) return
    this.#blocks.delete(key)
    this.#ended.add(key)
    this.#parts.push({ type: `${block.kind}-end`, id: block.id, ...withMetadata(block.metadata) })
  }

  // --- calls

  #newCall(key: string): Call {
    const call = { id: "", name: "", input: "", begun: false, mayEnd: false, metadata: {}, hosted: false }
    this.#calls.set(key, call)
    return call
  }

  /** Sends a piece of a call's input; before it the start, under an id that no other call of the answer has, and all input so far. */
  #send(call: Call, piece: string): void {
    const delta = call.begun ? piece : call.input
    if (!call.begun) {
      const base = call.id === "" ? `call_${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}` : call.id
      call.begun = true
      call.id = base
      for (let nth = 2; this.#ids.has(call.id); nth++) call.id = `${base}_${nth}`
      this.#ids.add(call.id)
      call.name = this.#ownName(call.name === "" ? "unknown" : call.name, call.hosted)
      this.#parts.push({ type: "tool-params-start", id: call.id, name: call.name, providerExecuted: call.hosted })
    }
    if (delta !== "") this.#parts.push({ type: "tool-params-delta", id: call.id, delta })
  }
}
