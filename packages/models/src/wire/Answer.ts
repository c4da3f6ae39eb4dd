/**
 * Builds one answer from the pieces that a protocol's reader finds, in whatever order and form they come: joins what comes in
 * pieces, accepts what comes whole, completes each call once, and ends once. Readers know their protocol; this knows the runtime's
 * parts. Spec: MD-90..MD-96 in specs/models.md.
 *
 *   reader: text / reasoning / call / usage / finish ...  ->  parts: start, delta, end, tool-call, finish | error
 */
import type * as Response from "@effect/ai/Response"
import { Predicate } from "effect"
import { count, objectsIn, parse } from "./Json.ts"

export type Part = Response.StreamPartEncoded
type Metadata = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/**
 * Token counts as a reader finds them. `input` includes what was read from the cache and written to it; `freshInput` does not.
 */
export interface UsageFacts {
  readonly input?: unknown
  readonly freshInput?: unknown
  readonly output?: unknown
  readonly reasoning?: unknown
  readonly cacheRead?: unknown
  readonly cacheWrite?: unknown
}

/** A piece of a call. Fields that are absent or empty say nothing. */
export interface CallPiece {
  readonly id?: string | undefined
  readonly name?: string | undefined
  /** More of its input: text that is appended, or the whole input as a JSON value. */
  readonly input?: unknown
  readonly metadata?: Metadata | undefined
  /** The provider runs the call itself. */
  readonly hosted?: boolean
}

interface Block {
  readonly kind: "text" | "reasoning"
  readonly id: string
  length: number
  metadata: Metadata
}

interface Call {
  id: string
  name: string
  input: string
  /** Whether its start was sent: that needs a name. */
  begun: boolean
  /** Input received before the name. */
  held: string
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

/**
 * A call's input: `{}` for none, the object in a string literal or a code block, of several the last one, else the JSON value; the
 * text itself if it is not JSON.
 */
export const inputOf = (source: string): unknown => {
  if (source.trim() === "" || source.trim() === "null") return {}
  const value = parse(source)
  if (Predicate.isString(value)) {
    const inner = parse(value)
    if (Predicate.isRecord(inner)) return inner
  }
  if (value !== undefined) return value
  const { objects, rest } = objectsIn(source)
  return /^(?:`+(?:json)?\s*)*$/.test(rest) ? (objects.at(-1) ?? source) : source
}

/** Whether a call's input is complete as it stands. */
const isWhole = (source: string): boolean => source.trim() !== "" && Predicate.isRecord(inputOf(source))

export class Answer {
  /** Returns the toolkit's name of a tool that the server calls by another. */
  readonly #ownName: (name: string, hosted: boolean) => string
  readonly #blocks = new Map<string, Block>()
  readonly #ended = new Set<string>()
  readonly #calls = new Map<string, Call>()
  readonly #ids = new Set<string>()
  #parts: Array<Part> = []
  #next = 0
  #reason: Response.FinishReason | undefined
  #metadata: Metadata = {}
  #usage: UsageFacts = {}
  #called = false
  #begun = false
  #over = false
  #broken: Fault | undefined

  constructor(ownName: (name: string, hosted: boolean) => string) {
    this.#ownName = ownName
  }

  /** Whether the answer's end, or an error, was sent: nothing more is read. */
  get over(): boolean {
    return this.#over
  }

  /** Whether the reason of the end is known, so that only usage and the end mark may follow. */
  get finishing(): boolean {
    return this.#reason !== undefined
  }

  /** Whether any part of the answer was read. */
  get begun(): boolean {
    return this.#begun
  }

  /** Why the answer broke off, if it did. */
  get broken(): Fault | undefined {
    return this.#broken
  }

  /** The parts since the last call. */
  take(): ReadonlyArray<Part> {
    const parts = this.#parts
    if (parts.length > 0) this.#parts = []
    return parts
  }

  /** The server's id and model of the answer. */
  identity(facts: { readonly id?: string | undefined; readonly modelId?: string | undefined }): void {
    const given = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
    if (Object.keys(given).length > 0) this.#parts.push({ type: "response-metadata", ...given })
  }

  /** More of a block; the first piece opens it. Metadata of all pieces is sent with its end. */
  extend(kind: Block["kind"], key: string, delta: string, metadata?: Metadata): void {
    if (this.#over || this.#ended.has(`${kind} ${key}`) || (delta === "" && metadata === undefined)) return
    const block = this.#open(kind, key)
    block.metadata = merged(block.metadata, metadata)
    if (delta === "") return
    block.length += delta.length
    this.#parts.push({ type: `${kind}-delta`, id: block.id, delta })
  }

  /** Closes a block. `whole`, if given, is its complete text: what was not received in pieces is sent first. */
  close(kind: Block["kind"], key: string, whole = "", metadata?: Metadata): void {
    const block = this.#blocks.get(`${kind} ${key}`)
    if (block === undefined && (this.#ended.has(`${kind} ${key}`) || (whole === "" && metadata === undefined))) return
    if (whole.length > (block?.length ?? 0)) this.extend(kind, key, whole.slice(block?.length ?? 0))
    if (metadata !== undefined) this.extend(kind, key, "", metadata)
    this.#end(`${kind} ${key}`)
  }

  /** Closes all open blocks of a kind, or all. */
  closeAll(kind?: Block["kind"]): void {
    for (const [key, block] of this.#blocks) if (kind === undefined || block.kind === kind) this.#end(key)
  }

  /** A piece of the call under this key of the reader's; a complete call takes none. */
  call(key: string, piece: CallPiece): void {
    if (this.#over || this.#ended.has(`call ${key}`)) return
    this.#begun = true
    const call = this.#calls.get(key) ?? this.#newCall(key)
    call.metadata = merged(call.metadata, piece.metadata)
    if (piece.hosted === true) call.hosted = true
    if (!call.begun && piece.id !== undefined && piece.id !== "") call.id = piece.id
    if (!call.begun && piece.name !== undefined && piece.name !== call.name) call.name += piece.name
    const input = Predicate.isString(piece.input)
      ? piece.input
      : piece.input === undefined || piece.input === null
        ? ""
        : JSON.stringify(piece.input)
    if (input.trim() !== "") call.mayEnd = /[}"`]\s*$/.test(input.slice(-80))
    if (!call.begun && (call.name === "" || input === "")) call.held += input
    else this.#input(call, input)
  }

