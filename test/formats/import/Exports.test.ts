/** Tests what an export writes of sessions without records of the format, holds in memory, and reports. Spec: IM-31..IM-33. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import * as EntryReader from "../../../packages/formats/src/entry/EntryReader.ts"
import { entryLines } from "../../../packages/formats/src/export/EntryExport.ts"
import type { MessageID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { layerStore } from "../../../packages/log/src/Store.ts"
import { memoryLog } from "../../support/Database.ts"
import { created, message, session, unique } from "../../support/Logs.ts"
import { answer, call, head, itemsOf, note, pieces, result, says, user } from "../support/Items.ts"
import { pathBriefs, piecesOf, briefs } from "../support/Pieces.ts"
import { eventsOf, exported, importPieces } from "../support/RoundTrips.ts"

const read = (text: string) => piecesOf((bytes) => Stream.orDie(EntryReader.fromBytes()(bytes)), Buffer.from(text))

it.layer(Layer.provideMerge(layerStore, memoryLog))("an export", (it) => {
  it.effect("IM-31: a session of another dialect is written from its events, with its branches", () =>
    Effect.gen(function* () {
      const { sessionID } = yield* importPieces(
        pieces(unique(), [
          user("go"),
          answer([{ type: "reasoning", text: "think" }, { type: "text", text: "I look." }, call("c1")]),
          result("c1", "files"),
          says("done"),
          { _tag: "Command", command: "make", output: "out", cancelled: false, hidden: false },
          note("context"),
          { _tag: "ModelChange", provider: "anthropic", model: "large" },
          { _tag: "Title", title: "Shop" },
          { ...user("another way"), parent: "k4" },
          says("also done"),
          { _tag: "Label", target: "k1", label: "start" },
          { _tag: "Compaction", summary: "So far.", firstKept: "k9", readFiles: [], modifiedFiles: [] }
        ])
      )
      const { text } = yield* exported(sessionID, "pi")
      const found = read(text)
      assert.deepStrictEqual(briefs(found), [
        "User: go",
        'Answer: reasoning think | text I look. | bash({"command":"ls"})',
        "Result c1 bash: files",
        "Answer: text done",
        "Command: make -> out",
        "Note: context",
        "ModelChange: anthropic/large",
        "Title: Shop",
        "User: another way",
        "Answer: text also done",
        "Label",
        "Compaction: So far."
      ])
      assert.deepStrictEqual(pathBriefs(found), [
        "User: go",
        'Answer: reasoning think | text I look. | bash({"command":"ls"})',
        "Result c1 bash: files",
        "Answer: text done",
        "User: another way",
        "Answer: text also done",
        "Label",
        "Compaction: So far."
      ])
    })
  )

  it.effect("IM-32: a line is written before the events of later records are read", () =>
    Effect.gen(function* () {
      const { sessionID } = yield* importPieces(
        pieces(
          unique(),
          Array.from({ length: 200 }, () => user("again"))
        )
      )
      const events = yield* eventsOf(sessionID)
      const reading = yield* (yield* SessionStore).get(sessionID)
      let [read, lines, furthest] = [0, 0, 0]
      const counted = Stream.fromIterable(events).pipe(
        Stream.rechunk(1),
        Stream.tap(() => Effect.sync(() => void read++))
      )
      yield* Stream.runForEach(
        Stream.rechunk(
          entryLines(reading, "pi", counted, () => undefined),
          1
        ),
        () =>
          Effect.sync(() => {
            lines += 1
            const expected = (events.length / 200) * lines
            furthest = Math.max(furthest, read - expected)
          })
      )
      assert.isAbove(lines, 200)
      assert.isBelow(furthest, events.length / 10)
    })
  )

  it.effect(
    "IM-424: if the session's leaf is not the last record, one that shows the model nothing follows the leaf",
    () =>
      Effect.gen(function* () {
        const [log, id, first] = [yield* EventLog, session(), message()]
        const said = (messageID: MessageID, text: string) => draft("session.next.synthetic", { messageID, text })
        yield* log.append(id, [created, said(first, "one"), said(message(), "two")])
        const before = yield* exported(id, "pi")
        assert.deepStrictEqual(pathBriefs(read(before.text)), ["Note: one", "Note: two"])
        yield* log.append(id, [draft("session.next.leaf.moved", { messageID: first, path: [[0, 1]] })])
        const after = yield* exported(id, "pi")
        assert.isTrue(after.text.startsWith(before.text))
        assert.deepStrictEqual(pathBriefs(read(after.text)), ["Note: one"])
        yield* log.append(id, [draft("session.next.leaf.moved", { path: [] })])
        assert.deepStrictEqual(pathBriefs(read((yield* exported(id, "pi")).text)), [])
      })
  )

  it.effect("IM-33: it reports events and records that the format cannot hold", () =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* log.append(id, [
        created,
        draft("session.next.budget.set", { budget: { tokens: 5 } }),
        draft("session.next.budget.set", { budget: {} })
      ])
      const { report } = yield* exported(id, "xcsh")
      assert.deepInclude(report, { dropped: { "session.next.budget.set": 2 }, records: 0, notes: [] })
      const { sessionID } = yield* importPieces([
        head(unique(), "pi"),
        ...itemsOf([user("go"), { _tag: "Opaque" }, { _tag: "Opaque" }])
      ])
      assert.deepInclude((yield* exported(sessionID, "pi")).report, { records: 0 })
      assert.deepInclude((yield* exported(sessionID, "xcsh")).report, { records: 2 })
    })
  )
})
