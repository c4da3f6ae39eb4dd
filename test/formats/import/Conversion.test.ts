/** Tests what each kind of record becomes in a session. Spec: IM-2..IM-9, IM-20, IM-40 in specs/formats.md. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { sessionIDOf } from "../../../packages/formats/src/import/Drafts.ts"
import type { Message } from "../../../packages/log/src/domain/Message.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { memoryLog } from "../../support/Database.ts"
import { unique } from "../../support/Logs.ts"
import { linesOf, longRecords } from "../support/EntryTexts.ts"
import { answer, type Bare, call, note, picture, pieces, result, says, user } from "../support/Items.ts"
import { eventsOf, importPieces, importText } from "../support/RoundTrips.ts"

const store = Layer.provideMerge(layerStore, memoryLog)

/** A session with these records. */
const imported = Effect.fnUntraced(function* (records: ReadonlyArray<Bare>) {
  const store = yield* SessionStore
  const report = yield* importPieces(pieces(unique(), records))
  const { items } = yield* store.messages({ sessionID: report.sessionID, limit: 100 })
  return { report, items, session: yield* store.get(report.sessionID), events: yield* eventsOf(report.sessionID) }
})

const at = (record: object, field: string) => String(Object.entries(record).find(([name]) => name === field)?.[1])

type Imported = Effect.Effect.Success<ReturnType<typeof imported>>

const outcomes = ({ events }: Imported) =>
  events.flatMap((event) => (event.type === "session.next.activity.settled" ? [event.data.outcome] : []))

const only = <Type extends Message["type"]>(items: ReadonlyArray<Message>, type: Type) =>
  items.filter((message): message is Extract<Message, { readonly type: Type }> => message.type === type)

it.effect("IM-2: the same log has the same ids in every database; dialects of one family are one log", () =>
  Effect.gen(function* () {
    const log = pieces("one", [user("go"), says("done")])
    const idsIn = Effect.gen(function* () {
      const { sessionID } = yield* importPieces(log)
      const { items } = yield* (yield* SessionStore).messages({ sessionID })
      return [sessionID, ...items.map(({ id }) => id)]
    }).pipe(Effect.provide(Layer.fresh(store)))
    const ids = yield* idsIn
    assert.strictEqual(new Set(ids).size, 3)
    assert.deepStrictEqual(yield* idsIn, ids)
    assert.strictEqual(sessionIDOf("pi", "one"), sessionIDOf("xcsh", "one"))
    assert.strictEqual(sessionIDOf("pi", "one"), sessionIDOf("omp", "one"))
    assert.strictEqual(new Set([sessionIDOf("pi", "one"), sessionIDOf("codex", "one"), ids[0]]).size, 3)
  })
)

