/**
 * Reads rollouts of Codex: `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, compressed as `.jsonl.zst`, and
 * earlier `sessions/rollout-<day>-<id>.json`. Rollouts are only read. Memory is bounded by the largest accepted record,
 * the prompts' places, and the pieces that wait for an answer to end. Spec: FM-130, FM-150..FM-161 in specs/formats.md.
 */
import { Option, Predicate, Schema } from "effect"
import {
  type AnswerPart,
  type Base,
  type Content,
  type Head,
  type Item,
  type Piece,
  type Spending,
  textOf
} from "../conversation/Conversation.ts"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { LogRecord } from "../lines/JsonLines.ts"
import * as DialectReader from "../reading/DialectReader.ts"
import { type Fold, read as readBytes, readFile } from "../reading/DialectReader.ts"
import { isNothing, nothing, plus, timeOf } from "../reading/Tolerant.ts"
import * as CodexDocument from "./CodexDocument.ts"
import * as CodexRecord from "./CodexRecord.ts"
import {
  askedBy,
  contentOf,
  decode,
  folderOf,
  outputOf,
  type Payload,
  producedOf,
  userMessageOf
} from "./CodexRecord.ts"

// Makes the head of a rollout from its first records.

const Spawned = Schema.Struct({
  subagent: Schema.Struct({ thread_spawn: Schema.Struct({ parent_thread_id: Schema.NonEmptyString }) })
})
const decodeSpawned = Schema.decodeUnknownOption(Spawned)

/** The session that this one forked from, or whose agent started it. */
const parentOf = ({ payload }: CodexRecord.CodexRecord): string | undefined =>
  payload.forked_from_id ??
  payload.parent_thread_id ??
  Option.getOrUndefined(
    Option.map(decodeSpawned(payload.source), ({ subagent }) => subagent.thread_spawn.parent_thread_id)
  )

/** The id and time in a rollout's file name; older names have only the day. */
const named = (name: string | undefined) => {
  const [, date, hours = "00", minutes = "00", seconds = "00", id] =
    /^rollout-(\d{4}-\d\d-\d\d)(?:T(\d\d)-(\d\d)-(\d\d))?-([0-9A-Za-z-]+)$/.exec(name ?? "") ?? []
  return id === undefined ? undefined : { id, time: timeOf(`${date}T${hours}:${minutes}:${seconds}Z`) }
}

/** The folder that a user message names, or false if the record is one after which none is named. */
const folderIn = ({ payload, type }: CodexRecord.CodexRecord): string | false | undefined => {
  if (payload.cwd !== undefined) return payload.cwd
  if (type !== "response_item") return undefined
  return payload.role === "user" ? folderOf(textOf(contentOf(payload.content))) : false
}

/** The head; undefined if a later record may say more. Older headers have no folder: an early message names it. */
const headOf = (early: ReadonlyArray<JsonRecord>, name: string | undefined, last: boolean): Head | undefined => {
  const records = early.map(decode)
  const at = records.findIndex(({ payload, type }) => type === "session_meta" && payload.id !== undefined)
  const header = records[at]
  const fromName = named(name)
  const id = header?.payload.id ?? (last ? fromName?.id : undefined)
  if (id === undefined) return undefined
  const folders = records.map(folderIn)
  const cwd = folders.find(Predicate.isString)
  if (cwd === undefined && !last && !folders.includes(false)) return undefined
  const time = timeOf(header?.payload.timestamp ?? header?.timestamp) ?? fromName?.time
  const parent = header === undefined ? undefined : parentOf(header)
  return {
    _tag: "Head",
    dialect: "codex",
    id,
    ...(cwd === undefined ? {} : { cwd }),
    createdAt: time ?? timeOf(records.find(({ timestamp }) => timestamp !== undefined)?.timestamp) ?? 0,
    ...(parent === undefined || parent === id ? {} : { parent }),
    record: early[at] ?? {}
  }
}

// Reads what a compaction of Codex left visible.

