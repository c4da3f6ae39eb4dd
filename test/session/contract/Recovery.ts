/** What a dead process leaves, and who goes on with it: TU-13, WK-6 at the facade. A copied file is a dead process's. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Struct } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import * as OwnerRows from "../../../packages/log/src/coordination/OwnerRows.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import {
  answerTo,
  eventTypes,
  leaveFile,
  newSession,
  type Runtimes,
  say,
  scene,
  temporaryFolder,
  userTexts
} from "../../support/Harness.ts"
import { hastily } from "../../support/HastyClock.ts"
import { giveFileTo, goneOwner, renewing, stranger } from "../../support/Owners.ts"
import { says, ScriptedModel } from "../../support/ScriptedModel.ts"

export const recovery = ({ give = giveFileTo, leave = leaveFile, open, runtime }: Runtimes) => {
  /** A file whose process died while the model answered: one prompt promoted, one waiting. */
  const leftBehind = Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const [filename, copy] = [join(folder, "daybook.db"), join(folder, "left.db")]
    const process = yield* open({ filename })
    const id = yield* Effect.provide(
      Effect.gen(function* () {
        const { id, model } = yield* scene()
        yield* say(id, "first")
        yield* model.request
        yield* say(id, "second", { delivery: "queue", resume: false })
        yield* leave(filename, copy)
        return id
      }),
      process
    )
    return { id, copy }
  })

  it.scopedLive("TU-13: after a death nothing starts by itself, and the session is listed as cut off", () =>
    Effect.gen(function* () {
      const { copy, id } = yield* leftBehind
      yield* give(copy, goneOwner)
      yield* Effect.gen(function* () {
        const sessions = yield* Sessions
        const model = yield* ScriptedModel
        const before = yield* eventTypes(id)
        assert.deepStrictEqual((yield* sessions.interrupted).map(Struct.get("id")), [id])
        assert.deepStrictEqual(yield* sessions.active, [])
        assert.strictEqual((yield* sessions.inbox(id)).length, 1)
        // Resuming says how the last activity ended, continues it, and then takes what waits.
        yield* model.answer(says("hello"))
        yield* model.answer(says("and hello"))
        yield* sessions.resume(id)
        assert.deepStrictEqual(userTexts(yield* model.request), ["first"])
        assert.deepStrictEqual(userTexts(yield* model.request), ["first", "second"])
        assert.deepStrictEqual((yield* eventTypes(id)).slice(before.length, before.length + 2), [
          "session.next.step.failed",
          "session.next.activity.settled"
        ])
        assert.deepStrictEqual(yield* sessions.interrupted, [])
      }).pipe(Effect.provide(runtime({ filename: copy })))
    })
  )

  it.scopedLive("TU-13: a session that a living process works on is not listed as cut off", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const [one, two] = [yield* open({ filename }), yield* open({ filename })]
      const interrupted = Effect.flatMap(Sessions, (sessions) => sessions.interrupted)
      yield* Effect.provide(
        Effect.gen(function* () {
          const { id } = yield* newSession()
          yield* say(id, "hi")
          yield* (yield* ScriptedModel).request
        }),
        one
      )
      assert.deepStrictEqual(yield* Effect.provide(interrupted, one), [])
      assert.deepStrictEqual(yield* Effect.provide(interrupted, two), [])
    })
  )

  it.scopedLive(
    "EX-404: an activity is shown as interrupted if its owner is gone, and as running if that may live",
    () =>
      Effect.gen(function* () {
        const { copy, id } = yield* leftBehind
        for (const [owner, state, error] of [
          [stranger, "running", undefined],
          [goneOwner, "interrupted", "process.ended"]
        ] as const) {
          yield* give(copy, owner)
          yield* Effect.gen(function* () {
            const sessions = yield* Sessions
            const before = yield* eventTypes(id)
            const other = yield* newSession()
            const found = yield* OwnerRows.find([yield* sessions.get(id), other])
            assert.deepStrictEqual(
              found.map(({ activity }) => [activity?.state, activity?.error?.type]),
              [
                [state, error],
                [undefined, undefined]
              ]
            )
            assert.deepStrictEqual(yield* eventTypes(id), before)
          }).pipe(Effect.provide(runtime({ filename: copy })))
        }
      })
  )

  it.scopedLive(
    "EX-760: `get` and `list` show an activity without a living owner as interrupted, and write nothing",
    () =>
      Effect.gen(function* () {
        const { copy, id } = yield* leftBehind
        for (const [owner, state] of [
          [stranger, "running"],
          [goneOwner, "interrupted"]
        ] as const) {
          yield* give(copy, owner)
          yield* Effect.gen(function* () {
            const sessions = yield* Sessions
            const before = yield* eventTypes(id)
            const { items } = yield* sessions.list()
            const states = [yield* sessions.get(id), ...items].map(({ activity }) => activity?.state)
            assert.deepStrictEqual(states, [state, state])
            assert.deepStrictEqual(yield* eventTypes(id), before)
          }).pipe(Effect.provide(runtime({ filename: copy })))
        }
      })
  )

  it.scopedLive(
    "EX-E11: with `recovery: resume` a host goes on with what was cut off, and asks nothing of other sessions",
    () =>
      Effect.gen(function* () {
        const { copy, id } = yield* leftBehind
        yield* give(copy, goneOwner)
        const options: Daybook.Options = { filename: copy, recovery: "resume" }
        yield* Effect.gen(function* () {
          const other = yield* newSession()
          yield* (yield* ScriptedModel).answer(says("done"))
          yield* say(other.id, "answered before")
          yield* (yield* Sessions).wait(other.id)
        }).pipe(Effect.provide(runtime({ filename: copy })))
        yield* Effect.gen(function* () {
          const sessions = yield* Sessions
          const model = yield* ScriptedModel
          assert.deepStrictEqual(userTexts(yield* model.request), ["first"])
          assert.deepStrictEqual(yield* sessions.active, [id])
          yield* model.answer(says("hello"))
          assert.deepStrictEqual(userTexts(yield* model.request), ["first", "second"])
          yield* model.answer(says("and hello"))
          yield* sessions.wait(id)
          assert.strictEqual(yield* model.pending, 0)
        }).pipe(Effect.provide(runtime(options)))
      })
  )

  it.scopedLive(
    "EX-E13: what was cut off goes on as the same activity, but not after a second cut without a step between",
    () =>
      Effect.gen(function* () {
        const { copy, id } = yield* leftBehind
        yield* give(copy, goneOwner)
        const again = join(yield* temporaryFolder, "again.db")
        const since = (seq: number) => Effect.map(eventTypes(id), (types) => types.slice(seq))
        const before = yield* Effect.provide(
          Effect.gen(function* () {
            const before = (yield* eventTypes(id)).length
            yield* (yield* ScriptedModel).request
            assert.deepStrictEqual((yield* since(before)).slice(0, 2), [
              "session.next.step.failed",
              "session.next.step.started"
            ])
            yield* leave(copy, again)
            return (yield* eventTypes(id)).length
          }),
          yield* open({ filename: copy, recovery: "resume" })
        )
        yield* give(again, goneOwner)
        yield* Effect.gen(function* () {
          const model = yield* ScriptedModel
          assert.deepStrictEqual(userTexts(yield* model.request), ["first", "second"])
          assert.deepStrictEqual((yield* since(before)).slice(0, 2), [
            "session.next.step.failed",
            "session.next.activity.settled"
          ])
        }).pipe(Effect.provide(runtime({ filename: again, recovery: "resume" })))
      })
  )

  for (const [policy, first] of [
    ["manual", ["first", "second"]],
    ["resume", ["first"]]
  ] as const) {
    it.scopedLive(
      `EX-403, EX-D2: a wake after a death, with \`recovery: ${policy}\`, begins with ${first.at(-1)}`,
      () =>
        Effect.gen(function* () {
          const { copy, id } = yield* leftBehind
          yield* give(copy, goneOwner)
          yield* Effect.gen(function* () {
            const model = yield* ScriptedModel
            yield* say(id, "third", { delivery: "queue" })
            assert.deepStrictEqual(userTexts(yield* model.request), first)
          }).pipe(Effect.provide(runtime({ filename: copy, recovery: policy })))
        })
    )
  }

  /** A file with a session whose process admitted a prompt and died before anything ran. */
  const admittedOnly = Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const id = yield* Effect.provide(
      Effect.gen(function* () {
        const { id } = yield* newSession()
        yield* say(id, "waits", { resume: false })
        yield* newSession()
        return id
      }),
      runtime({ filename })
    )
    return { filename, id }
  })

  const waitingIDs = Effect.flatMap(Sessions, ({ waiting }) =>
    Effect.map(waiting, (found) => found.map(({ id }) => id))
  )

  it.scopedLive("EX-E7: a prompt whose process died before it ran is listed as waiting, and not run by itself", () =>
    Effect.gen(function* () {
      const { filename, id } = yield* admittedOnly
      yield* Effect.gen(function* () {
        const sessions = yield* Sessions
        assert.deepStrictEqual(yield* waitingIDs, [id])
        assert.deepStrictEqual(yield* sessions.interrupted, [])
        assert.deepStrictEqual(yield* sessions.active, [])
        const model = yield* ScriptedModel
        assert.strictEqual(yield* model.pending, 0)
        yield* model.answer(says("hello"))
        yield* sessions.resume(id)
        assert.deepStrictEqual(userTexts(yield* model.request), ["waits"])
        assert.deepStrictEqual(yield* waitingIDs, [])
      }).pipe(Effect.provide(runtime({ filename })))
    })
  )

  it.scopedLive("EX-E11: with `recovery: resume` a prompt whose process died before it ran is answered, once", () =>
    Effect.gen(function* () {
      const { filename, id } = yield* admittedOnly
      yield* Effect.gen(function* () {
        const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
        assert.deepStrictEqual(userTexts(yield* model.request), ["waits"])
        yield* model.answer(says("hello"))
        yield* sessions.wait(id)
        assert.deepStrictEqual(yield* sessions.inbox(id), [])
        assert.strictEqual((yield* sessions.get(id)).activity?.state, "completed")
        assert.strictEqual(yield* model.pending, 0)
      }).pipe(Effect.provide(runtime({ filename, recovery: "resume" })))
    })
  )

  it.scopedLive("EX-E7: prompts that a living process works on are not listed as waiting, and are run once", () =>
    Effect.gen(function* () {
      const filename = join(yield* temporaryFolder, "daybook.db")
      const one = yield* open({ filename, leaseMs: 2_000 })
      const id = yield* Effect.provide(
        Effect.gen(function* () {
          const { id } = yield* newSession()
          yield* say(id, "first")
          yield* (yield* ScriptedModel).request
          yield* say(id, "second", { delivery: "queue", resume: false })
          return id
        }),
        one
      )
      const two = yield* open({ filename, leaseMs: 2_000, recovery: "resume" })
      assert.deepStrictEqual(yield* Effect.provide(waitingIDs, two), [])
      yield* Effect.provide(
        Effect.gen(function* () {
          const [model, sessions] = [yield* ScriptedModel, yield* Sessions]
          yield* model.answer(says("a"))
          assert.deepStrictEqual(userTexts(yield* model.request), ["first", "second"])
          yield* model.answer(says("b"))
          yield* sessions.wait(id)
        }),
        one
      )
      yield* Context.get(two, Sessions).wait(id)
      assert.strictEqual(yield* Context.get(two, ScriptedModel).pending, 0)
    })
  )

  it.scopedLive("TU-13: with `recovery: resume` a session of a living process elsewhere is left to it", () =>
    Effect.gen(function* () {
      const { copy, id } = yield* leftBehind
      yield* give(copy, stranger)
      yield* Effect.gen(function* () {
        const sessions = yield* Sessions
        yield* Effect.forkScoped(renewing)
        assert.strictEqual((yield* Effect.flip(sessions.resume(id)))._tag, "SessionBusy")
        assert.deepStrictEqual(yield* sessions.interrupted, [])
        assert.strictEqual(yield* (yield* ScriptedModel).pending, 0)
      }).pipe(Effect.provide(runtime({ filename: copy, recovery: "resume" })))
    }).pipe(hastily)
  )

  it.scopedLive("PR-6: a wake after a death does not repeat promoted work; it takes what waits", () =>
    Effect.gen(function* () {
      const { copy, id } = yield* leftBehind
      yield* give(copy, goneOwner)
      yield* Effect.gen(function* () {
        const sessions = yield* Sessions
        const model = yield* ScriptedModel
        yield* model.answer(says("hello"))
        yield* say(SessionID.make(id), "third", { delivery: "queue" })
        assert.deepStrictEqual(userTexts(yield* model.request), ["first", "second"])
        yield* model.answer(says("hello"))
        assert.deepStrictEqual(userTexts(yield* model.request), ["first", "second", "third"])
        yield* sessions.wait(id)
        assert.strictEqual(yield* model.pending, 0)
      }).pipe(Effect.provide(runtime({ filename: copy })))
    })
  )

  it.scopedLive("CR-1: a session removed and made again under its id starts from nothing", () =>
    Effect.gen(function* () {
      const sessions = yield* Sessions
      const model = yield* ScriptedModel
      const location = { directory: yield* temporaryFolder }
      for (const text of ["one", "two"]) {
        const { id } = yield* sessions.create({ id: "ses_again", location })
        yield* answerTo(id, text, "hello")
        assert.deepStrictEqual(userTexts(yield* model.request), [text])
        if (text === "one") yield* sessions.remove(id)
      }
    }).pipe(Effect.provide(runtime()))
  )
}