it.layer(store)("a record", (it) => {
  it.effect("IM-3: a person's message is a promoted prompt with its pictures, and opens an activity", () =>
    Effect.gen(function* () {
      const found = yield* imported([user("look", [picture]), says("a cat"), user("and now?"), says("a dog")])
      const [first, second] = only(found.items, "user")
      assert.deepInclude(first, { text: "look" })
      assert.deepStrictEqual(
        first?.files?.map(({ mime, uri }) => [mime, uri]),
        [["image/png", `data:image/png;base64,${picture.data}`]]
      )
      assert.deepInclude(second, { text: "and now?" })
      assert.deepStrictEqual(outcomes(found), ["completed", "completed"])
      const types = found.events.map(({ type }) => type)
      for (const type of ["session.next.prompt.admitted", "session.next.prompt.promoted"] as const)
        assert.strictEqual(types.filter((each) => each === type).length, 2)
    })
  )

  it.effect("IM-3: a prompt after an answer with calls joins its activity, which ends as its last answer did", () =>
    Effect.gen(function* () {
      const joined = yield* imported([user("go"), answer([call("c")]), user("wait"), result("c", "x"), says("done")])
      assert.deepStrictEqual(outcomes(joined), ["completed"])
      assert.strictEqual(only(joined.items, "user").length, 2)
      assert.deepStrictEqual(outcomes(yield* imported([user("go"), says("", { error: "overloaded" })])), ["failed"])
      assert.deepStrictEqual(outcomes(yield* imported([user("go"), says("half", { aborted: true })])), ["interrupted"])
    })
  )

  it.effect(
    "IM-4: an answer has its parts in order; a result settles its call, and a call without one stays open",
    () =>
      Effect.gen(function* () {
        const { items } = yield* imported([
          user("go"),
          answer([
            { type: "reasoning", text: "think" },
            { type: "text", text: "I look." },
            call("c1"),
            call("c2"),
            call("c3")
          ]),
          result("c1", "one"),
          result("c2", "no", true)
        ])
        const [message] = only(items, "assistant")
        assert.deepStrictEqual(
          message?.content.map((part) => (part.type === "tool" ? part.state : part.type)),
          ["reasoning", "text", "completed", "error", "running"]
        )
      })
  )

  it.effect("IM-4: an answer that failed is a failed step", () =>
    Effect.gen(function* () {
      const { items } = yield* imported([user("go"), says("", { error: "overloaded" })])
      assert.include(JSON.stringify(only(items, "assistant")[0]?.error), "overloaded")
    })
  )

  it.effect(
    "IM-6: a command is a shell message that says a failed exit code or a cancellation; hidden ones are none",
    () =>
      Effect.gen(function* () {
        const command = { _tag: "Command", command: "make", output: "out", cancelled: false, hidden: false } as const
        const { items } = yield* imported([
          { ...command, exitCode: 0 },
          { ...command, exitCode: 2 },
          { ...command, cancelled: true },
          { ...command, hidden: true },
          { _tag: "Opaque" }
        ])
        assert.deepStrictEqual(
          only(items, "shell").map(({ command, output }) => [command, output]),
          [
            ["make", "out"],
            ["make", "out\n[exit code 2]"],
            ["make", "out\n[cancelled]"]
          ]
        )
        assert.strictEqual(items.length, 3)
      })
  )

  it.effect("IM-7: a note is a synthetic message, and a prompt if it has a picture", () =>
    Effect.gen(function* () {
      const { items } = yield* imported([note("context"), note("see", [picture])])
      assert.deepStrictEqual(
        items.map((message) => [message.type, "text" in message ? message.text : ""]),
        [
          ["synthetic", "context"],
          ["user", "see"]
        ]
      )
    })
  )

  it.effect("IM-9: titles, default models, summaries of branches and labels of messages are those of the session", () =>
    Effect.gen(function* () {
      const { events, items, session } = yield* imported([
        user("go"),
        { _tag: "Title", title: "Shop" },
        { _tag: "ModelChange", provider: "anthropic", model: "small", role: "title" },
        { _tag: "ModelChange", provider: "anthropic", model: "large" },
        { _tag: "BranchSummary", summary: "Tried it." },
        { _tag: "Label", target: "k1", label: "start" },
        { _tag: "Label", target: "k2", label: "no message" }
      ])
      assert.strictEqual(session.title, "Shop")
      assert.deepInclude(session.model, { providerID: "anthropic", id: "large" })
      assert.strictEqual(only(items, "branch-summary")[0]?.summary, "Tried it.")
      const labeled = events.flatMap((event) => (event.type === "session.next.labeled" ? [event.data] : []))
      assert.deepStrictEqual(
        labeled.map(({ label, messageID }) => [messageID, label]),
        [[items[0]?.id, "start"]]
      )
    })
  )
})

it.effect("IM-20: after the events of each record an event names its record, which the model is not shown", () =>
  Effect.gen(function* () {
    const { sessionID } = yield* importText(linesOf(longRecords(3)))
    const keys = longRecords(3).flatMap((record) => (at(record, "type") === "session" ? [] : [at(record, "id")]))
    const events = yield* eventsOf(sessionID)
    const said: Array<string> = []
    let made: Array<string> = []
    for (const event of events) {
      if (event.type !== "session.next.imported") made.push(event.type)
      else if (event.data.record?.key !== undefined) {
        said.push(event.data.record.key)
        if (made.length === 0) assert.isDefined(event.data.record.difference, event.data.record.key)
        made = []
      }
    }
    assert.deepStrictEqual(said, keys)
    const types = (yield* (yield* SessionStore).context(sessionID, -1)).map(({ type }) => String(type))
    assert.notInclude(types, "imported")
  }).pipe(Effect.provide(store))
)

it.effect("IM-40: batches hold whole records, about 1,024 events at most, and end with the progress", () =>
  Effect.gen(function* () {
    const records = longRecords(400)
    let batches = 0
    const { sessionID } = yield* importText(linesOf(records), { progress: () => Effect.sync(() => void batches++) })
    const events = yield* eventsOf(sessionID)
    const ends = events.flatMap((event, at) =>
      event.type === "session.next.imported" && event.data.log !== undefined ? [at] : []
    )
    assert.strictEqual(ends.length, batches)
    assert.isAbove(batches, 1)
    assert.strictEqual(ends.at(-1), events.length - 1)
    const sizes = ends.map((end, at) => end - (at === 0 ? -1 : (ends[at - 1] ?? -1)))
    for (const size of sizes) assert.isAtMost(size, 1_100)
    const done = ends.map((end) => {
      const event = events[end]
      return event?.type === "session.next.imported" ? (event.data.log?.records ?? 0) : 0
    })
    // Each batch has whole records: as many as it says end before it.
    ends.forEach((end, at) => {
      const before = events.slice(0, end).filter((event) => event.type === "session.next.imported" && event.data.record)
      assert.strictEqual(before.length - 1, done[at])
    })
  }).pipe(Effect.provide(store))
)
