/**
 * Folds the records of a rollout into items. A rollout is a line: each record follows the one before it, except after a
 * roll-back. What a model produced until its next request is one answer. Events repeat what response items say; only
 * usage, interruptions, titles, roll-backs, and prompts that no response item has are taken from them.
 * Spec: FM-150..FM-165 in specs/formats.md.
 */
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { AnswerPart, Content, Head, Item, Place, Spent } from "../conversation/Conversation.ts"
import type { LogRecord } from "../lines/JsonLines.ts"
import type { Fold } from "../reading/DialectReader.ts"
import * as Outlet from "../reading/Outlet.ts"
import { isNothing, nothing, phrase, plus } from "../reading/Spending.ts"
import { timeOf } from "../reading/Tolerant.ts"
import { leftBy } from "./CodexCompaction.ts"
import { askedBy, contentOf, outputOf, textOf } from "./CodexContent.ts"
import { producedOf } from "./CodexModel.ts"
import { userMessageOf } from "./CodexPrompt.ts"
import { decode, type Payload } from "./CodexRecord.ts"
import * as CodexRepeats from "./CodexRepeats.ts"
import * as CodexUsage from "./CodexUsage.ts"

interface Base {
  readonly key: string
  readonly parent: string | null
  readonly time: number
  readonly place: Place
  readonly record: JsonRecord
}

/** An answer that may grow. */
interface Draft {
  readonly base: Base
  readonly provider: string
  readonly model: string
  readonly parts: Array<AnswerPart>
  spent: Spent
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
export const make = (head: Head, ends?: Outlet.Ends): Fold => {
  const outlet = Outlet.make(ends)
  const usage = CodexUsage.make()
  const repeats = CodexRepeats.make()
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

  const report = (place: Place, kind: string, details: string) => outlet.emit({ _tag: "Problem", place, kind, details })

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

  const user = (record: LogRecord, role: string | undefined, content: Content, kind: CodexRepeats.Kind = "message") => {
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
