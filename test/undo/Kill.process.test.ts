/** Snapshots and restores whose process is killed: the next run neither trips over what is left nor loses anything. */
import { fork } from "node:child_process"
import { once } from "node:events"
import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { storeOf } from "../../packages/core/src/snapshot/StoreFolder.ts"
import { childProgram } from "../support/Child.ts"
import { contents, place, project, workTree, write } from "./support/Repository.ts"
import { changedPaths, take, undo } from "./support/Snapshotting.ts"

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
      project(work, { "a.txt": "1" })
      for (const point of [4, 9]) {
        write(work, { "a.txt": `${point}`, [`b${point}.txt`]: "new" })
        assert.isTrue(yield* run(outfile, "take", `${point}`, given.folder, work), `${point}`)
      }
      const first = yield* take(given, work)
      write(work, { "a.txt": "last" })
      const second = yield* take(given, work)
      const changed = yield* changedPaths(given, work, { before: first.tree, after: second.tree })
      assert.deepStrictEqual(changed, ["a.txt"])
      assert.deepStrictEqual(
        readdirSync(storeOf(given, yield* workTree(work))).filter((name) => name.startsWith("working-")),
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
      project(work, start)
      const state = contents(work)
      const before = yield* take(given, work)
      write(work, { ...end, "added/new.txt": "1" })
      const after = yield* take(given, work)
      const changed = contents(work)
      for (const point of [3, 8]) {
        assert.isTrue(yield* run(outfile, "undo", `${point}`, given.folder, work, before.tree, after.tree), `${point}`)
        for (const [name, content] of Object.entries(contents(work))) {
          if (name.endsWith(".txt")) assert.include([state[name], changed[name]], content, name)
        }
      }
      const account = yield* undo(given, work, [{ before: before.tree, after: after.tree }])
      assert.isTrue(account.every((line) => !line.startsWith("conflict")))
      assert.deepStrictEqual(contents(work), state)
    })
  )
})