  /** Whether the call's input is complete JSON so far. */
  isWhole(key: string): boolean {
    const call = this.#calls.get(key)
    return call?.mayEnd === true && isWhole(call.input + call.held)
  }

  /** Whether the call has an input that may have been cut. */
  isCut(key: string): boolean {
    const call = this.#calls.get(key)
    return call !== undefined && !call.hosted && (call.input + call.held).trim() !== "" && !this.isWhole(key)
  }

  /** Completes the call. `whole`, if given, is its complete input, used if it did not come in pieces. */
  complete(key: string, whole?: unknown): void {
    const call = this.#calls.get(key)
    if (call === undefined || this.#over) return
    if (call.input === "" && call.held === "" && whole !== undefined) this.call(key, { input: whole })
    this.#calls.delete(key)
    this.#ended.add(`call ${key}`)
    this.#begin(call)
    if (!call.hosted) this.#called = true
    this.#parts.push(
      { type: "tool-params-end", id: call.id },
      {
        type: "tool-call",
        id: call.id,
        name: call.name,
        params: inputOf(call.input),
        providerExecuted: call.hosted,
        ...withMetadata(call.metadata)
      }
    )
  }

  /** The keys of calls that are not complete, in order. */
  get openCalls(): ReadonlyArray<string> {
    return [...this.#calls.keys()]
  }

  /** The result of a call that the provider ran. */
  result(facts: {
    readonly id: string
    readonly name: string
    readonly result: unknown
    readonly isFailure: boolean
    readonly metadata?: Metadata
  }): void {
    if (this.#over) return
    this.#parts.push({
      type: "tool-result",
      ...facts,
      name: this.#ownName(facts.name, true),
      providerExecuted: true,
      ...withMetadata(facts.metadata ?? {})
    })
  }

