/**
 * Kills a process that takes a snapshot, undoes a turn or erases a session, at its n-th file operation or start of git,
 * round after round in one folder and one store. After each kill files are whole, the next run finishes the work, and the
 * store has no fault. A snapshot after a kill is compared with one in a store that never saw a kill.
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Effect, Random } from "effect"
import { storeOf } from "../../../packages/core/src/snapshot/StoreFolder.ts"
import * as Upkeep from "../../../packages/core/src/snapshot/Upkeep.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { childProgram } from "../../support/Child.ts"
import { contents, options, place, project, workTree, write } from "./Repository.ts"
import { changedPaths, take, turn, undo } from "./Snapshotting.ts"

const source = fileURLToPath(new URL("undoChild.ts", import.meta.url))

/** Runs the child to its end; whether it was killed. */
const run = (program: string, ...args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const child = fork(program, args, { execArgv: [], stdio: "inherit" })
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null]
    assert.isTrue(signal === "SIGKILL" || code === 0, `the child ended with ${code}`)
    return signal === "SIGKILL"
  })

type Where = Effect.Effect.Success<typeof place>

/** Some files with other contents, one file more. */
const edit = Effect.fnUntraced(function* (work: string, round: number) {
  const files: Record<string, string> = { [`new/${round}.txt`]: `new ${round}` }
  for (let at = 0; at < 6; at++) if (yield* Random.nextBoolean) files[`${at}.txt`] = `round ${round} file ${at}`
  write(work, files)
})

/** A killed snapshot: the next one equals that of a store without kills. */
const killTake = (program: string, { base, options: given, work }: Where, round: number, point: number) =>
  Effect.gen(function* () {
    yield* edit(work, round)
    const killed = yield* run(program, "take", `${point}`, given.folder, work)
    const { tree } = yield* take(given, work)
    const fresh = yield* take(options(join(base, `fresh-${round}`)), work)
    assert.strictEqual(tree, fresh.tree)
    return killed
  })

/** A killed undo: each file is as before or after it, and the next undo finishes it. */
const killUndo = (program: string, { options: given, work }: Where, round: number, point: number) =>
  Effect.gen(function* () {
    const state = contents(work)
    const pair = yield* turn(given, work, () =>
      write(work, { "0.txt": `undone ${round}`, "1.txt": `undone ${round}`, "deep/new.txt": `${round}` })
    )
    const changed = contents(work)
    const killed = yield* run(program, "undo", `${point}`, given.folder, work, pair.before, pair.after)
    for (const [name, content] of Object.entries(contents(work))) {
      if (name.endsWith(".txt")) assert.include([state[name], changed[name]], content, name)
    }
    const account = yield* undo(given, work, [pair])
    assert.isTrue(account.every((line) => !line.startsWith("conflict")))
    assert.deepStrictEqual(contents(work), state)
    return killed
  })

/** A killed erasure: the snapshots of the other session are kept, and the upkeep finishes it. */
const killForget = (program: string, { options: given, work }: Where, round: number, point: number) =>
  Effect.gen(function* () {
    write(work, { "secret.txt": `secret ${round}` })
    yield* take(given, work, SessionID.make("ses_child"))
    write(work, { "secret.txt": "public" })
    const kept = yield* turn(given, work, () => write(work, { "2.txt": `kept ${round}` }))
    const killed = yield* run(program, "forget", `${point}`, given.folder, work)
    yield* Upkeep.run(given.folder, Number.MAX_SAFE_INTEGER)
    yield* Upkeep.forget(given.folder, SessionID.make("ses_child"))
    assert.deepStrictEqual(yield* changedPaths(given, work, kept), ["2.txt"])
    return killed
  })

const kinds = [
  { kill: killTake, most: 14 },
  { kill: killUndo, most: 24 },
  { kill: killForget, most: 20 }
] as const

/** Goes on until this many processes were killed. */
export const survives = (kills: number, seed: number) =>
  Effect.gen(function* () {
    const { outfile } = yield* childProgram(source)
    const where = yield* place
    const { options: given, work } = where
    project(work, Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`${at}.txt`, `start ${at}`])))
    for (let [round, killed] = [0, 0]; killed < kills; round++) {
      const { kill, most } = kinds[round % kinds.length] ?? kinds[0]
      const point = yield* Random.nextIntBetween(1, most)
      const told = `seed ${seed}, round ${round}, point ${point}`
      const died = yield* Effect.tapErrorCause(kill(outfile, where, round, point), () =>
        Effect.sync(() => console.error(told))
      )
      if (died) killed += 1
      assert.deepStrictEqual(yield* Upkeep.check(given.folder), [], told)
      const left = readdirSync(storeOf(given, yield* workTree(work))).filter((name) => name.startsWith("working-"))
      assert.deepStrictEqual(left, [], told)
    }
  }).pipe(Effect.scoped, Effect.withRandom(Random.make(seed)))
