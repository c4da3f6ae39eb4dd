import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { MessageID, SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../../packages/log/src/events/SessionEvents.ts"
import type { Projector } from "../../../packages/log/src/log/Appends.ts"
import { EventLog, EventRefused } from "../../../packages/log/src/log/EventLog.ts"
import { eventTypes, newSession, type Runtimes, temporaryFolder } from "../../support/Harness.ts"
import { otherRef } from "../../support/ScriptedModel.ts"

export const creation = ({ open, runtime }: Runtimes) => {
  const location = { directory: tmpdir() }

  it.layer(runtime())("create", (it) => {
    it.effect("CR-1: without an id a new session is made each time", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const [one, two] = [yield* sessions.create({ location }), yield* sessions.create({ location })]
        assert.notStrictEqual(one.id, two.id)
        assert.match(one.id, /^ses_/)
      })
    )

    it.effect("CR-1: a used id returns the session unchanged, whatever else is asked for", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const first = yield* sessions.create({ id: "ses_again", location, title: "first" })
        const again = yield* sessions.create({
          id: "ses_again",
          location: { directory: "/no/such/folder" },
          title: "second",
          agent: "nobody"
        })
        assert.deepStrictEqual(again, first)
        assert.deepStrictEqual(yield* eventTypes(first.id), ["session.created"])
      })
    )

    it.effect("CR-2: twenty creations of one id at once make one session", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const made = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => `title ${index}`),
          (title) => sessions.create({ id: "ses_race", location, title }),
          { concurrency: "unbounded" }
        )
        for (const session of made) assert.deepStrictEqual(session, made[0])
        assert.deepStrictEqual(yield* eventTypes(SessionID.make("ses_race")), ["session.created"])
      })
    )

    it.effect("CR-5: get and list show what was committed", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* sessions.create({ location, title: "before", model: otherRef })
        yield* sessions.rename(id, "after")
        const got = yield* sessions.get(id)
        assert.strictEqual(got.title, "after")
        assert.deepStrictEqual(got.model, otherRef)
        const { items } = yield* sessions.list({ search: "after" })
        assert.deepStrictEqual(items, [got])
      })
    )

    it.effect("IB-3: no session is created with a model that the host cannot use; one that exists is found", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        for (const model of [
          { ...otherRef, id: "three" },
          { ...otherRef, providerID: "nobody" }
        ]) {
          const created = yield* Effect.flip(sessions.create({ id: "ses_unusable", location, model }))
          const named = yield* Effect.flip(sessions.named({ title: "unusable", location, model }))
          for (const refused of [created, named]) assert.deepInclude(refused, { _tag: "InvalidInput", field: "model" })
          const missing = yield* Effect.flip(sessions.get(SessionID.make("ses_unusable")))
          assert.strictEqual(missing._tag, "SessionNotFound")
          assert.deepStrictEqual((yield* sessions.list({ search: "unusable" })).items, [])
          const { id } = yield* sessions.create({ id: "ses_usable", location, title: "usable" })
          assert.strictEqual((yield* sessions.create({ id: "ses_usable", location, model })).id, id)
          assert.strictEqual((yield* sessions.named({ title: "usable", location, model })).session.id, id)
        }
      })
    )

    it.effect("IB-3: a session whose model is gone is read and forked, and continues with another one", () =>
      Effect.gen(function* () {
        const [log, sessions] = [yield* EventLog, yield* Sessions]
        const id = SessionID.make("ses_left")
        const gone = { ...otherRef, id: "gone" }
        yield* log.append(id, [draft("session.created", { location, model: gone })])
        assert.deepStrictEqual((yield* sessions.get(id)).model, gone)
        const { session } = yield* sessions.fork({ sessionID: id })
        assert.deepStrictEqual(session.model, gone)
        yield* sessions.switchModel(session.id, otherRef)
        assert.deepStrictEqual((yield* sessions.get(session.id)).model, otherRef)
      })
    )

    it.effect("CR-5: what is removed is gone, with its ids free again", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const { id } = yield* sessions.create({ id: "ses_removed", location })
        yield* sessions.prompt({ id: "msg_removed", sessionID: id, prompt: { text: "a" }, resume: false })
        yield* sessions.remove(id)
        assert.strictEqual((yield* Effect.flip(sessions.get(id)))._tag, "SessionNotFound")
        assert.strictEqual((yield* Effect.flip(sessions.remove(id)))._tag, "SessionNotFound")
        const again = yield* sessions.create({ id: "ses_removed", location })
        assert.strictEqual((yield* sessions.inbox(again.id)).length, 0)
        const input = yield* sessions.prompt({
          id: "msg_removed",
          sessionID: id,
          prompt: { text: "b" },
          resume: false
        })
        assert.strictEqual(input.admittedSeq, 1)
      })
    )

    const badIDs = [
      "",
      "ses_",
      "msg_a",
      "SES_a",
      "ses_../../etc/passwd",
      "ses_a/b",
      "ses_a\\b",
      "ses_a b",
      "ses_a\n",
      "ses_a\0",
      "ses_ü",
      `ses_${"a".repeat(97)}`,
      " ses_a"
    ]
    it.effect.each(badIDs)("4.4: %j is refused as a session id before anything is stored", (id) =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const sql = yield* SqlClient.SqlClient
        const rows = sql<{ readonly n: number }>`SELECT count(*) AS n FROM event_sequence`
        const before = yield* rows
        const refused = yield* Effect.flip(sessions.create({ id, location }))
        assert.strictEqual(refused._tag, "InvalidInput")
        assert.include(refused.message, "expected ses_")
        assert.deepStrictEqual(yield* rows, before)
      })
    )

    it.effect("4.4: a longest id of every allowed character is taken", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const id = `ses_${"aZ09._-".repeat(14).slice(0, 96)}`
        assert.strictEqual((yield* sessions.create({ id, location })).id, SessionID.make(id))
      })
    )

    it.effect("4.4: a parent must be a session", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const refused = yield* Effect.flip(sessions.create({ location, parentID: SessionID.make("ses_nobody") }))
        assert.deepInclude(refused, { _tag: "InvalidInput", field: "parentID" })
        const parent = yield* newSession()
        const child = yield* sessions.create({ location, parentID: parent.id })
        assert.strictEqual(child.parentID, parent.id)
      })
    )

    it.effect("4.4: an agent that is not configured is refused by name", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const refused = yield* Effect.flip(sessions.create({ location, agent: "nobody" }))
        assert.deepInclude(refused, { _tag: "InvalidInput", field: "agent" })
        assert.include(refused.message, "nobody")
      })
    )

    it.effect("4.4: every verb on a session that is not there says so", () =>
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const id = SessionID.make("ses_missing")
        const calls = [
          sessions.get(id),
          sessions.messages({ sessionID: id }),
          sessions.message(id, MessageID.make("msg_a")),
          sessions.context(id),
          sessions.inbox(id),
          sessions.history({ sessionID: id }),
          sessions.prompt({ sessionID: id, prompt: { text: "a" } }),
          sessions.resume(id),
          sessions.wait(id),
          sessions.switchAgent(id, "build"),
          sessions.switchModel(id, otherRef),
          sessions.move(id, location),
          sessions.rename(id, "a"),
          sessions.remove(id)
        ]
        for (const call of calls) {
          assert.strictEqual(
            (yield* Effect.flip<unknown, { readonly _tag: string }, never>(call))._tag,
            "SessionNotFound"
          )
        }
      })
    )
  })

  it.scoped("4.4: a Location is the real path of a folder that is there", () =>
    Effect.gen(function* () {
      const folder = realpathSync(yield* temporaryFolder)
      const real = join(folder, "real")
      mkdirSync(real)
      symlinkSync(real, join(folder, "link"))
      writeFileSync(join(folder, "file"), "")
      const sessions = yield* Sessions
      for (const spelling of [real, `${real}/`, join(folder, "link"), `${folder}/link/../real/.`]) {
        const made = yield* sessions.create({ location: { directory: spelling } })
        assert.deepStrictEqual(made.location, { directory: real })
      }
      for (const directory of [join(folder, "none"), join(folder, "file"), "", `${folder}\0`]) {
        const refused = yield* Effect.flip(sessions.create({ location: { directory } }))
        assert.strictEqual(refused._tag, "InvalidInput")
      }
      const spelled = yield* sessions.list({ directory: join(folder, "link") })
      assert.strictEqual(spelled.items.length, 4)
    }).pipe(Effect.provide(runtime()))
  )

  const refusing: Projector = {
    name: "refusing",
    project: ([event]) =>
      event === undefined
        ? Effect.void
        : new EventRefused({ sessionID: event.sessionID, table: "mine", details: "not today" })
  }

  it.scoped("CR-2: a projector that refuses a creation is not taken for a lost race", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const refused = yield* Effect.flip(sessions.create({ id: "ses_refused", location }))
      assert.deepInclude(refused, { _tag: "EventRefused", table: "mine" })
      assert.strictEqual((yield* Effect.flip(sessions.get(SessionID.make("ses_refused"))))._tag, "SessionNotFound")
    }).pipe(Effect.provide(runtime({ projectors: [refusing] })))
  )

  it.scopedLive("CR-2: two processes that create one id at once make one session", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const made = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, index) => index),
        (index) =>
          Effect.flatMap(Sessions, (sessions) =>
            sessions.create({ id: "ses_shared", location, title: `title ${index}` })
          ).pipe(Effect.provide(index % 2 === 0 ? one : two)),
        { concurrency: "unbounded" }
      )
      for (const session of made) assert.deepStrictEqual(session, made[0])
      const log = yield* Effect.provide(EventLog, one)
      assert.strictEqual(yield* log.latest(SessionID.make("ses_shared")), 0)
    })
  )
}
