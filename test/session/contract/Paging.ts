/** Transcript and listing in pages: PR-7, WK-13, CR-5. Ids and times are chosen against the order of events. */
import { tmpdir } from "node:os"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect, Struct } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { newSession, type Runtimes, say, scene } from "../../support/Harness.ts"
import { otherRef } from "../../support/ScriptedModel.ts"

export const paging = ({ runtime }: Runtimes) => {
  const location = { directory: tmpdir() }

  /** Messages whose ids descend and whose times are shuffled, while their sequence ascends. */
  const adversarial = Effect.fnUntraced(function* (count: number) {
    const { id, log } = yield* scene()
    const mark = id.slice(-12)
    for (let index = 0; index < count; index += 1) {
      const messageID = MessageID.make(`msg_${String(count - index).padStart(4, "0")}.${mark}`)
      const prompt = { text: `text ${index}` }
      yield* log.append(id, [
        draft("session.next.prompt.admitted", { messageID, prompt, delivery: "steer" }),
        draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: (index * 7919) % 1_000 })
      ])
    }
    return id
  })

  const pages = Effect.fnUntraced(function* (sessionID: SessionID, limit: number, order: "asc" | "desc") {
    const sessions = yield* Sessions
    const found: Array<{ readonly seq: number; readonly createdAt: number; readonly text: string }> = []
    const sizes: Array<number> = []
    let cursor: number | undefined
    do {
      const page = yield* sessions.messages({ sessionID, limit, order, cursor })
      for (const message of page.items) if (message.type === "user") found.push(message)
      sizes.push(page.items.length)
      cursor = page.cursor
    } while (cursor !== undefined)
    return { found, sizes }
  })

  it.layer(runtime())("pages", (it) => {
    it.effect("PR-7: the transcript follows event order, with ids and times against it, in pages of any size", () =>
      Effect.gen(function* () {
        const id = yield* adversarial(23)
        const texts = Array.from({ length: 23 }, (_, index) => `text ${index}`)
        for (const limit of [1, 2, 7, 22, 23, 24, 500]) {
          const up = yield* pages(id, limit, "asc")
          assert.deepStrictEqual(up.found.map(Struct.get("text")), texts)
          assert.deepStrictEqual(
            up.found.map(({ seq }) => seq),
            texts.map((_, index) => 2 * index + 2)
          )
          assert.strictEqual(up.sizes.length, Math.ceil(23 / limit))
          const down = yield* pages(id, limit, "desc")
          assert.deepStrictEqual(down.found.map(Struct.get("text")), texts.toReversed())
        }
      })
    )

    it.effect("PR-7: a message keeps the time of its admission", () =>
      Effect.gen(function* () {
        const id = yield* adversarial(5)
        const { found } = yield* pages(id, 2, "asc")
        assert.deepStrictEqual(found.map(Struct.get("createdAt")), [0, 919, 838, 757, 676])
      })
    )

    it.effect("PR-7: what arrives while pages are read is in none of those before, and no page repeats", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const id = yield* adversarial(4)
        const first = yield* sessions.messages({ sessionID: id, limit: 2 })
        yield* sessions.switchModel(id, otherRef)
        const second = yield* sessions.messages({ sessionID: id, limit: 10, cursor: first.cursor })
        assert.deepStrictEqual([...first.items, ...second.items].map(Struct.get("seq")), [2, 4, 6, 8, 9])
        assert.strictEqual(second.total, 5)
        assert.strictEqual(second.cursor, undefined)
      })
    )

    it.effect("WK-13: a page says how many there are, and any place can be read around", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const id = yield* adversarial(9)
        const at = 10
        const before = yield* sessions.messages({ sessionID: id, order: "desc", cursor: at, limit: 2 })
        const after = yield* sessions.messages({ sessionID: id, cursor: at - 1, limit: 3 })
        assert.deepStrictEqual(
          [...before.items.toReversed(), ...after.items].map(({ seq }) => seq),
          [6, 8, 10, 12, 14]
        )
        assert.deepStrictEqual([before.total, after.total], [9, 9])
      })
    )

    it.effect("WK-13: a limit that is no sensible number is brought into bounds", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const id = yield* adversarial(3)
        for (const [limit, expected] of [
          [0, 1],
          [-5, 1],
          [1.9, 1],
          [Number.NaN, 3],
          [Infinity, 3]
        ] as const) {
          assert.strictEqual((yield* sessions.messages({ sessionID: id, limit })).items.length, expected)
          assert.isAtLeast((yield* sessions.list({ limit })).items.length, 1)
          // Its first event is the creation, which is left out.
          const { cursor } = yield* sessions.history({ sessionID: id, limit })
          assert.strictEqual(cursor, expected === 1 ? 0 : 6)
        }
      })
    )
  })

  it.scoped("CR-5: sessions are listed the last used first, in pages, each once, with equal times too", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const sql = yield* SqlClient.SqlClient
      for (let index = 0; index < 17; index += 1) yield* sessions.create({ id: `ses_${index}`, location })
      // Only three different times.
      yield* Effect.forEach(
        Array.from({ length: 17 }, (_, index) => index),
        (index) => sql`UPDATE session SET time_updated = ${1000 + ((index * 7) % 3)} WHERE id = ${`ses_${index}`}`
      )
      const rows = yield* sql<{ readonly id: string }>`SELECT id FROM session ORDER BY time_updated DESC, id DESC`
      for (const limit of [1, 4, 17, 100]) {
        const found: Array<string> = []
        let cursor: string | undefined
        do {
          const page = yield* sessions.list({ limit, cursor })
          found.push(...page.items.map(({ id }) => id))
          cursor = page.cursor
        } while (cursor !== undefined)
        assert.deepStrictEqual(
          found,
          rows.map(({ id }) => id)
        )
      }
    }).pipe(Effect.provide(runtime()))
  )

  it.scoped("CR-5: a search finds text of titles and prompts as it is written, any case", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const titled = yield* sessions.create({ id: "ses_titled", location, title: "Fix the 100% Bug_y parser" })
      const prompted = yield* newSession()
      yield* say(prompted.id, String.raw`what is C:\temp and "quoted" 100% of it`, { resume: false })
      const find = (search: string) => Effect.map(sessions.list({ search }), ({ items }) => items.map(({ id }) => id))
      assert.deepStrictEqual(yield* find("bug_Y"), [titled.id])
      assert.deepStrictEqual(yield* find("bugxy"), [])
      assert.deepStrictEqual(yield* find(String.raw`c:\temp`), [prompted.id])
      assert.deepStrictEqual(yield* find('"quoted"'), [prompted.id])
      assert.sameMembers([...(yield* find("100%"))], [titled.id, prompted.id])
      assert.deepStrictEqual(yield* find("1%0"), [])
      assert.deepStrictEqual(yield* find("' OR 1=1 --"), [])
    }).pipe(Effect.provide(runtime()))
  )

  it.scoped("CR-5: a cursor that no page gave is refused", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      for (const cursor of [
        "",
        "x",
        Buffer.from("[1]").toString("base64url"),
        Buffer.from("{}").toString("base64url")
      ]) {
        const refused = yield* Effect.flip(sessions.list({ cursor }))
        assert.deepInclude(refused, { _tag: "InvalidInput", field: "cursor" })
      }
    }).pipe(Effect.provide(runtime()))
  )
}
