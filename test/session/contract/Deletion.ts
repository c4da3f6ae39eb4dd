/** A removed session leaves no byte of its text below the data folder. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { sentence, tracesIn } from "../../log/support/Traces.ts"
import { newSession, type Runtimes, say, scene, temporaryFolder } from "../../support/Harness.ts"
import { ScriptedModel } from "../../support/ScriptedModel.ts"

/** A session with the sentence in its title, a prompt and a kept output. */
const planted = Effect.fnUntraced(function* (folder: string) {
  const { id, sessions } = yield* scene(folder)
  yield* sessions.rename(id, sentence)
  yield* say(id, sentence, { resume: false })
  keep(folder, id)
  return id
})

const keep = (folder: string, id: SessionID) => {
  mkdirSync(join(folder, "tool-output"), { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, "tool-output", `${id}+call_1.txt`), sentence, { mode: 0o600 })
}

export const deletion = ({ open }: Runtimes) => {
  it.scopedLive("TO-128, LG-50: a removed session leaves no byte of its text below the data folder", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const context = yield* open({ filename: join(folder, "daybook.db") })
      const [id, other] = yield* Effect.provide(Effect.all([planted(folder), newSession(folder)]), context)
      keep(folder, other.id)
      yield* Context.get(context, Sessions).remove(id)
      assert.deepStrictEqual(tracesIn(folder), { [`tool-output/${other.id}+call_1.txt`]: 1 })
    })
  )

  for (const by of ["its own process", "another process"] as const) {
    it.scopedLive(`LG-50: ${by} removes a running session: its turn ends and no byte of its text is left`, () =>
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const filename = join(folder, "daybook.db")
        const running = yield* open({ filename, leaseMs: 3_000 })
        const remover = by === "its own process" ? running : yield* open({ filename, leaseMs: 3_000 })
        const model = Context.get(running, ScriptedModel)
        const id = yield* Effect.provide(planted(folder), running)
        yield* Effect.provide(say(id, `${sentence}, again`), running)
        yield* model.request
        assert.isNotEmpty(tracesIn(folder))
        yield* Context.get(remover, Sessions).remove(id)
        assert.deepStrictEqual(tracesIn(folder), {})
        assert.isEmpty(yield* Context.get(running, Sessions).active)
      })
    )
  }

  it.scopedLive("TO-128: kept outputs that a killed removal left behind are deleted at the next start", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const filename = join(folder, "daybook.db")
      const opened = Effect.flatMap(open({ filename }), (context) =>
        Effect.provide(
          Effect.gen(function* () {
            const log = yield* EventLog
            const [id, again] = [yield* planted(folder), yield* newSession(folder)]
            // The commit of a removal, without what follows it.
            for (const removed of [id, again.id]) yield* log.remove(removed)
            yield* (yield* Sessions).create({ id: again.id, location: { directory: folder } })
            keep(folder, again.id)
            return again.id
          }),
          context
        )
      )
      const again = yield* Effect.scoped(opened)
      assert.strictEqual(Object.keys(tracesIn(folder)).length, 2)
      yield* open({ filename })
      assert.deepStrictEqual(tracesIn(folder), { [`tool-output/${again}+call_1.txt`]: 1 })
    })
  )
}
