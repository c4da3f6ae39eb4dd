/** Snapshots and restores whose process is killed: the next run neither trips over what is left nor loses anything. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { join as joined } from "../../packages/core/src/snapshot/Change.ts"
import * as Restore from "../../packages/core/src/snapshot/Restore.ts"
import * as SnapshotStore from "../../packages/core/src/snapshot/SnapshotStore.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { childProgram } from "../support/Child.ts"
import { contents, place, repository, workTree, write } from "./support/Repository.ts"

const session = SessionID.make("ses_a")

/** Runs the child to its end; whether it was killed. */
const run = (program: string, ...args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const child = fork(program, args, { execArgv: [], stdio: "inherit" })
    const [, signal] = (await once(child, "exit")) as [number | null, string | null]
    return signal === "SIGKILL"
  })

const source = fileURLToPath(new URL("support/undoChild.ts", import.meta.url))

describe("kills", () => {
  it.scopedLive("UN-31: after a kill during a snapshot, the next snapshot holds everything", () =>
    Effect.gen(function* () {
      const { outfile } = yield* childProgram(source)
      const { options: given, work } = yield* place
      repository(work, { "a.txt": "1" })
      const tree = yield* workTree(work)
      for (const point of [1, 4, 8, 10, 11]) {
        write(work, { "a.txt": `${point}`, [`b${point}.txt`]: "new" })
        assert.isTrue(yield* run(outfile, "take", `${point}`, given.folder, work), `${point}`)
      }
      const first = yield* SnapshotStore.take(given, tree, session)
      write(work, { "a.txt": "last" })
      const second = yield* SnapshotStore.take(given, tree, session)
      const changes = yield* SnapshotStore.changes(given, tree, first.tree, second.tree)
      assert.deepStrictEqual(
        changes.map(({ path }) => path),
        ["a.txt"]
      )
      assert.deepStrictEqual(
        readdirSync(SnapshotStore.storeOf(given, tree)).filter((name) => name.startsWith("working-")),
        []
      )
    })
  )

  it.scopedLive("UN-25, UN-31: a killed undo leaves every file whole, and running it again finishes it", () =>
    Effect.gen(function* () {
      const { outfile } = yield* childProgram(source)
      const { options: given, work } = yield* place
      const start = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`${at}.txt`, `old ${at}`]))
      const end = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`${at}.txt`, `new ${at}`]))
      repository(work, start)
      const tree = yield* workTree(work)
      const state = contents(work)
      const before = yield* SnapshotStore.take(given, tree, session)
      write(work, { ...end, "added/new.txt": "1" })
      const after = yield* SnapshotStore.take(given, tree, session)
      const changed = contents(work)
      for (const point of [3, 8, 9, 14, 15]) {
        assert.isTrue(yield* run(outfile, "undo", `${point}`, given.folder, work, before.tree, after.tree), `${point}`)
        for (const [name, content] of Object.entries(contents(work))) {
          if (name.endsWith(".txt")) assert.include([state[name], changed[name]], content, name)
        }
      }
      const changes = yield* SnapshotStore.changes(given, tree, before.tree, after.tree)
      const outcomes = yield* Restore.apply(given, tree, yield* Restore.plan(given, tree, joined([changes]), false))
      assert.isTrue(outcomes.every(({ action }) => action !== "conflict"))
      assert.deepStrictEqual(contents(work), state)
    })
  )
})
