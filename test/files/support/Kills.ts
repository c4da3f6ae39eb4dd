/**
 * Method: a store grows; a process exports it and is killed before a random file operation, or immediately after it is done.
 * This repeats one to three times on the same files, and the store grows in between. Then an exporter in this process catches
 * up. Each time the tree must equal a fresh export elsewhere, byte for byte with permissions, no file was moved aside, and a
 * verification finds no difference.
 */
import { fork } from "node:child_process"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { verify } from "../../../packages/files/src/verify/Verify.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { temporaryFolder } from "../../support/Database.ts"
import { plausibleLog } from "../../support/PlausibleLogs.ts"
import { program } from "../../support/Program.ts"
import { exportAll, storeAt, tree } from "./Exports.ts"
import { runnerLog } from "./RunnerLogs.ts"

const here = fileURLToPath(new URL(".", import.meta.url))

/** The child's program as one file. */
export const exportProgram = program(join(here, "exportChild.ts"))

/** Exports in a process that is killed before its nth file operation, or before a file is placed; returns whether it ended first. */
export const exportAndKill = (
  program: string,
  filename: string,
  root: string,
  when: number | string
): Effect.Effect<boolean> =>
  Effect.async((resume) => {
    let done = false
    const child = fork(program, [filename, root, String(when)], { stdio: "inherit", execArgv: [] })
    child.on("message", (said) => {
      if (said === "done") done = true
      else resume(Effect.dieMessage(String(said)))
      child.kill("SIGKILL")
    })
    child.on("exit", () => resume(Effect.sync(() => done)))
  })

/** The actions of a round, drawn from its seed. */
const roundOf = (n: number) =>
  fc.record({
    plausible: plausibleLog(`p${n}`, 30),
    runner: runnerLog(`r${n}`),
    /** The file operations before which the processes are killed. */
    at: fc.array(fc.nat(400), { minLength: 1, maxLength: 3 }),
    removes: fc.nat(4)
  })

/** Removes the address: a store has at most one session per address. */
const withoutAddress = (drafts: ReadonlyArray<Draft>): NonEmptyReadonlyArray<Draft> => [
  draft("session.created", { location: { directory: "/root/work" } }),
  ...drafts.slice(1).filter(({ type }) => type !== "session.next.addressed")
]

/** Runs rounds until this many processes were killed; the seed repeats the run. */
export const survives = (kills: number, seed: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const exporting = yield* exportProgram
      const folder = yield* temporaryFolder
      const [filename, root] = [join(folder, "store.db"), join(folder, "ctx")]
      yield* Effect.gen(function* () {
        const log = yield* EventLog
        const living: Array<SessionID> = []
        let [killed, midway, round] = [0, 0, 0]
        while (killed < kills) {
          round += 1
          const [drawn] = fc.sample(roundOf(round), { numRuns: 1, seed: seed + round })
          if (drawn === undefined) break
          for (const [kind, drafts] of [
            ["p", drawn.plausible],
            ["r", drawn.runner]
          ] as const) {
            const id = SessionID.make(`ses_${kind}${round}`)
            yield* log.append(id, withoutAddress(drafts))
            living.push(id)
          }
          // An exported session grows or is removed.
          const [first, ...others] = living
          if (first !== undefined && drawn.removes === 0) {
            yield* log.remove(first)
            living.splice(0, living.length, ...others)
          }
          const goOn = (title: string) =>
            Effect.forEach(living.slice(-4), (id) => log.append(id, [draft("session.next.renamed", { title })]))
          yield* goOn(`round ${round}`)
          for (const nth of drawn.at) {
            if (!(yield* exportAndKill(exporting, filename, root, nth))) midway += 1
            killed += 1
            // The next change differs from the one the killed process was writing.
            yield* goOn(`after ${killed} kills`)
          }
          yield* exportAll({ root, uid: 7 })
          const fresh = join(folder, `fresh-${round}`)
          yield* exportAll({ root: fresh, uid: 7 })
          assert.deepStrictEqual(tree(root), tree(fresh), `seed ${seed}, round ${round}`)
          rmSync(fresh, { recursive: true })
          const found = Chunk.toReadonlyArray(yield* Stream.runCollect(verify({ root, uid: 7 })))
          assert.deepStrictEqual(found, [], `seed ${seed}, round ${round}`)
        }
        // Otherwise the kills came too late to prove anything.
        assert.isAbove(midway, kills / 4)
      }).pipe(Effect.provide(storeAt(filename)))
    })
  )
