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
  type RecordPlace,
  type Spending,
  textOf
} from "../conversation/Conversation.ts"
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { LogRecord } from "../lines/JsonLines.ts"
import * as DialectReader from "../reading/DialectReader.ts"
import { type Fold, read as readBytes, readFile } from "../reading/DialectReader.ts"
import { isNothing, nothing, phrase, plus, timeOf } from "../reading/Tolerant.ts"
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

/** A fold of one rollout; the head's time is that of records without a time. `ends`: where earlier imports ended (IM-420). */
const makeFold = (head: Head, ends?: DialectReader.Ends): Fold => {
  const outlet = DialectReader.makeOutlet(ends)
  const usage = CodexRecord.make()
  const repeats = makeRepeats()
  /** Tools of calls without result yet, by call. */
  const tools = new Map<string, string>()
  /** What each prompt followed, for roll-backs. */
  const turns: Array<string | null> = []
  let time = head.createdAt
  let last: string | null = null
  let [provider, model] = ["openai", "unknown"]
  let answer: Draft | undefined
  /** The answer that ended with an earlier import; the count of its tokens may follow. */
  let cut: Draft | undefined
  /** What requests without an answer spent. */
  let beside = nothing

  const report = (place: RecordPlace, kind: string, details: string) =>
    outlet.emit({ _tag: "Problem", place, kind, details })

  const emit = (item: Item, sizeBytes: number) => {
    last = item.key
    outlet.emit(item, sizeBytes)
  }

  const baseOf = ({ place, value }: LogRecord): Base => ({
    key: `@${place.offset}`,
    parent: last,
    time,
    place,
    record: value
  })

  const opaque = (record: LogRecord) => emit({ _tag: "Opaque", ...baseOf(record) }, record.text.length)

  const settle = (base: Base, payload: Payload, { text }: LogRecord) => {
    const callID = payload.call_id ?? payload.id ?? base.key
    const tool = tools.get(callID)
    if (tool === undefined) report(base.place, "missing-call", `The call of the result ${callID} is not in the file.`)
    tools.delete(callID)
    if (answer !== undefined) answer.ended = true
    const { content, failed } = outputOf(payload.output ?? payload.tools)
    emit({ _tag: "Result", ...base, callID, tool: tool ?? "", content, failed }, text.length)
  }

  const start = (base: Base, parts: ReadonlyArray<AnswerPart>, sizeBytes: number) => {
    outlet.release()
    const draft: Draft = { base, provider, model, parts: [...parts], spent: beside, aborted: false, ended: false }
    beside = nothing
    last = base.key
    answer = draft
    cut = undefined
    outlet.grow(() => {
      answer = undefined
      return completed(draft)
    }, sizeBytes)
  }

  const produce = (record: LogRecord, payload: Payload): boolean => {
    const base = baseOf(record)
    const produced = producedOf(payload, base.key)
    if (produced === undefined) return false
    const { parts, result } = produced
    repeats.answered()
    for (const part of parts) if (part.type === "call" && result === undefined) tools.set(part.id, part.name)
    if (answer === undefined || answer.ended) start(base, parts, record.text.length)
    else {
      answer.parts.push(...parts)
      opaque(record)
    }
    if (result !== undefined) {
      emit({ _tag: "Result", ...baseOf(record), key: `${base.key}#result`, ...result }, 0)
    }
    return true
  }

  const user = (record: LogRecord, role: string | undefined, content: Content, kind: Kind = "message") => {
    if (content.length === 0 || (role === "user" && repeats.isRepeated(kind, content))) return opaque(record)
    outlet.release()
    const base = baseOf(record)
    const message = role === "user" ? userMessageOf(textOf(content)) : { is: "note" as const }
    const sizeBytes = record.text.length
    if (message.is === "note") return emit({ _tag: "Note", ...base, content }, sizeBytes)
    if (message.is === "prompt") {
      turns.push(base.parent)
      cut = undefined
      return emit({ _tag: "User", ...base, content }, sizeBytes)
    }
    const { command, exitCode, output } = message
    const exited = exitCode === undefined ? {} : { exitCode }
    emit({ _tag: "Command", ...base, command, output, ...exited, cancelled: false, hidden: false }, sizeBytes)
  }

  const responseItem = (record: LogRecord, payload: Payload) => {
    if (produce(record, payload)) return
    if (payload.type === "message") return user(record, payload.role, contentOf(payload.content))
    if (payload.type === "agent_message") return user(record, "agent", contentOf(payload.content))
    if (payload.type?.endsWith("_output") === true) return settle(baseOf(record), payload, record)
    opaque(record)
  }

  const event = (record: LogRecord, payload: Payload) => {
    switch (payload.type) {
      case "token_count":
        return spend(record, payload)
      case "turn_aborted":
        if (answer !== undefined) answer.aborted = true
        return opaque(record)
      case "thread_rolled_back": {
        outlet.release()
        const turn = turns.splice(-Math.max(1, payload.num_turns ?? 1))[0]
        if (turn !== undefined) last = turn
        return opaque(record)
      }
      case "thread_name_updated":
        if (payload.thread_name === undefined) return opaque(record)
        return emit({ _tag: "Title", ...baseOf(record), title: payload.thread_name }, record.text.length)
      case "user_message":
      case "item_completed":
        return user(record, "user", askedBy(payload), payload.type)
      default:
        return opaque(record)
    }
  }

  /** Adds what was spent to the answer that it was spent for. If that is stored, an answer without parts has it. */
  const spend = (record: LogRecord, payload: Payload) => {
    const spent = usage.count(payload)
    if (!isNothing(spent) && answer === undefined && cut !== undefined) {
      const late: Draft = { ...cut, base: baseOf(record), parts: [], spent, aborted: false }
      cut = undefined
      return emit(completed(late), record.text.length)
    }
    if (answer === undefined) beside = plus(beside, spent)
    else if (!isNothing(spent)) {
      answer.spent = plus(answer.spent, spent)
      answer.ended = true
    }
    opaque(record)
  }

  const turnContext = (record: LogRecord, payload: Payload) => {
    outlet.release()
    if (payload.model === undefined || payload.model === model) return opaque(record)
    model = payload.model
    emit({ _tag: "ModelChange", ...baseOf(record), provider, model }, record.text.length)
  }

  const compacted = (record: LogRecord, payload: Payload) => {
    outlet.release()
    const base = baseOf(record)
    const { encrypted, summary } = leftBy(payload)
    if (encrypted) {
      const details = "Only the provider can read the summary of this compaction; the prompts that it kept are shown."
      report(base.place, "encrypted-summary", details)
    }
    const files = { readFiles: [], modifiedFiles: [] }
    emit({ _tag: "Compaction", ...base, summary, firstKept: null, ...files }, record.text.length)
  }

  const session = (record: LogRecord, payload: Payload) => {
    if (payload.model_provider !== undefined) provider = payload.model_provider
    if (record.value !== head.record) opaque(record)
  }

  const fold = (record: LogRecord, type: string, payload: Payload) => {
    switch (type) {
      case "session_meta":
        return session(record, payload)
      case "response_item":
        return responseItem(record, payload)
      case "event_msg":
        return event(record, payload)
      case "turn_context":
        return turnContext(record, payload)
      case "compacted":
        return compacted(record, payload)
      case "inter_agent_communication":
        return user(record, "agent", contentOf(payload.content))
      case "token_usage_record":
        return spend(record, payload)
      default:
        return opaque(record)
    }
  }

  return {
    push: (record) => {
      const { payload, timestamp, type } = decode(record.value)
      time = timeOf(timestamp) ?? time
      fold(record, type, payload)
      const growing = answer
      const pieces = outlet.take()
      if (answer === undefined && growing !== undefined) cut = growing
      return pieces
    },
    end: () => {
      outlet.release()
      if (!isNothing(beside)) {
        const details = `Requests without an answer spent ${phrase(beside)}; they belong to no item.`
        report({ line: 1, offset: 0 }, "unattributed-usage", details)
      }
      return outlet.take()
    }
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
    return head === undefined ? undefined : { head, makeFold: (ends) => makeFold(head, ends) }
  }
}

/** Reads the bytes of a rollout; `name` is the name of its file without the ending. */
export const read = (options?: Parameters<typeof readBytes>[1]) => readBytes(dialect, options)

/** Reads a rollout; the file is never changed. */
export const file = readFile(dialect)
