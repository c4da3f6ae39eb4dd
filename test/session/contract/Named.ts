/** Sessions by title: found or made, once. Two contexts on one file stand for two processes. */
import { mkdirSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { type Runtimes, temporaryFolder } from "../../support/Harness.ts"

export const naming = ({ open, runtime }: Runtimes) => {
  const named = (directory: string, title = "fix") =>
    Effect.flatMap(Sessions, (sessions) => sessions.named({ title, location: { directory } }))

  const all = Effect.flatMap(Sessions, (sessions) => Effect.map(sessions.list(), ({ items }) => items))

  it.scopedLive("IB-13: of many that ask for one title at once, in two processes, one makes the session", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const filename = join(folder, "daybook.db")
      const processes = [yield* open({ filename }), yield* open({ filename })]
      for (let round = 0; round < 5; round += 1) {
        const asked = Array.from({ length: 12 }, (_, index) => index)
        const answers = yield* Effect.forEach(
          asked,
          (index) => Effect.provide(named(folder, `round ${round}`), processes[index % 2] ?? processes[0]!),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(new Set(answers.map(({ session }) => session.id)).size, 1)
        assert.strictEqual(answers.filter(({ isNew }) => isNew).length, 1)
      }
      assert.strictEqual((yield* Effect.provide(all, processes[0]!)).length, 5)
    })
  )

  it.scopedLive("IB-13: a session that another process makes between the look and the creation is the one", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const filename = join(folder, "daybook.db")
      const [here, there] = [yield* open({ filename }), yield* open({ filename })]
      const log = yield* Effect.provide(EventLog, here)
      const { append } = { ...log }
      let first: SessionID | undefined
      Object.assign(log, {
        append: (...args: Parameters<typeof append>) =>
          Effect.gen(function* () {
            if (first === undefined) first = (yield* Effect.orDie(Effect.provide(named(folder), there))).session.id
            return yield* append(...args)
          })
      })
      const { isNew, session } = yield* Effect.provide(named(folder), here)
      assert.deepStrictEqual([session.id, isNew], [first, false])
      assert.strictEqual((yield* Effect.provide(all, here)).length, 1)
    })
  )

  it.scopedLive("IB-13: a title means the session of the folder, else the one of another folder, else a new one", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const folder = realpathSync(yield* temporaryFolder)
      const [one, two] = [join(folder, "one"), join(folder, "two")]
      for (const directory of [one, two]) mkdirSync(directory)
      const made = yield* named(one)
      assert.isTrue(made.isNew)
      assert.strictEqual(made.session.location.directory, one)
      assert.deepStrictEqual(yield* named(two), { session: made.session, isNew: false })
      const other = yield* sessions.create({ title: "fix", location: { directory: two } })
      assert.strictEqual((yield* named(two)).session.id, other.id)
      assert.strictEqual((yield* named(join(one, "..", "one"))).session.id, made.session.id)
      // Another title, though it holds this one and differs in case only.
      for (const title of ["fix ", "Fix", "fi%"]) assert.isTrue((yield* named(two, title)).isNew)
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-44, IB-13: a title that several sessions have is refused with their ids, and what to do", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const directory = yield* temporaryFolder
      const made = yield* Effect.replicateEffect(sessions.create({ title: "fix", location: { directory } }), 3)
      const refused = yield* Effect.flip(named(directory))
      assert.strictEqual(refused._tag, "TitleAmbiguous")
      for (const { id } of made) assert.include(refused.message, id)
      assert.include(refused.message, "rename")
      for (const { id } of made.slice(1)) yield* sessions.rename(id, "other")
      assert.strictEqual((yield* named(directory)).session.id, made[0]?.id)
    }).pipe(Effect.provide(runtime()))
  )

  it.scopedLive("IB-13: what a new session could not be made of is refused, and an empty title too", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const directory = yield* temporaryFolder
      assert.deepInclude(yield* Effect.flip(named(directory, "")), { _tag: "InvalidInput", field: "title" })
      assert.deepInclude(yield* Effect.flip(named(join(directory, "gone"))), {
        _tag: "InvalidInput",
        field: "directory"
      })
      const agent = sessions.named({ title: "fix", agent: "nobody", location: { directory } })
      assert.deepInclude(yield* Effect.flip(agent), { _tag: "InvalidInput", field: "agent" })
      assert.deepStrictEqual(yield* all, [])
    }).pipe(Effect.provide(runtime()))
  )
}
