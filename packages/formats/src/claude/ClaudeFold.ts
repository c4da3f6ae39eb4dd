/**
 * Folds the records of a Claude Code log into items: an API message becomes one answer, a command joins its output, a
 * compact boundary and its summary become a compaction. `ClaudeReader.ts` finds the head and reads files.
 * Spec: FM-132..FM-149 in specs/formats.md.
 */
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { Content, Item, Place } from "../conversation/Conversation.ts"
import * as Outlet from "../reading/Outlet.ts"
import { isNothing, nothing, phrase, plus } from "../reading/Spending.ts"
import { timeOf } from "../reading/Tolerant.ts"
import type { LogRecord } from "../lines/JsonLines.ts"
import type { Fold } from "../reading/DialectReader.ts"
import * as ClaudeAnswer from "./ClaudeAnswer.ts"
import { attachedOf } from "./ClaudeAttachment.ts"
import { blocksOf, contentOf, textOf, type ToolResult } from "./ClaudeContent.ts"
import { type Meaning, meaningOf } from "./ClaudePrompt.ts"
import { type ClaudeRecord, decode } from "./ClaudeRecord.ts"
import * as ClaudeTitles from "./ClaudeTitles.ts"
import * as ClaudeTree from "./ClaudeTree.ts"
import * as ClaudeUsage from "./ClaudeUsage.ts"

interface Base {
  readonly key: string
  readonly parent: string | null
  readonly time: number
  readonly place: Place
  readonly record: JsonRecord
}

/** A record while it is folded. */
interface Current {
  readonly fields: ClaudeRecord
  readonly base: Base
  readonly sizeBytes: number
}

/** A command that waits for its output. */
interface Running {
  readonly base: Base
  readonly command: string
  readonly slash: boolean
  readonly hidden: boolean
  output: string | undefined
}

/** Tools that run a subagent, whose side chain in the same file shows what it spent. */
const isSubagentTool = (name: string): boolean => name === "Task" || name === "Agent"

/** A slash command without output was a prompt: a custom command or a skill, whose text follows as a note. */
const commandItem = ({ base, command, hidden, output, slash }: Running): Item =>
  slash && output === undefined && !hidden
    ? { _tag: "User", ...base, content: [{ type: "text", text: command }] }
    : { _tag: "Command", ...base, command, output: output ?? "", cancelled: false, hidden }