/** Prompts and summaries of the new history; Codex sends its own texts again with each turn. */
const readable = ({ content, role, type }: Payload): ReadonlyArray<string> => {
  if (type !== "message" || (role !== "user" && role !== "assistant")) return []
  const text = textOf(contentOf(content))
  return text === "" || userMessageOf(text).is === "note" ? [] : [text]
}

const leftBy = ({ message, replacement_history = [] }: Payload) => {
  const items = replacement_history.filter(Predicate.isReadonlyRecord).map((item) => decode(item).payload)
  const texts = items.flatMap(readable)
  const own = message === undefined || message === "" || texts.some((text) => text.includes(message)) ? [] : [message]
  return {
    summary: [...texts, ...own].join("\n\n"),
    /** The model read a summary that only its provider can decrypt. */
    encrypted: items.some(({ type }) => type?.includes("compaction") === true)
  }
}

// Tells a prompt from its repetition: a rollout has a person's message as a response item, an event, or both.

/** The kinds of records that have a person's message. */
export type Kind = "message" | "user_message" | "item_completed"

interface PersonMessage {
  readonly text: string
  /** A prompt of several parts: an event lacks the parts that Codex added, such as marks around a picture. */
  readonly isBundle: boolean
  readonly kinds: Set<Kind>
}

/** A person sends few messages before an answer; older ones are forgotten. */
const maxSaid = 16

const isWithin = (text: string, said: PersonMessage): boolean => said.isBundle && said.text.includes(text)

const makeRepeats = () => {
  let earlier: Array<PersonMessage> = []
  return {
    /** Whether a record of another kind has said this since the last answer. */
    isRepeated: (kind: Kind, content: Content) => {
      const shown = textOf(content)
      const said: PersonMessage = {
        text: shown.replace(/\s+/g, ""),
        isBundle: content.length > 1 && userMessageOf(shown).is === "prompt",
        kinds: new Set([kind])
      }
      const same = earlier.find(
        (before) =>
          !before.kinds.has(kind) &&
          (before.text === said.text || isWithin(said.text, before) || isWithin(before.text, said))
      )
      same?.kinds.add(kind)
      if (same === undefined) earlier = [...earlier.slice(1 - maxSaid), said]
      return same !== undefined
    },
    /** The model answers: what comes later repeats nothing from before. */
    answered: () => void (earlier = [])
  }
}

// Folds the records of a rollout into items. Events repeat response items: only usage, interruptions, titles,
// roll-backs and otherwise missing prompts are taken from events.

/** An answer that may grow. */
interface Draft {
  readonly base: Base
  readonly provider: string
  readonly model: string
  readonly parts: Array<AnswerPart>
  spent: Spending
  aborted: boolean
  /** Its request ended: a result or a count of tokens followed. */
  ended: boolean
}

const completed = ({ aborted, base, model, parts, provider, spent }: Draft): Item => ({
  _tag: "Answer",
  ...base,
  provider,
  model,
  parts,
  ...(aborted ? { aborted: true as const } : {}),
  ...(isNothing(spent) ? {} : { spent })
})

class CodexFold implements Fold {
  private readonly usage = CodexRecord.make()
  private readonly repeats = makeRepeats()
  /** What each prompt followed, for roll-backs. */
  private readonly turns: Array<string | null> = []
  private last: string | null = null
  private provider = "openai"
  private model = "unknown"
  private answer: Draft | undefined
  /** The answer that ended with an earlier import; the count of its tokens may follow. */
  private cut: Draft | undefined
  /** What requests without an answer spent. */
  private beside = nothing
  private readonly head: Head
  private time: number
  private readonly outlet: DialectReader.Outlet

  /** The head's time is that of records without a time. `ends`: where earlier imports ended (IM-420). */
  constructor(head: Head, ends?: DialectReader.Ends) {
    this.head = head
    this.time = head.createdAt
    this.outlet = DialectReader.makeOutlet(ends)
  }

