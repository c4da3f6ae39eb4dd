/** What `Search` finds in a log, whichever database keeps it, and how it shows it. Spec: SE in specs/storage.md. */
import { assert, it } from "@effect/vitest"
import { SqlClient } from "@effect/sql"
import { Effect, type Layer, TestClock } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { Search } from "../../packages/log/src/search/Search.ts"
import type { ReadSql } from "../../packages/log/src/storage/Database.ts"
import { found, places, roles } from "../search/support/Searching.ts"
import * as Pruning from "../support/Pruning.ts"
import { admitted, call, created, message, session, step } from "./Samples.ts"

const word = "xylophonist"

const answered = (messageID = message()) =>
  [
    admitted(message(), "Why does the Login page flicker?"),
    step(messageID),
    draft("session.next.reasoning.started", { assistantMessageID: messageID, reasoningID: "r" }),
    draft("session.next.reasoning.ended", {
      assistantMessageID: messageID,
      reasoningID: "r",
      text: "perhaps a login timer"
    }),
    draft("session.next.text.started", { assistantMessageID: messageID, textID: "t" }),
    draft("session.next.text.ended", {
      assistantMessageID: messageID,
      textID: "t",
      text: "The login timer fires twice."
    }),
    ...call({ messageID, callID: "c", tool: "bash", input: { command: "grep -rn login src" } }),
    draft("session.next.tool.success", {
      assistantMessageID: messageID,
      callID: "c",
      structured: {},
      content: [{ type: "text", text: "src/login.ts:12: setTimeout" }],
      provider: { executed: false }
    })
  ] as const

const begun = Effect.gen(function* () {
  const [log, id] = [yield* EventLog, session()]
  yield* log.append(id, [created, draft("session.next.renamed", { title: "The flicker" }), ...answered()])
  return id
})

const prompted = Effect.fnUntraced(function* (text: string, at?: string) {
  const [log, id] = [yield* EventLog, session()]
  const location = { directory: at ?? "/work" }
  yield* log.append(id, [draft("session.created", { location }), admitted(message(), text)])
  return id
})
/** A log with its search, for each test anew. */
export interface SearchStore<E> {
  readonly layer: Layer.Layer<Search | EventLog | SqlClient.SqlClient | ReadSql, E>
}

/** A session whose one prompt is indexed. */
const indexed = Effect.gen(function* () {
  const id = yield* prompted(`the ${word} plays`)
  yield* (yield* Search).update()
  return id
})

