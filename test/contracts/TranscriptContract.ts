/**
 * Messages, the shown context and what a dead process left open (IB-11, RQ-4, RQ-34, RQ-45, CP-49, EX-D1, EX-D5,
 * CX-43, TO-91).
 */
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { ActivityID, type MessageID, type SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { TodoItem } from "../../packages/log/src/domain/Values.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import type { MessagesOptions } from "../../packages/log/src/store/Pages.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import type { ReadModel } from "./ReadModel.ts"
import { admitted, begin, call, message, session, step, tokens, unique } from "./Samples.ts"

/** A session that exists. */
const aSession = Effect.gen(function* () {
  const id = session()
  yield* begin(id)
  return id
})

const promoted = (messageID: MessageID, text: string, timeCreated = 1) =>
  draft("session.next.prompt.promoted", { messageID, prompt: { text }, timeCreated })

/** A prompt that is promoted at once; `timeCreated` is the time of its message. */
const say = Effect.fnUntraced(function* (id: SessionID, text: string, timeCreated = 1) {
  const [log, messageID] = [yield* EventLog, message()]
  yield* log.append(id, [admitted(messageID, text), promoted(messageID, text, timeCreated)])
  return messageID
})

const told = (text: string) => draft("session.next.context.updated", { messageID: message(), text })
const note = (text: string) => draft("session.next.synthetic", { messageID: message(), text })
const compacted = (summary: string, firstKeptSeq?: number) =>
  draft("session.next.compaction.ended", {
    messageID: message(),
    reason: "auto",
    text: summary,
    recent: "",
    ...(firstKeptSeq === undefined ? {} : { firstKeptSeq })
  })

const stepEnded = (assistantMessageID: MessageID) =>
  draft("session.next.step.ended", { assistantMessageID, finish: "stop", cost: 1, tokens: tokens(5) })

const succeeded = (assistantMessageID: MessageID, callID: string, structured: Readonly<Record<string, unknown>> = {}) =>
  draft("session.next.tool.success", {
    assistantMessageID,
    callID,
    structured,
    content: [{ type: "text", text: "done" }],
    provider: { executed: false }
  })

/** All pages, one after the other. */
const pages = Effect.fnUntraced(function* (options: MessagesOptions) {
  const store = yield* SessionStore
  const [seqs, sizes]: [Array<number>, Array<number>] = [[], []]
  let cursor = options.cursor
  do {
    const page = yield* store.messages({ ...options, cursor })
    seqs.push(...page.items.map(({ seq }) => seq))
    sizes.push(page.items.length)
    cursor = page.cursor
  } while (cursor !== undefined)
  return { seqs, sizes }
})

/** The texts of the shown messages. */
const shown = Effect.fnUntraced(function* (id: SessionID, baselineSeq = -1) {
  const context = yield* (yield* SessionStore).context(id, baselineSeq)
  return context.map((each) => ("summary" in each ? each.summary : "text" in each ? each.text : each.type))
})

/** Registers the tests of `SessionStore` that read what is in sessions. */
export const transcriptContract = <E>({ layer, name }: ReadModel<SessionStore, E>): void =>
  it.layer(layer)(`transcripts, ${name}`, (it) => {
    it.effect("PR-7: messages come in event order in pages of any size, both ways, with times against it", () =>
      Effect.gen(function* () {
        const [store, id] = [yield* SessionStore, yield* aSession]
        for (let index = 0; index < 7; index++) yield* say(id, `text ${index}`, 100 - index)
        const { items, total } = yield* store.messages({ sessionID: id })
        const seqs = [2, 4, 6, 8, 10, 12, 14]
        assert.strictEqual(total, 7)
        assert.deepStrictEqual(
          items.map((each) => (each.type === "user" ? [each.text, each.seq, each.createdAt] : [])),
          seqs.map((seq, index) => [`text ${index}`, seq, 100 - index])
        )
        for (const limit of [1, 2, 3, 6, 7, 8]) {
          assert.deepStrictEqual((yield* pages({ sessionID: id, limit })).seqs, seqs)
          const down = yield* pages({ sessionID: id, limit, order: "desc" })
          assert.deepStrictEqual(down.seqs, seqs.toReversed())
          assert.strictEqual(down.sizes.length, Math.ceil(7 / limit))
        }
      })
    )

    it.effect("IB-11: a page starts after any sequence number, or before it, and a limit is clamped", () =>
      Effect.gen(function* () {
        const [store, id] = [yield* SessionStore, yield* aSession]
        for (let index = 0; index < 4; index++) yield* say(id, `text ${index}`)
        assert.deepStrictEqual((yield* pages({ sessionID: id, cursor: 5 })).seqs, [6, 8])
        assert.deepStrictEqual((yield* pages({ sessionID: id, cursor: 5, order: "desc" })).seqs, [4, 2])
        const first = yield* store.messages({ sessionID: id, limit: 0 })
        assert.deepStrictEqual([first.items.length, first.total, first.cursor], [1, 4, 2])
        assert.deepStrictEqual(yield* store.messages({ sessionID: session() }), { items: [], total: 0 })
      })
    )

    it.effect("PJ-10: a message has its parts in order, with their settlement", () =>
      Effect.gen(function* () {
        const [store, log, id, messageID] = [yield* SessionStore, yield* EventLog, yield* aSession, message()]
        const assistantMessageID = messageID
        yield* log.append(id, [
          step(messageID),
          draft("session.next.reasoning.started", { assistantMessageID, reasoningID: "r" }),
          draft("session.next.reasoning.ended", { assistantMessageID, reasoningID: "r", text: "thinking" }),
          draft("session.next.text.started", { assistantMessageID, textID: "t" }),
          draft("session.next.text.ended", { assistantMessageID, textID: "t", text: "answer" }),
          ...call({ messageID, callID: "call_1", tool: "read", input: { path: "a" } }),
          succeeded(messageID, "call_1"),
          stepEnded(messageID)
        ])
        const answer = yield* store.message(id, messageID)
        assert.strictEqual(answer?.type, "assistant")
        if (answer?.type !== "assistant") return
        assert.deepInclude(answer, { id: messageID, seq: 1, finish: "stop", cost: 1, tokens: tokens(5) })
        const [reasoning, text, tool] = answer.content
        assert.deepStrictEqual(reasoning, { type: "reasoning", id: "r", text: "thinking" })
        assert.deepStrictEqual(text, { type: "text", id: "t", text: "answer" })
        assert.deepInclude(tool, { type: "tool", id: "call_1", name: "read", state: "completed", input: { path: "a" } })
        assert.deepStrictEqual((yield* store.messages({ sessionID: id })).items, [answer])
      })
    )

    it.effect("EX-D5: one message is found by its session and id from its promotion on", () =>
      Effect.gen(function* () {
        const [store, log, id, other] = [yield* SessionStore, yield* EventLog, yield* aSession, yield* aSession]
        const messageID = message()
        yield* log.append(id, [admitted(messageID, "hello")])
        assert.isUndefined(yield* store.message(id, messageID))
        yield* log.append(id, [promoted(messageID, "hello", 7)])
        const found = yield* store.message(id, messageID)
        assert.deepStrictEqual(found, { type: "user", id: messageID, seq: 2, createdAt: 7, text: "hello" })
        assert.isUndefined(yield* store.message(other, messageID))
      })
    )

    it.effect("EP-10: the context begins at the last completed compaction; the transcript stays complete", () =>
      Effect.gen(function* () {
        const [store, log, id] = [yield* SessionStore, yield* EventLog, yield* aSession]
        yield* say(id, "first")
        assert.deepStrictEqual(yield* shown(id), ["first"])
        yield* log.append(id, [compacted("summary 1"), note("between"), compacted("summary 2"), note("since")])
        assert.deepStrictEqual(yield* shown(id), ["summary 2", "since"])
        const attempt = message()
        yield* log.append(id, [
          draft("session.next.compaction.started", { messageID: attempt, reason: "auto" }),
          draft("session.next.compaction.failed", { messageID: attempt, error: { type: "e", message: "failed" } })
        ])
        assert.deepStrictEqual(yield* shown(id), ["summary 2", "since"])
        assert.strictEqual((yield* store.messages({ sessionID: id })).total, 5)
      })
    )

    it.effect("EP-10: the context has the System messages after the baseline, from before a compaction too", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* aSession]
        yield* log.append(id, [told("in the baseline"), told("later"), note("old"), compacted("summary"), told("now")])
        assert.deepStrictEqual(yield* shown(id, 1), ["later", "summary", "now"])
        assert.deepStrictEqual(yield* shown(id, 5), ["summary"])
      })
    )

    it.effect("CP-49: the prompts that a checkpoint keeps follow it, and nothing else from before it does", () =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, yield* aSession]
        yield* say(id, "answered")
        yield* say(id, "kept")
        yield* log.append(id, [note("reminder"), compacted("summary", 4), note("since")])
        assert.deepStrictEqual(yield* shown(id), ["summary", "kept", "since"])
      })
    )

    it.effect("PJ-7: the rows of the context hold the waiting inputs, and their cursor is the latest event", () =>
      Effect.gen(function* () {
        const [store, log, id, waiting] = [yield* SessionStore, yield* EventLog, yield* aSession, message()]
        const prompt = yield* say(id, "hello")
        yield* log.append(id, [admitted(waiting, "later")])
        const rows = yield* store.contextRows(id, -1)
        assert.strictEqual(rows.cursor, yield* log.latest(id))
        assert.deepStrictEqual(rows.messages.map(Struct.get("id")), [prompt])
        assert.deepStrictEqual(rows.inputs.map((row) => row.id).toSorted(), [prompt, waiting].toSorted())
      })
    )

    it.effect("TU-2: the calls without a result, pending and running, come in order, without those that ended", () =>
      Effect.gen(function* () {
        const [store, log, id, messageID] = [yield* SessionStore, yield* EventLog, yield* aSession, message()]
        const [pending] = call({ messageID, callID: "pending", tool: "read", input: {} })
        const hosted = { executed: true, metadata: { p: { item: "1" } } }
        const [started, ended, called] = call({ messageID, callID: "hosted", tool: "search", input: {} })
        yield* log.append(id, [
          step(messageID),
          draft("session.next.text.started", { assistantMessageID: messageID, textID: "open" }),
          ...call({ messageID, callID: "done", tool: "read", input: {} }),
          ...call({ messageID, callID: "running", tool: "read", input: {} }),
          succeeded(messageID, "done"),
          started,
          ended,
          { ...called, data: { ...called.data, provider: hosted } },
          pending
        ])
        assert.deepStrictEqual(yield* store.unsettledTools(id), [
          { messageID, callID: "running", called: true, executed: false, metadata: undefined },
          { messageID, callID: "hosted", called: true, executed: true, metadata: hosted.metadata },
          { messageID, callID: "pending", called: false, executed: false, metadata: undefined }
        ])
      })
    )

    it.effect("EX-D1: a step is open until it ends or fails", () =>
      Effect.gen(function* () {
        const [store, log, id] = [yield* SessionStore, yield* EventLog, yield* aSession]
        const [first, second] = [message(), message()]
        const open = Effect.map(store.openStep(id), (found) => found?.id)
        assert.isUndefined(yield* open)
        yield* log.append(id, [step(first)])
        assert.strictEqual(yield* open, first)
        yield* log.append(id, [stepEnded(first)])
        assert.isUndefined(yield* open)
        yield* log.append(id, [step(second), note("later")])
        assert.strictEqual(yield* open, second)
        const error = { type: "process.ended", message: "the process ended" }
        yield* log.append(id, [draft("session.next.step.failed", { assistantMessageID: second, error })])
        assert.isUndefined(yield* open)
      })
    )

    it.effect("RQ-34: the step at an event is the last one at or before it, with the frames up to it", () =>
      Effect.gen(function* () {
        const [store, log, id] = [yield* SessionStore, yield* EventLog, yield* aSession]
        const [first, second] = [message(), message()]
        const framed = (hash: string) => draft("session.next.request.framed", { hash, system: [hash], baselineSeq: 0 })
        yield* log.append(id, [framed("one"), step(first), stepEnded(first), framed("two"), step(second)])
        const stepAt = (at: number) =>
          Effect.map(store.stepAt(id, at), (found) => found && [found.message.id, found.framed.map(({ seq }) => seq)])
        assert.isUndefined(yield* stepAt(1))
        assert.deepStrictEqual(yield* stepAt(2), [first, [1]])
        assert.deepStrictEqual(yield* stepAt(4), [first, [1]])
        assert.deepStrictEqual(yield* stepAt(5), [second, [1, 4]])
      })
    )

    it.effect(
      "RQ-34: the context at an event starts at the last checkpoint before it, with inputs promoted since",
      () =>
        Effect.gen(function* () {
          const [store, log, id, waiting] = [yield* SessionStore, yield* EventLog, yield* aSession, message()]
          const kept = yield* say(id, "kept")
          yield* log.append(id, [told("told"), admitted(waiting, "later"), compacted("summary", 2)])
          yield* log.append(id, [promoted(waiting, "later"), compacted("summary 2")])
          const idsAt = (before: number, baselineSeq: number) =>
            Effect.map(store.contextAt(id, { baselineSeq, before }), ({ from, inputs, ...start }) => ({
              from,
              told: start.told.map(({ seq }) => seq),
              kept: start.kept.map((row) => row.id),
              inputs: inputs.map((row) => [row.id, row.promoted_seq])
            }))
          assert.deepStrictEqual(yield* idsAt(5, -1), { from: 0, told: [], kept: [], inputs: [] })
          const first = { from: 5, kept: [kept], inputs: [[kept, 2]] }
          assert.deepStrictEqual(yield* idsAt(6, -1), { ...first, told: [3] })
          assert.deepStrictEqual(yield* idsAt(7, 3), {
            ...first,
            told: [],
            inputs: [
              [kept, 2],
              [waiting, null]
            ]
          })
          assert.deepStrictEqual(yield* idsAt(8, 3), { from: 7, told: [], kept: [], inputs: [] })
        })
    )

    it.effect("RQ-45: a resume continues the work of the last activity, and a later steer does not", () =>
      Effect.gen(function* () {
        const [store, log, id, messageID] = [yield* SessionStore, yield* EventLog, yield* aSession, message()]
        const prompt = { text: "hello", tools: { bash: false } }
        const activityID = ActivityID.make(`act_${unique()}`)
        const nothing = { wishes: {}, opening: [] }
        const resume = store.continued(id, { trigger: "resume", admittedSeq: undefined })
        yield* log.append(id, [
          draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" }),
          draft("session.next.activity.started", { activityID, trigger: "steer" }),
          draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 1 }),
          draft("session.next.activity.settled", { activityID, outcome: "interrupted" })
        ])
        const work = { wishes: { tools: prompt.tools }, opening: [messageID] }
        assert.deepStrictEqual(yield* resume, work)
        assert.deepStrictEqual(yield* store.continued(id, { trigger: "steer", admittedSeq: 3 }), work)
        assert.deepStrictEqual(yield* store.continued(id, { trigger: "steer", admittedSeq: 5 }), nothing)
        assert.deepStrictEqual(yield* store.continued(id, { trigger: "queue", admittedSeq: undefined }), nothing)
      })
    )

    it.effect("CX-43: instruction files come in order of discovery, each once, up to the limit", () =>
      Effect.gen(function* () {
        const [store, log, id] = [yield* SessionStore, yield* EventLog, yield* aSession]
        assert.deepStrictEqual(yield* store.instructionFiles(id, 10), [])
        const found = (...paths: ReadonlyArray<string>) => draft("session.next.instructions.discovered", { paths })
        yield* log.append(id, [found("/work/z/AGENTS.md"), found("/work/a/AGENTS.md", "/work/m/AGENTS.md")])
        yield* log.append(id, [found("/work/z/AGENTS.md"), found("/work/b/AGENTS.md")])
        const files = ["z", "a", "m", "b"].map((each) => `/work/${each}/AGENTS.md`)
        assert.deepStrictEqual(yield* store.instructionFiles(id, 10), files)
        assert.deepStrictEqual(yield* store.instructionFiles(id, 2), files.slice(0, 2))
      })
    )

    it.effect("TO-91: the todo list is the last successful result that says `changed`, in the order of the calls", () =>
      Effect.gen(function* () {
        const [store, log, id, messageID] = [yield* SessionStore, yield* EventLog, yield* aSession, message()]
        const list = (text: string): ReadonlyArray<TodoItem> => [{ text, status: "pending" }]
        assert.deepStrictEqual(yield* store.todos(id), [])
        const asked = ["first", "second", "read"]
        yield* log.append(id, [
          step(messageID),
          ...asked.flatMap((callID) => call({ messageID, callID, tool: "todo", input: {} })),
          succeeded(messageID, "second", { items: list("second"), changed: true }),
          succeeded(messageID, "first", { items: list("first"), changed: true }),
          succeeded(messageID, "read", { items: list("read"), changed: false })
        ])
        assert.deepStrictEqual(yield* store.todos(id), list("second"))
      })
    )
  })