  push(record: LogRecord): ReadonlyArray<Piece> {
    const { payload, timestamp, type } = decode(record.value)
    this.time = timeOf(timestamp) ?? this.time
    this.fold(record, type, payload)
    const growing = this.answer
    const pieces = this.outlet.take()
    if (this.answer === undefined && growing !== undefined) this.cut = growing
    return pieces
  }

  end(): ReadonlyArray<Piece> {
    return this.outlet.end("Requests without an answer", this.beside)
  }

  private fold(record: LogRecord, type: string, payload: Payload): void {
    switch (type) {
      case "session_meta":
        return this.session(record, payload)
      case "response_item":
        return this.responseItem(record, payload)
      case "event_msg":
        return this.event(record, payload)
      case "turn_context":
        return this.turnContext(record, payload)
      case "compacted":
        return this.compacted(record, payload)
      case "inter_agent_communication":
        return this.user(record, "agent", contentOf(payload.content))
      case "token_usage_record":
        return this.spend(record, payload)
      default:
        return this.opaque(record)
    }
  }

  // ---- records by type

  private session(record: LogRecord, { model_provider: provider }: Payload): void {
    if (provider !== undefined) this.provider = provider
    if (record.value !== this.head.record) this.opaque(record)
  }

  private responseItem(record: LogRecord, payload: Payload): void {
    if (this.produce(record, payload)) return
    if (payload.type === "message") return this.user(record, payload.role, contentOf(payload.content))
    if (payload.type === "agent_message") return this.user(record, "agent", contentOf(payload.content))
    if (payload.type?.endsWith("_output") === true) return this.settle(record, payload)
    this.opaque(record)
  }

  private event(record: LogRecord, payload: Payload): void {
    switch (payload.type) {
      case "token_count":
        return this.spend(record, payload)
      case "turn_aborted":
        if (this.answer !== undefined) this.answer.aborted = true
        return this.opaque(record)
      case "thread_rolled_back": {
        this.outlet.release()
        const turn = this.turns.splice(-Math.max(1, payload.num_turns ?? 1))[0]
        if (turn !== undefined) this.last = turn
        return this.opaque(record)
      }
      case "thread_name_updated":
        if (payload.thread_name === undefined) return this.opaque(record)
        return this.emit({ _tag: "Title", ...this.baseOf(record), title: payload.thread_name }, record)
      case "user_message":
      case "item_completed":
        return this.user(record, "user", askedBy(payload), payload.type)
      default:
        return this.opaque(record)
    }
  }

  private turnContext(record: LogRecord, { model }: Payload): void {
    this.outlet.release()
    if (model === undefined || model === this.model) return this.opaque(record)
    this.model = model
    this.emit({ _tag: "ModelChange", ...this.baseOf(record), provider: this.provider, model }, record)
  }

  private compacted(record: LogRecord, payload: Payload): void {
    this.outlet.release()
    const base = this.baseOf(record)
    const { encrypted, summary } = leftBy(payload)
    if (encrypted) {
      const details = "Only the provider can read the summary of this compaction; the prompts that it kept are shown."
      this.outlet.report(base.place, "encrypted-summary", details)
    }
    const files = { readFiles: [], modifiedFiles: [] }
    this.emit({ _tag: "Compaction", ...base, summary, firstKept: null, ...files }, record)
  }

  // ---- items

  private user(record: LogRecord, role: string | undefined, content: Content, kind: Kind = "message"): void {
    if (content.length === 0 || (role === "user" && this.repeats.isRepeated(kind, content))) return this.opaque(record)
    this.outlet.release()
    const base = this.baseOf(record)
    const message = role === "user" ? userMessageOf(textOf(content)) : { is: "note" as const }
    if (message.is === "note") return this.emit({ _tag: "Note", ...base, content }, record)
    if (message.is === "prompt") {
      this.turns.push(base.parent)
      this.cut = undefined
      return this.emit({ _tag: "User", ...base, content }, record)
    }
    const { command, exitCode, output } = message
    const exited = exitCode === undefined ? {} : { exitCode }
    this.emit({ _tag: "Command", ...base, command, output, ...exited, cancelled: false, hidden: false }, record)
  }