  /** Counts, in any number of reports: the last one of each wins, unless it is zero after others. */
  usage(facts: UsageFacts): void {
    const counted = Object.entries(facts).filter(([, value]) => count(value) !== undefined)
    const known = Object.entries(this.#usage).filter(([, value]) => count(value) !== 0)
    this.#usage = {
      ...Object.fromEntries(counted),
      ...Object.fromEntries(known),
      ...Object.fromEntries(counted.filter(([, value]) => count(value) !== 0))
    }
  }

  /** Why the answer ends. The end itself follows with `end`. A refusal is noted in the metadata (`daybook.refusal`). */
  finish(reason: Response.FinishReason, metadata?: Metadata): void {
    this.#reason = reason
    this.#metadata = merged(this.#metadata, metadata)
  }

  /** An error that the server reports within its answer. Nothing follows it. */
  fail(error: unknown): void {
    if (this.#over) return
    this.#over = true
    this.#parts.push({ type: "error", error })
  }

  /** The answer broke off: what was read of it stays, nothing follows. */
  breakOff(fault: Fault): void {
    if (this.#over) return
    this.#over = true
    this.#broken = fault
  }

  /**
   * The protocol's end mark, or the end of the body. Without a reason the answer is incomplete, unless `marked` says that the mark
   * was there and something was read.
   */
  end(marked: boolean): void {
    if (this.#over) return
    if (this.#reason === undefined && !(marked && this.#begun)) return this.breakOff(incomplete)
    this.closeAll()
    // At the output limit an open call may be cut: then its input is not what the model wanted.
    for (const key of this.openCalls) if (this.#reason !== "length" || this.isWhole(key)) this.complete(key)
    this.#over = true
    const reason = this.#reason ?? "unknown"
    const usage = this.#usage
    const [fresh, output, reasoning] = [count(usage.freshInput), count(usage.output), count(usage.reasoning)]
    const [cacheRead, cacheWrite] = [count(usage.cacheRead), count(usage.cacheWrite)]
    const input = fresh === undefined ? count(usage.input) : fresh + (cacheRead ?? 0) + (cacheWrite ?? 0)
    this.#parts.push({
      type: "finish",
      reason: this.#called && (reason === "stop" || reason === "unknown") ? "tool-calls" : reason,
      usage: {
        inputTokens: input,
        outputTokens: output,
        totalTokens: input === undefined && output === undefined ? undefined : (input ?? 0) + (output ?? 0),
        ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }),
        ...(cacheRead === undefined ? {} : { cachedInputTokens: cacheRead })
      },
      ...withMetadata(
        cacheWrite === undefined || cacheWrite === 0
          ? this.#metadata
          : merged(this.#metadata, { daybook: { cacheWriteTokens: cacheWrite } })
      )
    })
  }

  #open(kind: Block["kind"], key: string): Block {
    this.#begun = true
    const known = this.#blocks.get(`${kind} ${key}`)
    if (known !== undefined) return known
    const block: Block = { kind, id: `${kind}-${this.#next++}`, length: 0, metadata: {} }
    this.#blocks.set(`${kind} ${key}`, block)
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

  #newCall(key: string): Call {
    const call: Call = {
      id: "",
      name: "",
      input: "",
      begun: false,
      held: "",
      mayEnd: false,
      metadata: {},
      hosted: false
    }
    this.#calls.set(key, call)
    return call
  }

  /** Sends the start of a call, under an id that no other call of the answer has. */
  #begin(call: Call): void {
    if (call.begun) return
    call.begun = true
    const base = call.id === "" ? `call_${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}` : call.id
    let id = base
    for (let nth = 2; this.#ids.has(id); nth++) id = `${base}_${nth}`
    this.#ids.add(id)
    call.id = id
    call.name = this.#ownName(call.name === "" ? "unknown" : call.name, call.hosted)
    this.#parts.push({ type: "tool-params-start", id, name: call.name, providerExecuted: call.hosted })
    this.#input(call, call.held)
    call.held = ""
  }

  #input(call: Call, input: string): void {
    this.#begin(call)
    if (input === "") return
    call.input += input
    this.#parts.push({ type: "tool-params-delta", id: call.id, delta: input })
  }
}
