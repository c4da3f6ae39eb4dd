/**
 * Method: the process that works on a session is stopped (SIGSTOP) where it is, with the session still its own; another
 * one prompts, waits for the lease to end, and takes over; then the first wakes up. It must store nothing as an owner,
 * its prompts must be there once, and no call may run twice.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { invariants } from "../session/support/Invariants.ts"
import { runtime } from "../session/support/worker.ts"
import { program, startWorker } from "../session/support/Workers.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { readAll } from "../support/Logs.ts"

const sessionID = SessionID.make("ses_stopped")

type Row = { readonly owner_id: string | null; readonly owner_epoch: number }

/** The owner's row, or nothing while the stopped process holds the write lock. */
const ownerOf = (filename: string) =>
  Effect.sync((): Row | undefined => {
    const connection = new Database(filename, { timeout: 50 })
    try {
      connection.exec("BEGIN IMMEDIATE")
      const row = connection.prepare<[], Row>("SELECT owner_id, owner_epoch FROM event_sequence").get()
      connection.exec("ROLLBACK")
      return row
    } catch {
      return undefined
    } finally {
      connection.close()
    }
  })

it.live("WK-12: a process that was stopped beyond its lease stores nothing as an owner when it wakes up", () =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "daybook.db")
    const [script, effects] = [yield* program, `${filename}.effects`]
    const base = { do: "work", filename, sessionID, effects, every: 10_000 } as const
    const first = yield* startWorker(script, { ...base, from: 1, to: 200 })
    let stopped: Row | undefined
    do {
      yield* first.goOn
      assert.match(yield* first.line, /^(ready|ack)/)
      yield* first.pause
      stopped = yield* ownerOf(filename)
    } while (stopped?.owner_id == null)
    const second = yield* startWorker(script, { ...base, from: 1_001, to: 1_010 })
    const said: Array<string> = []
    while (said.at(-1) !== "done") {
      said.push(yield* second.line)
      assert.notMatch(said.at(-1) ?? "", /^(failed|ended)/)
    }
    assert.isAbove((yield* ownerOf(filename))?.owner_epoch ?? 0, stopped.owner_epoch)
    yield* first.goOn
    let line = ""
    while (line !== "done") {
      line = yield* first.line
      assert.match(line, /^(ack|done)/)
    }
    yield* Effect.gen(function* () {
      const called = yield* invariants
      const ran = readFileSync(effects, "utf8").trimEnd().split("\n")
      assert.strictEqual(new Set(ran).size, ran.length)
      assert.includeMembers([...called], ran)
      const admitted = (yield* readAll(sessionID)).filter(({ type }) => type === "session.next.prompt.admitted")
      assert.strictEqual(admitted.length, 210)
    }).pipe(Effect.provide(runtime(filename)))
  }).pipe(Effect.scoped)
)