  /** Adds what a model produced to the growing answer, or starts one. Whether the record has such a thing. */
  private produce(record: LogRecord, payload: Payload): boolean {
    const base = this.baseOf(record)
    const produced = producedOf(payload, base.key)
    if (produced === undefined) return false
    const { parts, result } = produced
    this.repeats.answered()
    if (result === undefined) this.outlet.called(parts)
    if (this.answer === undefined || this.answer.ended) this.start(base, parts, record.text.length)
    else {
      this.answer.parts.push(...parts)
      this.opaque(record)
    }
    if (result !== undefined) {
      this.emit({ _tag: "Result", ...this.baseOf(record), key: `${base.key}#result`, ...result })
    }
    return true
  }

  private start(base: Base, parts: ReadonlyArray<AnswerPart>, sizeBytes: number): void {
    this.outlet.release()
    const { beside: spent, model, provider } = this
    const draft: Draft = { base, provider, model, parts: [...parts], spent, aborted: false, ended: false }
    this.beside = nothing
    this.last = base.key
    this.answer = draft
    this.cut = undefined
    this.outlet.grow(() => {
      this.answer = undefined
      return completed(draft)
    }, sizeBytes)
  }

  private settle(record: LogRecord, payload: Payload): void {
    const base = this.baseOf(record)
    const callID = payload.call_id ?? payload.id ?? base.key
    const tool = this.outlet.toolOf(callID, base.place)
    if (this.answer !== undefined) this.answer.ended = true
    const { content, failed } = outputOf(payload.output ?? payload.tools)
    this.emit({ _tag: "Result", ...base, callID, tool, content, failed }, record)
  }

  /** Adds what was spent to the answer that it was spent for. If that is stored, an answer without parts has it. */
  private spend(record: LogRecord, payload: Payload): void {
    const { answer, cut } = this
    const spent = this.usage.count(payload)
    if (!isNothing(spent) && answer === undefined && cut !== undefined) {
      const late: Draft = { ...cut, base: this.baseOf(record), parts: [], spent, aborted: false }
      this.cut = undefined
      return this.emit(completed(late), record)
    }
    if (answer === undefined) this.beside = plus(this.beside, spent)
    else if (!isNothing(spent)) {
      answer.spent = plus(answer.spent, spent)
      answer.ended = true
    }
    this.opaque(record)
  }

  private opaque(record: LogRecord): void {
    this.emit({ _tag: "Opaque", ...this.baseOf(record) }, record)
  }

  private baseOf({ place, value }: LogRecord): Base {
    return { key: `@${place.offset}`, parent: this.last, time: this.time, place, record: value }
  }

  private emit(item: Item, record?: LogRecord): void {
    this.last = item.key
    this.outlet.emit(item, record?.text.length)
  }
}

/** The types of bare items beside damage; other objects may be parts of a damaged record. */
const bare = /^(?:message|reasoning|function_call|function_call_output|local_shell_call)$/

/** The dialect `codex`. */
export const dialect: DialectReader.DialectReader = {
  isRecord: (value) =>
    (typeof value["type"] === "string" && typeof value["timestamp"] === "string" && "payload" in value) ||
    (typeof value["type"] === "string" && bare.test(value["type"])),
  makeRecords: CodexDocument.makeEither,
  open: (early, name, last) => {
    const head = headOf(early, name, last)
    return head === undefined ? undefined : { head, makeFold: (ends) => new CodexFold(head, ends) }
  }
}

/** Reads the bytes of a rollout; `name` is the name of its file without the ending. */
export const read = (options?: Parameters<typeof readBytes>[1]) => readBytes(dialect, options)

/** Reads a rollout; the file is never changed. */
export const file = readFile(dialect)
