/**
 * Reads logs of Claude Code: `projects/<folder>/<session>.jsonl`, and the logs of its subagents. The logs are only
 * read. Memory is bounded by the largest accepted line, an index of the records' ids, and the pieces that wait for an
 * answer to end. Spec: FM-130..FM-145 in specs/formats.md.
 */
import { Option } from "effect"
import {
  type Base,
  type Content,
  type Head,
  type Item,
  type Piece,
  type RecordPlace,
  textOf
} from "../conversation/Conversation.ts"
import type { LogRecord } from "../lines/JsonLines.ts"
import * as DialectReader from "../reading/DialectReader.ts"
import { type Fold, read as readBytes, readFile } from "../reading/DialectReader.ts"
import { isNothing, nothing, plus, timeOf } from "../reading/Tolerant.ts"
import {
  attachedOf,
  blocksOf,
  type ClaudeRecord,
  complete,
  contentOf,
  decode,
  type Draft,
  draftOf,
  grow,
  isEmpty,
  isSynthetic,
  makeUsage,
  type ToolResult
} from "./ClaudeRecord.ts"

// Makes the head of a Claude Code log from its first records.

const isUuid = (text: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

/** The log is a subagent's: it consists of a side chain. */
const isSubagent = (first: ClaudeRecord): boolean => first.isSidechain === true

/**
 * The head, from the first record with an id. `name` is the file's name without its ending: a session's file is named
 * after it, and may begin with records of the session that it continues.
 */
const headOf = (first: ClaudeRecord, name: string | undefined): Head | undefined => {
  const own = name !== undefined && isUuid(name) && !isSubagent(first) ? name : undefined
  const session = own ?? first.sessionId
  if (session === undefined) return undefined
  const { agentId, cwd, forkedFrom, gitBranch, sessionId, version } = first
  const id = isSubagent(first) ? `${session}/${agentId ?? name ?? "subagent"}` : session
  const parent = isSubagent(first)
    ? session
    : (forkedFrom?.sessionId ?? (sessionId === session ? undefined : sessionId))
  return {
    _tag: "Head",
    dialect: "claude-code",
    id,
    ...(cwd === undefined ? {} : { cwd }),
    createdAt: timeOf(first.timestamp) ?? 0,
    ...(parent === undefined || parent === id ? {} : { parent }),
    record: JSON.parse(JSON.stringify({ sessionId, agentId, cwd, gitBranch, version }))
  }
}

// Follows the titles of a Claude Code log, which repeats the current one often.

const makeTitles = () => {
  let current: string | undefined
  let byPerson = false
  return {
    /** The title that a record changes; undefined if it changes none. `has`: the log has a record with this uuid. */
    next: ({ aiTitle, customTitle, leafUuid, summary, type }: ClaudeRecord, has: (uuid: string) => boolean) => {
      // Summaries of other sessions occur: the leaf says whose it is.
      const given =
        type === "custom-title"
          ? customTitle
          : type === "ai-title"
            ? aiTitle
            : type === "summary" && leafUuid !== undefined && has(leafUuid)
              ? summary
              : undefined
      if (given === undefined || given === current || (byPerson && type !== "custom-title")) return undefined
      byPerson ||= type === "custom-title"
      current = given
      return given
    }
  }
}

/**
 * Places records in the tree of a log. Claude Code links records by `uuid` and `parentUuid`, but forks where nothing was
 * retried: each result of parallel calls hangs at its own call, and records without a uuid hang nowhere. Here a result, a
 * note or a setting extends the line that it hangs at, so that forks are only where a person or the tool went back.
 * Spec: FM-137 in specs/formats.md.
 */
type TreeItem = { readonly key: string; readonly parent: string | null }

const makeTree = () => {
  const keys = new Map<string, string>()
  const used = new Set<string>()
  /** What extends an item. Each look-up shortens the way, so that all ways stay short. */
  const extensions = new Map<string, string>()
  let last: string | null = null
  const endOf = (key: string): string => {
    let end = key
    for (let next = extensions.get(end); next !== undefined; next = extensions.get(end)) end = next
    for (let at = key; at !== end;) {
      const next = extensions.get(at) ?? end
      extensions.set(at, end)
      at = next
    }
    return end
  }
  const add = ({ key }: TreeItem, uuid?: string) => {
    if (uuid !== undefined) keys.set(uuid, key)
    last = key
  }
  return {
    has: (uuid: string) => keys.has(uuid),
    /** A key that no item has; the same for the same log. */
    key: (wanted: string) => {
      let key = wanted
      for (let number = 2; used.has(key); number++) key = `${wanted}#${number}`
      used.add(key)
      return key
    },
    /** The item that a child of this record follows; undefined if the record is unknown. */
    after: (uuid: string) => {
      const key = keys.get(uuid)
      return key === undefined ? undefined : endOf(key)
    },
    /** The end of the line that an item is on. */
    endOf,
    /** The key of the record's item. */
    find: (uuid: string) => keys.get(uuid),
    /** The end of the line that grew last; null at first. */
    last: () => (last === null ? null : endOf(last)),
    add,
    /** Adds an item; later children of its parent follow it instead. */
    extend: (item: TreeItem, uuid?: string) => {
      if (item.parent !== null) extensions.set(endOf(item.parent), item.key)
      add(item, uuid)
    }
  }
}

// Says what a user record's text is: a person's prompt, a command that a person ran, a command's output, or a text that
// Claude Code added.

/** What a text of a user record means. */
type Meaning =
  | { readonly is: "prompt" }
  | { readonly is: "note" }
  | { readonly is: "interruption" }
  /** A command with its arguments. A slash command may be a prompt: its output or its absence decides. */
  | { readonly is: "command"; readonly command: string; readonly slash: boolean }
  | { readonly is: "output"; readonly output: string }

/** What texts that Claude Code adds start with. */
const added =
  /^(?:<(?:task-notification|system-reminder|local-command-caveat|user-prompt-submit-hook|cross-session-message|teammate-message|channel)[\s>]|Caveat: The messages below)/

/** The text between the first `<name>` and the next `</name>`, in one pass each. */
const inside = (text: string, name: string): Option.Option<string> => {
  const open = text.indexOf(`<${name}>`)
  const start = open + name.length + 2
  const end = open < 0 ? -1 : text.indexOf(`</${name}>`, start)
  return end < 0 ? Option.none() : Option.some(text.slice(start, end))
}

const starts = (text: string, ...names: ReadonlyArray<string>) => names.some((name) => text.startsWith(`<${name}>`))

const joined = (text: string, names: ReadonlyArray<string>): string =>
  names
    .flatMap((name) => Option.toArray(inside(text, name)))
    .filter((part) => part !== "")
    .join("\n")

const meaningOf = (given: string): Meaning => {
  const text = given.trimStart()
  if (text.startsWith("[Request interrupted by user")) return { is: "interruption" }
  if (added.test(text)) return { is: "note" }
  if (starts(text, "bash-input")) {
    return { is: "command", command: Option.getOrElse(inside(text, "bash-input"), () => text), slash: false }
  }
  if (starts(text, "bash-stdout", "bash-stderr")) {
    return { is: "output", output: joined(text, ["bash-stdout", "bash-stderr"]) }
  }
  if (starts(text, "local-command-stdout", "local-command-stderr")) {
    return { is: "output", output: joined(text, ["local-command-stdout", "local-command-stderr"]) }
  }
  const name = starts(text, "command-name", "command-message", "command-args")
    ? inside(text, "command-name")
    : Option.none<string>()
  if (Option.isNone(name)) return { is: "prompt" }
  const words = `${name.value.startsWith("/") ? "" : "/"}${name.value} ${joined(text, ["command-args"])}`
  return { is: "command", command: words.trim(), slash: true }
}

// Folds the records of a Claude Code log into items.

/** A record while it is folded. */
type Current = { readonly fields: ClaudeRecord; readonly base: Base; readonly sizeBytes: number }

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

class ClaudeFold implements Fold {
  private readonly tree = makeTree()
  private readonly usage = makeUsage()
  private readonly titles = makeTitles()
  private time = 0
  private answer: Draft | undefined
  /** The answer that ended with an earlier import; further lines of its message continue it. */
  private cut: Draft | undefined
  private running: Running | undefined
  private boundary: ClaudeRecord["compactMetadata"]
  /** What side chains spent since the last subagent's result. */
  private beside = nothing
  /** The log is a side chain as a whole. */
  private readonly subagent: boolean
  private readonly outlet: DialectReader.Outlet

  /** `ends`: where earlier imports ended (IM-420). */
  constructor(subagent: boolean, ends?: DialectReader.Ends) {
    this.subagent = subagent
    this.outlet = DialectReader.makeOutlet(ends)
  }

  push(record: LogRecord): ReadonlyArray<Piece> {
    const fields = decode(record.value)
    this.time = timeOf(fields.timestamp) ?? this.time
    const sizeBytes = record.text.length
    if (fields.uuid !== undefined && this.tree.has(fields.uuid)) {
      const details = `The id ${fields.uuid} occurs again; this record is kept without effect.`
      this.outlet.report(record.place, "duplicate-id", details)
      const base = this.baseOf(record, { ...fields, parentUuid: fields.uuid, logicalParentUuid: undefined })
      this.opaque({ fields: { ...fields, uuid: undefined }, base, sizeBytes })
    } else this.fold({ fields, base: this.baseOf(record, fields), sizeBytes })
    const growing = this.answer
    const pieces = this.outlet.take()
    if (this.answer === undefined && growing !== undefined) this.cut = growing
    return pieces
  }

  end(): ReadonlyArray<Piece> {
    return this.outlet.end("A subagent without a result", this.beside)
  }

  private fold(current: Current): void {
    const { fields } = current
    if (this.isAside(fields)) return this.aside(current)
    if (fields.type === "assistant") return this.assistant(current)
    if (fields.type === "user") return this.user(current)
    if (fields.type === "system") return this.system(current)
    if (fields.type === "attachment") return this.attachment(current)
    const title = this.titles.next(fields, this.tree.has)
    return title === undefined ? this.opaque(current) : this.extend({ _tag: "Title", ...current.base, title }, current)
  }

  // ---- records by type

  private assistant(current: Current): void {
    const { base, fields } = current
    const { message } = fields
    if (message === undefined) return this.unreadable(current)
    const { parts, results } = blocksOf(message.content, true)
    const used = isSynthetic(fields) ? undefined : message.usage
    const spent = this.usage.count(message.id ?? base.key, used, fields.costUSD)
    this.outlet.called(parts)
    const { answer } = this
    if (answer !== undefined && message.id !== undefined && answer.messageID === message.id) {
      grow(answer, parts, message.stop_reason, spent)
      this.opaque(this.behind(answer, current))
    } else {
      this.outlet.release()
      const before = message.id !== undefined && this.cut?.messageID === message.id ? this.cut : undefined
      const own = before === undefined ? current : this.behind(before, current)
      const draft = draftOf(own.base, fields, parts, spent, before)
      if (before !== undefined && isEmpty(draft)) this.opaque(own)
      else this.start(draft, own, before !== undefined)
    }
    this.settle(results, current, 1)
  }

  private user(current: Current): void {
    const { base, fields } = current
    if (fields.message === undefined) return this.unreadable(current)
    const { rest, results } = blocksOf(fields.message.content, false)
    this.settle(results, current, 0)
    const content = contentOf(rest)
    if (content.length === 0) return results.length > 0 ? undefined : this.opaque(current)
    const own = results.length > 0 ? { ...current, base: this.further(base, results.length + 1) } : current
    const text = textOf(content)
    if (fields.isCompactSummary === true) return this.compacted(text, own)
    if (fields.isVisibleInTranscriptOnly === true) return this.opaque(own)
    const meaning = meaningOf(text)
    if (meaning.is === "interruption" && this.answer !== undefined) this.answer.aborted = true
    if (fields.isMeta !== true && this.asCommand(meaning, false, own)) return
    if (results.length === 0) this.outlet.release()
    return fields.isMeta === true || meaning.is !== "prompt" ? this.note(content, own) : this.prompt(content, own)
  }

  private system(current: Current): void {
    const { compactMetadata, content, subtype } = current.fields
    if (subtype === "compact_boundary") this.boundary = compactMetadata ?? {}
    const isCommand = subtype === "local_command" && typeof content === "string"
    if (!isCommand || !this.asCommand(meaningOf(content), true, current)) this.opaque(current)
  }

  private attachment(current: Current): void {
    const attached = current.fields.attachment === undefined ? undefined : attachedOf(current.fields.attachment)
    if (attached === undefined || attached.content.length === 0) return this.opaque(current)
    if (!attached.person) return this.note(attached.content, current)
    this.outlet.release()
    return this.prompt(attached.content, current)
  }

  private unreadable(current: Current): void {
    const details = "The record's message cannot be read; it is kept without effect."
    this.outlet.report(current.base.place, "unreadable-record", details)
    this.opaque(current)
  }

  /** A record of a side chain in a session's file. */
  private isAside(fields: ClaudeRecord): boolean {
    return fields.isSidechain === true && !this.subagent
  }

  private aside(current: Current): void {
    const { costUSD, message } = current.fields
    this.beside = plus(this.beside, this.usage.count(message?.id ?? current.base.key, message?.usage, costUSD))
    this.opaque(current)
  }

  // ---- items

  private prompt(content: Content, current: Current): void {
    this.outlet.release()
    this.cut = undefined
    this.branch({ _tag: "User", ...current.base, content }, current)
  }

  private note(content: Content, current: Current): void {
    this.extend({ _tag: "Note", ...current.base, content }, current)
  }

  private opaque(current: Current): void {
    this.extend({ _tag: "Opaque", ...current.base }, current)
  }

  private compacted(summary: string, current: Current): void {
    this.outlet.release()
    const { preservedMessages, preservedSegment, preTokens } = this.boundary ?? {}
    const head = preservedSegment?.headUuid ?? preservedMessages?.uuids?.[0]
    this.boundary = undefined
    const item: Item = {
      _tag: "Compaction",
      ...current.base,
      summary,
      firstKept: (typeof head === "string" ? this.tree.find(head) : undefined) ?? null,
      ...(preTokens === undefined ? {} : { tokensBefore: preTokens }),
      readFiles: [],
      modifiedFiles: []
    }
    this.branch(item, current)
  }

  /** Whether the text is a command or its output, and was taken as such. */
  private asCommand(meaning: Meaning, hidden: boolean, current: Current): boolean {
    const { running } = this
    if (meaning.is === "command") this.run(meaning.command, meaning.slash, hidden, current)
    else if (meaning.is === "output" && running !== undefined) {
      running.output = running.output === undefined ? meaning.output : `${running.output}\n${meaning.output}`
      this.opaque(current)
    } else return false
    return true
  }

  private run(command: string, slash: boolean, hidden: boolean, { base, fields, sizeBytes }: Current): void {
    const started: Running = { base, command, slash, hidden, output: undefined }
    this.tree.add(base, fields.uuid)
    this.outlet.grow(() => {
      this.running = undefined
      return commandItem(started)
    }, sizeBytes)
    this.running = started
  }

  private start(draft: Draft, { fields, sizeBytes }: Current, continues: boolean): void {
    if (continues) this.tree.extend(draft.base, fields.uuid)
    else this.tree.add(draft.base, fields.uuid)
    this.answer = draft
    this.cut = undefined
    this.outlet.grow(() => {
      this.answer = undefined
      return complete(draft)
    }, sizeBytes)
  }

  /** Emits the results of a record; the first has the record's key, unless the record has an answer too. */
  private settle(results: ReadonlyArray<ToolResult>, current: Current, after: 0 | 1): void {
    for (const [index, { callID, content, failed }] of results.entries()) {
      const base = index + after === 0 ? current.base : this.further(current.base, index + after + 1)
      const tool = this.outlet.toolOf(callID, base.place)
      const spent = isSubagentTool(tool) && !isNothing(this.beside) ? { spent: this.beside } : {}
      if ("spent" in spent) this.beside = nothing
      this.extend({ _tag: "Result", ...base, callID, tool, content, failed, ...spent }, current)
    }
  }

  // ---- places in the tree

  /** The item that a record follows: the one it names, or else the one before it. A parent of null starts a tree. */
  private parentOf(fields: ClaudeRecord, place: RecordPlace): string | null {
    const wanted = fields.logicalParentUuid ?? fields.parentUuid
    const continues = fields.subtype === "compact_boundary" || fields.isCompactSummary === true
    if (wanted === undefined || this.isAside(fields) || (wanted === null && continues)) return this.tree.last()
    if (wanted === null) return null
    const known = this.tree.after(wanted)
    if (known !== undefined) return known
    const details = "The record that this one follows is not in the file; it follows the one before it."
    this.outlet.report(place, "missing-parent", details)
    return this.tree.last()
  }

  private baseOf({ place, value }: LogRecord, fields: ClaudeRecord): Base {
    const parent = this.parentOf(fields, place)
    return { key: this.tree.key(fields.uuid ?? `@${place.offset}`), parent, time: this.time, place, record: value }
  }

  /** A base for a further item of the same record; `number` counts its items from 2. */
  private further(base: Base, number: number): Base {
    return { ...base, key: this.tree.key(`${base.key}#${number}`), parent: this.tree.last() }
  }

  /** A further line of a message follows its answer, also if it names what the answer follows. */
  private behind({ base: { key } }: Draft, current: Current): Current {
    return { ...current, base: { ...current.base, parent: this.tree.endOf(key) } }
  }

  /** Emits an item that extends the line of its parent. */
  private extend(item: Item, { fields, sizeBytes }: Current): void {
    this.tree.extend(item, fields.uuid)
    this.outlet.emit(item, sizeBytes)
  }

  /** Emits an item beside which others may follow its parent. */
  private branch(item: Item, { fields, sizeBytes }: Current): void {
    this.tree.add(item, fields.uuid)
    this.outlet.emit(item, sizeBytes)
  }
}

/** The dialect `claude-code`. A record with a uuid opens the log, since only those say where the session worked. */
export const dialect: DialectReader.DialectReader = {
  isRecord: (value) =>
    typeof value["type"] === "string" && (typeof value["uuid"] === "string" || typeof value["sessionId"] === "string"),
  open: (early, name, last) => {
    for (const value of last ? early : early.slice(-1)) {
      const fields = decode(value)
      const head = fields.uuid === undefined && !last ? undefined : headOf(fields, name)
      if (head !== undefined) return { head, makeFold: (ends) => new ClaudeFold(isSubagent(fields), ends) }
    }
    return undefined
  }
}

/** Reads the bytes of a log; `name` is the name of its file without the ending. */
export const read = (options?: Parameters<typeof readBytes>[1]) => readBytes(dialect, options)

/** Reads a log; the file is never changed. */
export const file = readFile(dialect)
