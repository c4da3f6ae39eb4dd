/**
 * The context of an imported session, beside seed 002's `buildSessionContext` of the log. Method: healthy logs of any tree
 * (unique ids, earlier parents, a result after its call); each record that is a message is the leaf once.
 */
import { assert, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer, Runtime } from "effect"
import type { JsonRecord } from "../../../packages/log/src/domain/Json.ts"
import type { Message } from "../../../packages/log/src/domain/Message.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { entryOf } from "../../../packages/formats/src/entry/Entry.ts"
import * as SessionContext from "../../../packages/formats/src/entry/SessionContext.ts"
import { messageIDOf } from "../../../packages/formats/src/import/Drafts.ts"
import { cases } from "../../support/Cases.ts"
import { memoryLog } from "../../support/Database.ts"
import { linesOf } from "../support/EntryTexts.ts"
import { importText } from "../support/RoundTrips.ts"

type Json = JsonRecord
/** What a message shows: its kind, then its texts. */
type Shown = ReadonlyArray<string>

const kinds = [
  "user",
  "answer",
  "called",
  "shell",
  "note",
  "branch",
  "compaction",
  "model",
  "thinking",
  "system",
  "usage",
  "edit"
] as const

/** Records that are no message. */
const silent: ReadonlySet<string> = new Set(["thinking", "system", "usage"])

/**
 * A record of the log, or an answer with its result; `at` chooses its parent, `kept` what a compaction keeps, or what an edit
 * changes: it removes its target, or with `replaces` changes its content.
 */
const unit = fc.record({
  kind: fc.constantFrom(...kinds),
  at: fc.nat(),
  forks: fc.boolean(),
  kept: fc.option(fc.nat()),
  replaces: fc.boolean()
})
type Unit = typeof unit extends fc.Arbitrary<infer A> ? A : never

const time = (n: number) => 1_760_000_000_000 + n * 1_000

interface Log {
  readonly records: ReadonlyArray<Json>
  /** The records that are a leaf, and the record of the message that each belongs to. */
  readonly leaves: ReadonlyArray<readonly [leaf: string, message: string]>
  readonly isLinear: boolean
}

const text = (words: string) => [{ type: "text", text: words }]

const bodyOf = (kind: Unit["kind"], n: number, firstKept: string | undefined): Json => {
  const message = (fields: Json): Json => ({ type: "message", message: { ...fields, timestamp: time(n) } })
  const answer = { role: "assistant", provider: "anthropic", model: "m1", stopReason: "stop" }
  switch (kind) {
    case "user":
      return message({ role: "user", content: text(`prompt ${n}`) })
    case "answer":
      return message({ ...answer, content: text(`answer ${n}`) })
    case "called":
      return message({
        ...answer,
        stopReason: "toolUse",
        content: [...text(`look ${n}`), { type: "toolCall", id: `call_${n}`, name: "bash", arguments: { n } }]
      })
    case "shell":
      return message({
        role: "bashExecution",
        command: `ls ${n}`,
        output: `file ${n}`,
        exitCode: 0,
        cancelled: false,
        truncated: false
      })
    case "note":
      return { type: "custom_message", customType: "extension", content: `note ${n}`, display: true }
    case "branch":
      return { type: "branch_summary", fromId: "root", summary: `branch ${n}` }
    case "compaction":
      return {
        type: "compaction",
        summary: `summary ${n}`,
        tokensBefore: n,
        ...(firstKept === undefined ? {} : { firstKeptEntryId: firstKept })
      }
    case "model":
      return { type: "model_change", provider: "anthropic", modelId: `m${n}` }
    case "thinking":
      return { type: "thinking_level_change", thinkingLevel: "high" }
    case "system":
      return message({ role: "system", content: "", sections: { preamble: `You are ${n}.` } })
    case "usage":
      return { type: "usage", kind: "cache_warm", provider: "p", model: "m", usage: { input: n, output: 0 } }
    case "edit":
      return {}
  }
}