/** Registers every test of the contract of `Search`. */
export const searchContract = <E>({ layer }: SearchStore<E>): void => {
  it.effect("SE-10: prompts, answers, reasoning, calls and results are found, each as its role", () =>
    Effect.gen(function* () {
      yield* begun
      assert.deepStrictEqual(yield* roles("login role:user"), ["user"])
      assert.deepStrictEqual(yield* roles("login role:assistant"), ["assistant"])
      assert.deepStrictEqual(yield* roles("login role:reasoning"), ["reasoning"])
      assert.deepStrictEqual(yield* roles("login tool:bash"), ["tool", "tool"])
      assert.deepStrictEqual(yield* roles("setTimeout"), ["tool"])
      assert.deepStrictEqual(yield* roles("flicker"), ["user"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-11: answers, calls and results are found by the names of their model and tool, prompts are not", () =>
    Effect.gen(function* () {
      yield* begun
      assert.deepStrictEqual(yield* roles("model:p/m"), ["assistant", "reasoning", "tool"])
      assert.deepStrictEqual(yield* roles("model:other"), [])
      // The event of a result does not name its tool.
      assert.deepStrictEqual(yield* roles("setTimeout tool:bash"), ["tool"])
      assert.deepStrictEqual(yield* roles("login tool:edit"), [])
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-42: a hit names its session, its event and its role, and marks the matches in its text", () =>
    Effect.gen(function* () {
      const id = yield* begun
      const { items, behind, truncated } = yield* found('"login timer" twice')
      assert.strictEqual(items.length, 1)
      const [item] = items
      assert.deepInclude(item, { sessionID: id, title: "The flicker", directory: "/work", matches: 1 })
      const [hit] = item?.hits ?? []
      assert.deepInclude(hit, { seq: 7, role: "assistant", model: "p/m", snippet: "The login timer fires twice." })
      assert.deepStrictEqual(
        hit?.marks.map(([from, to]) => hit.snippet.slice(from, to)),
        ["login timer", "twice"]
      )
      assert.deepStrictEqual([behind, truncated], [0, false])
      assert.deepStrictEqual((yield* places("timer")).length, 2)
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-42: pages show every session once, as the index was for the first page", () =>
    Effect.gen(function* () {
      const search = yield* Search
      for (let index = 0; index < 7; index++) yield* prompted(`heron ${index}`)
      const first = yield* found("heron", { limit: 3 })
      yield* prompted("heron, heron")
      yield* search.update()
      const second = yield* search.search({ query: "heron", limit: 3, cursor: first.cursor })
      const third = yield* search.search({ query: "heron", limit: 3, cursor: second.cursor })
      const ids = [first, second, third].flatMap(({ items }) => items.map(({ sessionID }) => sessionID))
      assert.strictEqual(new Set(ids).size, 7)
      assert.strictEqual(ids.length, 7)
      assert.isUndefined(third.cursor)
      const refused = yield* Effect.flip(search.search({ query: "heron", cursor: "no" }))
      assert.deepInclude(refused, { _tag: "InvalidInput", field: "cursor" })
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-41: more than a thousand matches are reported as truncated, and the newest are ranked", () =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* log.append(id, [created, ...Array.from({ length: 1_001 }, (_, at) => admitted(message(), `heron ${at}`))])
      const page = yield* found("heron")
      assert.isTrue(page.truncated)
      assert.strictEqual(page.items[0]?.matches, 1_000)
      assert.isFalse((yield* found("heron 1000")).truncated)
      assert.strictEqual((yield* found("heron 0")).items.length, 1)
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-33: after: and before: select by the time of the event", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 10, 12))
      const early = yield* prompted("heron")
      yield* TestClock.setTime(Date.UTC(2026, 0, 20, 12))
      const late = yield* prompted("heron")
      const ids = (query: string) => Effect.map(places(query), (all) => all.map(([id]) => id))
      assert.deepStrictEqual(yield* ids("heron before:2026-01-10T12:00:01Z"), [early])
      assert.deepStrictEqual(yield* ids("heron before:2026-01-10T12:00Z"), [])
      assert.deepStrictEqual(yield* ids("after:2026-01-20"), [late])
      assert.deepStrictEqual(yield* ids("heron after:9d before:2026-01-11"), [])
      assert.sameMembers(yield* ids("heron after:2026-01"), [early, late])
    }).pipe(Effect.provide(layer))
  )

  it.effect(
    "SE-30: cwd: finds a folder and the ones below, also relative to the caller's; title: and session: select",
    () =>
      Effect.gen(function* () {
        const [here, below, other] = [
          yield* prompted("heron", "/work/a"),
          yield* prompted("heron", "/work/a/b"),
          yield* prompted("heron", "/work/ab")
        ]
        const ids = (query: string, directory = "/") =>
          Effect.map(places(query, { directory }), (all) => all.map(([id]) => id))
        assert.sameMembers(yield* ids("heron cwd:/work/a"), [here, below])
        assert.sameMembers(yield* ids("heron cwd:.", "/work/a"), [here, below])
        assert.sameMembers(yield* ids("cwd:../ab", "/work/a"), [other])
        assert.sameMembers(yield* ids("heron cwd:/"), [here, below, other])
        assert.deepStrictEqual(yield* ids(`session:${other}`), [other])
        assert.deepStrictEqual(yield* ids("session:none heron"), [])
        assert.sameMembers(yield* ids("heron -stork"), [here, below, other])
        assert.deepStrictEqual(yield* ids("-heron"), [])
      }).pipe(Effect.provide(layer))
  )

  it.effect(
    "SE-12: case and the accents of Latin letters do not matter; parts of Chinese, Japanese and Thai sentences are found",
    () =>
      Effect.gen(function* () {
        yield* prompted("Über die Café-Frage: Ελλάδα, ПРИВЕТ")
        yield* prompted("東京都の天気を教えてください")
        yield* prompted("สวัสดีชาวโลก")
        for (const query of ["uber", "cafe frage", "CAFÉ", "ελλάδα", "привет"]) {
          assert.strictEqual((yield* places(query)).length, 1, query)
        }
        for (const query of ["京都", "天気", "東京", "教えて", "ชาวโลก", '"の天気"']) {
          const { items } = yield* found(query)
          assert.strictEqual(items.length, 1, query)
          const [hit] = items[0]?.hits ?? []
          const marked = hit?.marks.map(([from, to]) => hit.snippet.slice(from, to)).join("")
          assert.strictEqual(marked, query.replaceAll('"', ""))
        }
        assert.strictEqual((yield* places("都東")).length, 0)
      }).pipe(Effect.provide(layer))
  )

  it.effect("SE-8: an event that cannot be read has no document, and the others are found", () =>
    Effect.gen(function* () {
      yield* prompted("a heron")
      const { SqlClient } = yield* Effect.promise(() => import("@effect/sql"))
      const sql = yield* SqlClient.SqlClient
      yield* prompted("a stork")
      yield* sql`UPDATE event SET checksum = checksum + 1 WHERE position = 2`
      assert.deepStrictEqual(yield* places("heron"), [])
      assert.strictEqual((yield* places("stork")).length, 1)
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-3: a search sees what update has indexed, and says how far the index is behind", () =>
    Effect.gen(function* () {
      const search = yield* Search
      yield* prompted("a heron")
      const before = yield* search.search({ query: "heron" })
      assert.deepStrictEqual([before.items, before.behind], [[], 2])
      const seen: Array<number> = []
      const { head, position } = yield* search.update({
        onProgress: (each) => Effect.sync(() => void seen.push(each.position))
      })
      assert.deepStrictEqual([head, position, seen], [2, 2, [2]])
      assert.strictEqual((yield* search.search({ query: "heron" })).behind, 0)
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-22: a new session with the id of a removed one has only its own texts", () =>
    Effect.gen(function* () {
      const [log, search, id] = [yield* EventLog, yield* Search, session()]
      yield* log.append(id, [created, admitted(message(), `old ${word}`)])
      yield* search.update()
      yield* log.remove(id)
      yield* log.append(id, [
        created,
        draft("session.next.renamed", { title: "new" }),
        admitted(message(), "young drummer")
      ])
      assert.deepStrictEqual(yield* places(word), [])
      assert.strictEqual((yield* places("drummer")).length, 1)
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-23: a removed session is in no result, also before the next update", () =>
    Effect.gen(function* () {
      const [log, search, id] = [yield* EventLog, yield* Search, yield* indexed]
      const shown = Effect.all([search.search({ query: word }), search.prompts({ words: word })])
      assert.deepStrictEqual(
        (yield* shown).map(({ items }) => items.map(({ sessionID }) => sessionID)),
        [[id], [id]]
      )
      yield* log.remove(id)
      yield* log.append(id, [created, admitted(message(), "young drummer")])
      assert.deepStrictEqual(
        (yield* shown).map(({ items }) => items.length),
        [0, 0]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-31: filters may have characters that no text of a database has", () =>
    Effect.gen(function* () {
      yield* indexed
      for (const name of ["title", "session", "cwd"]) {
        const query = `${word} ${name}:"a\0 \ud800 %_'"`
        assert.deepStrictEqual(yield* places(query), [], name)
      }
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-11: a result is found by its tool, whatever characters the id of its call has", () =>
    Effect.gen(function* () {
      const [log, id, messageID, callID] = [yield* EventLog, session(), message(), "a\0b\ud800"]
      yield* log.append(id, [
        created,
        step(messageID),
        ...call({ messageID, callID, tool: "bash", input: {} }),
        draft("session.next.tool.failed", {
          assistantMessageID: messageID,
          callID,
          error: { type: "failed", message: "no heron" },
          provider: { executed: false }
        })
      ])
      assert.deepStrictEqual(yield* roles("heron tool:bash"), ["tool"])
    }).pipe(Effect.provide(layer))
  )

  it.effect(
    "SE-11: an index that is built after a prune has the models and tools of answers and results in blocks",
    () =>
      Effect.gen(function* () {
        const id = session()
        yield* Pruning.begun(id, 2, 1)
        yield* Pruning.pruned(id)
        yield* (yield* Search).rebuild()
        assert.deepStrictEqual(yield* roles("output tool:bash"), ["tool"])
        assert.deepStrictEqual(yield* roles("output tool:edit"), [])
        assert.deepStrictEqual(yield* roles("answer model:p/m"), ["assistant", "assistant"])
      }).pipe(Effect.provide(layer))
  )

  it.effect("SE-6: a pruned session is found as before, whether it was indexed before or after the prune", () =>
    Effect.gen(function* () {
      const [early, late, search] = [session("early"), session("late"), yield* Search]
      yield* Pruning.begun(early, 6, 2)
      const query = "answer 3 -output"
      const before = yield* places(query)
      yield* Pruning.pruned(early)
      assert.deepStrictEqual(yield* places(query), before)
      yield* Pruning.begun(late, 6, 2)
      yield* Pruning.pruned(late)
      const after = yield* places(`${query} session:ses_late`)
      assert.deepStrictEqual(
        after.map(([, ...place]) => place),
        before.map(([, ...place]) => place)
      )
      const all = yield* places(`${query} model:p`)
      yield* search.rebuild()
      assert.deepStrictEqual(yield* places(`${query} model:p`), all)
      assert.isNotEmpty(all)
    }).pipe(Effect.provide(layer))
  )
}