/** A fold of one log. `subagent`: the log is a side chain as a whole. `ends`: where earlier imports ended (IM-420). */
export const make = (subagent: boolean, ends?: Outlet.Ends): Fold => {
  const outlet = Outlet.make(ends)
  const tree = ClaudeTree.make()
  const usage = ClaudeUsage.make()
  const titles = ClaudeTitles.make()
  /** Tools of calls without result yet, by call. */
  const tools = new Map<string, string>()
  let time = 0
  let answer: ClaudeAnswer.Draft | undefined
  /** The answer that ended with an earlier import; further lines of its message continue it. */
  let cut: ClaudeAnswer.Draft | undefined
  let running: Running | undefined
  let boundary: ClaudeRecord["compactMetadata"]
  /** What side chains spent since the last subagent's result. */
  let beside = nothing

  const report = (place: Place, kind: string, details: string) => outlet.emit({ _tag: "Problem", place, kind, details })

  /** A record of a side chain in a session's file. */
  const isAside = (fields: ClaudeRecord): boolean => fields.isSidechain === true && !subagent

  /** The item that a record follows: the one it names, or else the one before it. A parent of null starts a tree. */
  const parentOf = (fields: ClaudeRecord, place: Place): string | null => {
    const wanted = fields.logicalParentUuid ?? fields.parentUuid
    const continues = fields.subtype === "compact_boundary" || fields.isCompactSummary === true
    if (wanted === undefined || isAside(fields) || (wanted === null && continues)) return tree.last()
    if (wanted === null) return null
    const known = tree.after(wanted)
    if (known !== undefined) return known
    report(
      place,
      "missing-parent",
      "The record that this one follows is not in the file; it follows the one before it."
    )
    return tree.last()
  }

  const baseOf = ({ place, value }: LogRecord, fields: ClaudeRecord): Base => {
    const parent = parentOf(fields, place)
    return { key: tree.key(fields.uuid ?? `@${place.offset}`), parent, time, place, record: value }
  }

  /** Emits an item that extends the line which it hangs at. */
  const extend = (item: Item, { fields, sizeBytes }: Current) => {
    tree.extend(item, fields.uuid)
    outlet.emit(item, sizeBytes)
  }

  const opaque = (current: Current) => extend({ _tag: "Opaque", ...current.base }, current)

  /** A base for a further item of the same record; `number` counts its items from 2. */
  const further = (base: Base, number: number): Base => ({
    ...base,
    key: tree.key(`${base.key}#${number}`),
    parent: tree.last()
  })

  /** Emits the results of a record; the first has the record's key, unless the record has an answer too. */
  const settle = (results: ReadonlyArray<ToolResult>, current: Current, after: 0 | 1) => {
    for (const [index, { callID, content, failed }] of results.entries()) {
      const base = index + after === 0 ? current.base : further(current.base, index + after + 1)
      const tool = tools.get(callID)
      if (tool === undefined) report(base.place, "missing-call", `The call of the result ${callID} is not in the file.`)
      tools.delete(callID)
      const spent = isSubagentTool(tool ?? "") && !isNothing(beside) ? { spent: beside } : {}
      if ("spent" in spent) beside = nothing
      extend({ _tag: "Result", ...base, callID, tool: tool ?? "", content, failed, ...spent }, current)
    }
  }

  const start = (draft: ClaudeAnswer.Draft, { fields, sizeBytes }: Current, continues: boolean) => {
    if (continues) tree.extend(draft.base, fields.uuid)
    else tree.add(draft.base, fields.uuid)
    answer = draft
    cut = undefined
    outlet.grow(() => {
      answer = undefined
      return ClaudeAnswer.complete(draft)
    }, sizeBytes)
  }

  /** A further line of a message follows its answer, also if it names what the answer follows. */
  const behind = ({ base: { key } }: ClaudeAnswer.Draft, current: Current): Current => ({
    ...current,
    base: { ...current.base, parent: tree.endOf(key) }
  })

  const assistant = (current: Current) => {
    const { base, fields } = current
    const { message } = fields
    if (message === undefined) return unreadable(current)
    const { parts, results } = blocksOf(message.content, true)
    const spent = usage.count(
      message.id ?? base.key,
      ClaudeAnswer.isSynthetic(fields) ? undefined : message.usage,
      fields.costUSD
    )
    for (const part of parts) if (part.type === "call") tools.set(part.id, part.name)
    if (answer !== undefined && message.id !== undefined && answer.messageID === message.id) {
      ClaudeAnswer.grow(answer, parts, message.stop_reason, spent)
      opaque(behind(answer, current))
    } else {
      outlet.release()
      const before = message.id !== undefined && cut?.messageID === message.id ? cut : undefined
      const own = before === undefined ? current : behind(before, current)
      const draft = ClaudeAnswer.draftOf(own.base, fields, parts, spent, before)
      if (before !== undefined && ClaudeAnswer.isEmpty(draft)) opaque(own)
      else start(draft, own, before !== undefined)
    }
    settle(results, current, 1)
  }

  const prompt = (content: Content, current: Current) => {
    outlet.release()
    cut = undefined
    const item: Item = { _tag: "User", ...current.base, content }
    tree.add(item, current.fields.uuid)
    outlet.emit(item, current.sizeBytes)
  }

  const note = (content: Content, current: Current) => extend({ _tag: "Note", ...current.base, content }, current)

  const run = (command: string, slash: boolean, hidden: boolean, { base, fields, sizeBytes }: Current) => {
    const started: Running = { base, command, slash, hidden, output: undefined }
    tree.add(base, fields.uuid)
    outlet.grow(() => {
      running = undefined
      return commandItem(started)
    }, sizeBytes)
    running = started
  }

  /** Whether the text is a command or its output, and was taken as such. */
  const asCommand = (meaning: Meaning, hidden: boolean, current: Current): boolean => {
    if (meaning.is === "command") run(meaning.command, meaning.slash, hidden, current)
    else if (meaning.is === "output" && running !== undefined) {
      running.output = running.output === undefined ? meaning.output : `${running.output}\n${meaning.output}`
      opaque(current)
    } else return false
    return true
  }

  const compacted = (summary: string, current: Current) => {
    outlet.release()
    const head = boundary?.preservedSegment?.headUuid ?? boundary?.preservedMessages?.uuids?.[0]
    const item: Item = {
      _tag: "Compaction",
      ...current.base,
      summary,
      firstKept: (typeof head === "string" ? tree.find(head) : undefined) ?? null,
      ...(boundary?.preTokens === undefined ? {} : { tokensBefore: boundary.preTokens }),
      readFiles: [],
      modifiedFiles: []
    }
    boundary = undefined
    tree.add(item, current.fields.uuid)
    outlet.emit(item, current.sizeBytes)
  }

  const user = (current: Current) => {
    const { base, fields } = current
    if (fields.message === undefined) return unreadable(current)
    const { rest, results } = blocksOf(fields.message.content, false)
    settle(results, current, 0)
    const content = contentOf(rest)
    if (content.length === 0) return results.length > 0 ? undefined : opaque(current)
    const own: Current = results.length > 0 ? { ...current, base: further(base, results.length + 1) } : current
    const text = textOf(content)
    if (fields.isCompactSummary === true) return compacted(text, own)
    if (fields.isVisibleInTranscriptOnly === true) return opaque(own)
    const meaning = meaningOf(text)
    if (meaning.is === "interruption" && answer !== undefined) answer.aborted = true
    if (fields.isMeta !== true && asCommand(meaning, false, own)) return
    if (results.length === 0) outlet.release()
    return fields.isMeta === true || meaning.is !== "prompt" ? note(content, own) : prompt(content, own)
  }

  const system = (current: Current) => {
    const { compactMetadata, content, subtype } = current.fields
    if (subtype === "compact_boundary") boundary = compactMetadata ?? {}
    const isCommand = subtype === "local_command" && typeof content === "string"
    if (!isCommand || !asCommand(meaningOf(content), true, current)) opaque(current)
  }

  const attachment = (current: Current) => {
    const attached = current.fields.attachment === undefined ? undefined : attachedOf(current.fields.attachment)
    if (attached === undefined || attached.content.length === 0) return opaque(current)
    if (!attached.person) return note(attached.content, current)
    outlet.release()
    return prompt(attached.content, current)
  }

  const unreadable = (current: Current) => {
    report(current.base.place, "unreadable-record", "The record's message cannot be read; it is kept without effect.")
    opaque(current)
  }

  const aside = (current: Current) => {
    const { costUSD, message } = current.fields
    beside = plus(beside, usage.count(message?.id ?? current.base.key, message?.usage, costUSD))
    opaque(current)
  }

  const fold = (current: Current) => {
    const { fields } = current
    if (isAside(fields)) return aside(current)
    if (fields.type === "assistant") return assistant(current)
    if (fields.type === "user") return user(current)
    if (fields.type === "system") return system(current)
    if (fields.type === "attachment") return attachment(current)
    const title = titles.next(fields, tree.has)
    return title === undefined ? opaque(current) : extend({ _tag: "Title", ...current.base, title }, current)
  }

  return {
    push: (record) => {
      const fields = decode(record.value)
      time = timeOf(fields.timestamp) ?? time
      const sizeBytes = record.text.length
      if (fields.uuid !== undefined && tree.has(fields.uuid)) {
        report(record.place, "duplicate-id", `The id ${fields.uuid} occurs again; this record is kept without effect.`)
        const base = baseOf(record, { ...fields, parentUuid: fields.uuid, logicalParentUuid: undefined })
        extend({ _tag: "Opaque", ...base }, { fields: { ...fields, uuid: undefined }, base, sizeBytes })
      } else fold({ fields, base: baseOf(record, fields), sizeBytes })
      const growing = answer
      const pieces = outlet.take()
      if (answer === undefined && growing !== undefined) cut = growing
      return pieces
    },
    end: () => {
      outlet.release()
      if (!isNothing(beside)) {
        const details = `A subagent without a result spent ${phrase(beside)}; they belong to no item.`
        report({ line: 1, offset: 0 }, "unattributed-usage", details)
      }
      return outlet.take()
    }
  }
}
