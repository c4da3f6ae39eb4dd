/** The history of prompts in a log, whichever database keeps it. Spec: SE-50..SE-53 in specs/storage.md. */
import { assert, it } from "@effect/vitest"
import { Effect, Struct, TestClock } from "effect"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { Search, type PromptsOptions } from "../../packages/log/src/search/Search.ts"
import { admitted, created, message, session } from "./Samples.ts"
import type { SearchStore } from "./SearchContract.ts"

const texts = Effect.fnUntraced(function* (options: PromptsOptions = {}) {
  const search = yield* Search
  yield* search.update()
  return (yield* search.prompts(options)).items.map(({ text }) => text)
})

const typed = Effect.fnUntraced(function* (...prompts: ReadonlyArray<string>) {
  const [log, id] = [yield* EventLog, session()]
  yield* log.append(id, [created, ...prompts.map((text) => admitted(message(), text))])
  return id
})

/** Registers every test of the history of prompts. */
export const promptHistoryContract = <E>({ layer }: SearchStore<E>): void => {
  it.effect("SE-50: prompts are listed trimmed, the newest first, without empty ones and repetitions in a row", () =>
    Effect.gen(function* () {
      yield* typed("first", " first\n", "first", "   ", "second", "first")
      assert.deepStrictEqual(yield* texts(), ["first", "second", "first"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-50: an import that comes later does not put old prompts before new ones", () =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session()]
      yield* TestClock.setTime(5_000)
      yield* typed("now")
      yield* log.append(id, [created, admitted(message(), "long ago"), admitted(message(), "between")], {
        times: [1_000, 1_000, 3_000]
      })
      assert.deepStrictEqual(yield* texts(), ["now", "between", "long ago"])
      assert.deepStrictEqual(yield* texts({ words: "o" }), [])
      assert.deepStrictEqual(yield* texts({ words: "n" }), ["now"])
      const search = yield* Search
      const first = yield* search.prompts({ limit: 2 })
      const rest = yield* search.prompts({ limit: 2, cursor: first.cursor })
      assert.deepStrictEqual(rest.items.map(Struct.get("text")), ["long ago"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-51: each given word is the beginning of a word of the prompt; anything else in it is ignored", () =>
    Effect.gen(function* () {
      yield* typed("mend the failing tests", "test the login", "write docs")
      assert.deepStrictEqual(yield* texts({ words: "test" }), ["test the login", "mend the failing tests"])
      assert.deepStrictEqual(yield* texts({ words: "TEST fail" }), ["mend the failing tests"])
      assert.deepStrictEqual(yield* texts({ words: '"doc* -- AND' }), [])
      assert.deepStrictEqual(yield* texts({ words: '"doc* --' }), ["write docs"])
      const refused = yield* Effect.flip(Effect.flatMap(Search, (search) => search.prompts({ words: "x ".repeat(33) })))
      assert.deepInclude(refused, { _tag: "InvalidInput", field: "words" })
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-52: prompts of agents are left out, and prompts of removed sessions are gone", () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const parent = yield* typed("by a person")
      const child = session()
      const location = { directory: "/work" }
      yield* log.append(child, [
        draft("session.created", { location, parentID: parent }),
        admitted(message(), "by an agent")
      ])
      const other = yield* typed("soon gone")
      assert.deepStrictEqual(yield* texts(), ["soon gone", "by a person"])
      yield* log.remove(other)
      assert.deepStrictEqual(yield* texts(), ["by a person"])
      assert.deepStrictEqual(yield* texts({ directory: "/elsewhere" }), [])
    }).pipe(Effect.provide(layer))
  )

  it.effect("SE-53: pages hold at most the limit, and follow each other without gaps", () =>
    Effect.gen(function* () {
      const search = yield* Search
      const all = Array.from({ length: 450 }, (_, index) => `prompt ${index}`)
      yield* typed(...all)
      yield* search.update()
      const seen: Array<string> = []
      let cursor: string | undefined
      do {
        const page = yield* search.prompts({ limit: 170, cursor })
        assert.isAtMost(page.items.length, 170)
        seen.push(...page.items.map(({ text }) => text))
        cursor = page.cursor
      } while (cursor !== undefined)
      assert.deepStrictEqual(seen, all.toReversed())
      const refused = yield* Effect.flip(search.prompts({ cursor: "x" }))
      assert.deepInclude(refused, { _tag: "InvalidInput", field: "cursor" })
    }).pipe(Effect.provide(layer))
  )
}
