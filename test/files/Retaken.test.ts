/** The record of a running exporter, removed or replaced by other hands: the root has one exporter all the same. */
import { cpSync, existsSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, Exit, Option, Queue, Scope } from "effect"
import { processUid } from "../../packages/files/src/disk/FileCalls.ts"
import * as LedgerFile from "../../packages/files/src/record/LedgerFile.ts"
import { follower } from "../../packages/files/src/record/LedgerFile.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../support/Logs.ts"
import { exportAll, exporterAt, tree, withStore } from "./support/Exports.ts"

const uid = 7

const own = (root: string) => join(root, LedgerFile.ownFolder(processUid))
const record = (root: string) => join(own(root), "ledger.sqlite")
const remove = (path: string) => rmSync(path, { recursive: true })

/** What other hands do to a record. */
const harms: Record<string, (root: string) => void> = {
  "the record is removed": (root) => remove(record(root)),
  "the record and what lies beside it are removed": (root) => {
    for (const suffix of ["", "-wal"]) rmSync(record(root) + suffix, { force: true })
  },
  "the user's folder is removed": (root) => remove(own(root)),
  "the folder of all records is removed": (root) => remove(join(root, LedgerFile.recordsFolder)),
  "the root is removed": (root) => remove(root),
  "a copy stands in its place": (root) => {
    cpSync(record(root), `${record(root)}.copy`)
    remove(record(root))
    cpSync(`${record(root)}.copy`, record(root))
    remove(`${record(root)}.copy`)
  },
  "garbage stands in its place": (root) => {
    remove(record(root))
    writeFileSync(record(root), "no database".repeat(1_000), { mode: 0o600 })
  }
}

for (const [what, harm] of Object.entries(harms)) {
  it.scoped(`FI-66, FI-100: ${what} under a running exporter, and it takes the root again`, () =>
    withStore((root, folder) =>
      Effect.gen(function* () {
        const [log, ids] = [yield* EventLog, ["a", "b"].map(session)]
        for (const id of ids) yield* begin(id)
        const exporter = yield* exporterAt({ root, uid })
        const findings = yield* exporter.findings
        yield* exporter.catchUp
        harm(root)
        for (const id of ids) yield* log.append(id, [renamed("later")])
        yield* exporter.catchUp
        assert.strictEqual((yield* Effect.flip(exporterAt({ root, uid })))._tag, "RootBusy")
        // And what it wrote from then on is in the new record.
        yield* log.append(session("a"), [renamed("last")])
        yield* exporter.catchUp
        const fresh = join(folder, "fresh")
        yield* exportAll({ root: fresh, uid })
        assert.deepStrictEqual(tree(root), tree(fresh))
        assert.isEmpty(Chunk.toReadonlyArray(yield* Queue.takeAll(findings)))
      })
    )
  )
}

it.scoped("FI-100: where another exporter was first, nothing is written beside it, and it keeps its record", () =>
  withStore((root, folder) =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session("a")]
      yield* begin(id)
      const exporter = yield* exporterAt({ root, uid })
      yield* exporter.catchUp
      remove(own(root))
      const scope = yield* Scope.make()
      const other = yield* Scope.extend(exporterAt({ root, uid }), scope)
      yield* other.catchUp
      yield* log.append(id, [renamed("later")])
      const before = tree(root)
      for (const attempt of [exporter.catchUp, exporter.exportSession(id), exporter.rebuild(), exporter.catchUp]) {
        assert.strictEqual((yield* Effect.flip(attempt))._tag, "RootBusy")
      }
      assert.deepStrictEqual(tree(root), before)
      assert.strictEqual((yield* Effect.flip(exporterAt({ root, uid })))._tag, "RootBusy")
      assert.isTrue(existsSync(record(root)))
      yield* other.catchUp
      yield* Scope.close(scope, Exit.void)
      yield* log.append(id, [renamed("last")])
      yield* exporter.catchUp
      const fresh = join(folder, "fresh")
      yield* exportAll({ root: fresh, uid })
      assert.deepStrictEqual(tree(root), tree(fresh))
    })
  )
)

it.scopedLive(
  "FI-91, FI-100: a follower whose record is removed takes the root again by itself, and says that it follows",
  () =>
    withStore((root) =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session("a")]
        yield* begin(id)
        const exporter = yield* exporterAt({ root, uid })
        yield* Effect.forkScoped(exporter.follow)
        yield* exporter.reached(1)
        remove(join(root, LedgerFile.recordsFolder))
        for (const title of ["one", "two"]) {
          const [event] = yield* log.append(id, [renamed(title)])
          yield* exporter.reached(event.position)
        }
        const said = Option.getOrThrow(yield* follower(root, processUid))
        assert.deepInclude(said, { state: "following", pid: process.pid })
        assert.strictEqual((yield* Effect.flip(exporterAt({ root, uid })))._tag, "RootBusy")
      })
    )
)