/** The log of these units, under this number. */
const logOf = (units: ReadonlyArray<Unit>, number: number): Log => {
  const records: Array<Json> = []
  const leaves: Array<readonly [string, string]> = []
  const parents = new Map<string, string | null>()
  /** The first record of each unit, by its last one. */
  const firsts = new Map<string, string>()
  const ends: Array<string> = []
  let isLinear = true
  /** The messages of the log, and of their results, that an edit can change. */
  const editable = new Map<string, Unit["kind"] | "result">()
  const add = (id: string, parentId: string | null, fields: Json): void => {
    records.push({ ...fields, id, parentId, timestamp: new Date(time(records.length)).toISOString() })
    parents.set(id, parentId)
  }
  /** The path to a record, without edits: each target once. */
  const targetsOn = (end: string | null): ReadonlyArray<string> => {
    const path: Array<string> = []
    for (let id = end; id !== null; id = parents.get(id) ?? null) if (editable.has(id)) path.push(id)
    return path
  }
  /** The last record that is shown or an edit, and the one before a record. */
  let last: string | undefined
  const shownBefore = (end: string): string | undefined => {
    let id: string | null = end
    while (id !== null && silentIDs.has(id)) id = parents.get(id) ?? null
    return id ?? undefined
  }
  const silentIDs = new Set<string>()
  units.forEach(({ at, forks, kept, kind, replaces }, n) => {
    const parent = ends.length === 0 ? null : forks ? (ends[at % ends.length] ?? null) : (ends.at(-1) ?? null)
    if (parent !== (ends.at(-1) ?? null)) isLinear = false
    const path: Array<string> = []
    for (let end = parent; end !== null; end = parents.get(firsts.get(end) ?? end) ?? null)
      path.push(firsts.get(end) ?? end)
    const firstKept = kept === null || path.length === 0 ? undefined : path[kept % path.length]
    const [id, result] = [`a${n}`, `b${n}`]
    if (kind === "edit") {
      const targets = targetsOn(parent)
      const target = targets[(kept ?? 0) % targets.length]
      if (target === undefined || parent === null) return
      // An answer that is called keeps its call, so that its result stays.
      const called = editable.get(target) === "called"
      const calls = called
        ? [{ type: "toolCall", id: target.replace("a", "call_"), name: "bash", arguments: { n } }]
        : []
      const replacement = replaces ? { content: [...text(`edited ${n}`), ...calls] } : null
      if (called && !replaces) return
      add(id, parent, { type: "context_edit", targetId: target, replacement })
      firsts.set(id, id)
      ends.push(id)
      // An edit directly after a message belongs to the place after it (CP-443).
      const at = leaves.findIndex(([leaf]) => leaf === shownBefore(parent) && leaf === last)
      const message = leaves[at]?.[1]
      last = id
      if (message !== undefined) leaves.splice(at, 1, [id, message])
      return
    }
    add(id, parent, bodyOf(kind, n, firstKept))
    if (kind === "user" || kind === "answer" || kind === "note" || kind === "called") editable.set(id, kind)
    firsts.set(id, id)
    if (silent.has(kind)) silentIDs.add(id)
    else last = kind === "called" ? result : id
    if (kind === "called") {
      const message = {
        role: "toolResult",
        toolCallId: `call_${n}`,
        toolName: "bash",
        content: text(`result ${n}`),
        isError: false
      }
      add(result, id, { type: "message", message: { ...message, timestamp: time(n) } })
      firsts.set(result, id)
      editable.set(result, "result")
      ends.push(result)
      leaves.push([result, id])
    } else {
      ends.push(id)
      if (!silent.has(kind)) leaves.push([id, id])
    }
  })
  const id = `0198c0de-0000-7000-8000-${String(number).padStart(12, "0")}`
  const head = { type: "session", version: 3, id, timestamp: new Date(time(0)).toISOString(), cwd: "/tmp" }
  return { records: [head, ...records], leaves, isLinear }
}

const words = (content: unknown): string =>
  Array.isArray(content)
    ? content.flatMap((part: Json) => (part["type"] === "text" ? [String(part["text"])] : [])).join("\n")
    : String(content)

/** The runtime has its own instructions. */
const withoutSystem = (messages: SessionContext.SessionContext["messages"]) =>
  messages.filter(({ role }) => role !== "system")

/** What the seed's context shows. */
const ofLog = (context: SessionContext.SessionContext): ReadonlyArray<Shown> =>
  withoutSystem(context.messages).map((message: Json): Shown => {
    switch (message["role"]) {
      case "bashExecution":
        return ["shell", String(message["command"]), String(message["output"])]
      case "branchSummary":
      case "compactionSummary":
        return [String(message["role"]), String(message["summary"])]
      default:
        return [String(message["role"]), words(message["content"])]
    }
  })

const removed = "[The result was removed from the context.]"

/** What the runtime shows; changes of agent and model show the model nothing. */
const ofSession = (messages: ReadonlyArray<Message>): ReadonlyArray<Shown> =>
  messages.flatMap((message): ReadonlyArray<Shown> => {
    switch (message.type) {
      case "user":
        return [["user", message.text]]
      case "assistant":
        return [
          ["assistant", message.content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("\n")],
          ...message.content.flatMap((part): ReadonlyArray<Shown> =>
            part.type === "tool" && words(part.content) !== removed ? [["toolResult", words(part.content)]] : []
          )
        ]
      case "shell":
        return [["shell", message.command, message.output ?? ""]]
      case "synthetic":
        return [["custom", message.text]]
      case "branch-summary":
        return [["branchSummary", message.summary]]
      case "compaction":
        return [["compactionSummary", message.summary]]
      case "system":
      case "agent-switched":
      case "model-switched":
        return []
    }
  })

const checked = Effect.fnUntraced(function* (units: ReadonlyArray<Unit>, number: number) {
  const [log, store] = [yield* EventLog, yield* SessionStore]
  const { isLinear, leaves, records } = logOf(units, number)
  const { problems, sessionID } = yield* importText(linesOf(records))
  assert.deepStrictEqual(
    Object.keys(problems).filter((kind) => kind !== "nothing-kept"),
    []
  )
  const entries = records.slice(1).map((record) => entryOf(record))
  if (isLinear) {
    const { models } = SessionContext.build(entries)
    const changed = units.findLast(({ kind }) => kind === "model") !== undefined
    const { model } = yield* store.get(sessionID)
    assert.deepStrictEqual(model?.id, changed ? models["default"]?.modelId : undefined)
  }
  for (const [leaf, record] of leaves) {
    const messageID = messageIDOf(SessionID.make(sessionID), record)
    const place = yield* store.place(sessionID, messageID)
    assert.isDefined(place, record)
    yield* log.append(sessionID, [draft("session.next.leaf.moved", { messageID, path: place?.through ?? [] })])
    const shown = ofSession(yield* store.context(sessionID, -1))
    assert.deepStrictEqual(shown, ofLog(SessionContext.build(entries, leaf)), `leaf ${leaf}`)
  }
})

it.effect("IM-1, IM-8, IM-10: at any leaf, an imported session shows the model what the log's own context holds", () =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime<EventLog | SessionStore>()
    let number = 0
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(fc.array(unit, { minLength: 1, maxLength: 10 }), (units) =>
          Runtime.runPromise(runtime, checked(units, ++number))
        ),
        { numRuns: cases(25) }
      )
    )
  }).pipe(Effect.provide(Layer.provideMerge(layerStore, memoryLog)))
)
