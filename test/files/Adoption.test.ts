/**
 * A tree whose record is gone, or older than the tree. Method: random logs are exported up to some event; then the record is
 * deleted or set back to an earlier copy, more events come, and an exporter starts. What must hold: the tree is that of a
 * fresh export, nothing was kept aside, and nothing was reported.
 */
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Layer, Queue, Runtime } from "effect"
import { processUid } from "../../packages/files/src/disk/FileCalls.ts"
import * as LedgerFile from "../../packages/files/src/record/LedgerFile.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import * as SqlSessionStore from "../../packages/log/src/store/SqlSessionStore.ts"
import { cases } from "../support/Cases.ts"
import { memoryLog, temporaryFolder } from "../support/Database.ts"
import { cut } from "../support/PlausibleLogs.ts"
import { framedLog } from "./context/support/FramedLogs.ts"
import { exportAll, exporterAt, tree } from "./support/Exports.ts"

const uid = 7
const store = SqlSessionStore.layer.pipe(Layer.provideMerge(memoryLog))

/** The log with an address of its own from the start. */
const placed = (name: string, drafts: ReadonlyArray<Draft>) =>
  [
    draft("session.created", { location: { directory: "/root/work" } }),
    draft("session.next.addressed", {
      address: { scope: "private", uid, kind: "agent", name: "coder", session: name },
      root: "/root"
    }),
    ...drafts.slice(1).filter(({ type }) => type !== "session.next.addressed")
  ] as const

/** Exports, and gives what was reported. */
const findings = (root: string) =>
  Effect.gen(function* () {
    const exporter = yield* exporterAt({ root, uid })
    const queue = yield* exporter.findings
    yield* exporter.catchUp
    return Chunk.toReadonlyArray(yield* Queue.takeAll(queue)).map(({ details, path }) => `${path}: ${details}`)
  }).pipe(Effect.scoped)

const equalsFresh = Effect.fnUntraced(function* (root: string) {
  const fresh = `${root}-fresh`
  yield* exportAll({ root: fresh, uid })
  assert.deepStrictEqual(tree(root), tree(fresh))
  rmSync(fresh, { recursive: true })
})

it.effect(
  "FI-68, FI-95: a tree whose record is gone or older than it is taken over, wherever the log has come to meanwhile",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const folder = yield* temporaryFolder
      const runtime = yield* Effect.runtime<EventLog | SessionStore>()
      let n = 0
      const property = fc.asyncProperty(
        fc.tuple(framedLog("a"), framedLog("b")),
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
        fc.record({
          first: fc.double({ min: 0, max: 1, noNaN: true }),
          then: fc.double({ min: 0, max: 1, noNaN: true })
        }),
        fc.constantFrom("lost", "older", "killed"),
        (logs, lengths, { first, then }, how) =>
          Effect.gen(function* () {
            const root = join(folder, `ctx-${n++}`)
            const [records, kept] = [join(root, LedgerFile.recordsFolder), `${root}-records`]
            const portions = logs.flatMap((drafts, index) =>
              cut(placed(`s${index}`, drafts), lengths).map((portion) => ({
                id: SessionID.make(`ses_${index}`),
                portion
              }))
            )
            // The sessions grow in turn.
            const ordered = logs.map((_, index) => portions.filter(({ id }) => id === `ses_${index}`))
            const all = portions.flatMap((_, at) => ordered.flatMap((own) => own[at] ?? []))
            const [early, late] = [Math.floor(all.length * first * then), Math.floor(all.length * first)]
            const grow = (from: number, to: number) =>
              Effect.forEach(all.slice(from, to), ({ id, portion }) => log.append(id, portion), { discard: true })
            yield* grow(0, early)
            yield* exportAll({ root, uid })
            cpSync(records, kept, { recursive: true })
            yield* grow(early, late)
            let left = how === "killed" ? 40 : Number.POSITIVE_INFINITY
            const before = () => {
              if (left-- < 0) throw Object.assign(new Error("killed"), { code: "EIO" })
            }
            yield* Effect.ignore(exportAll({ root, uid, before }))
            rmSync(records, { recursive: true })
            if (how === "older") cpSync(kept, records, { recursive: true })
            yield* grow(late, all.length)
            assert.deepStrictEqual(yield* findings(root), [])
            yield* equalsFresh(root)
            for (const path of [root, kept]) rmSync(path, { recursive: true })
          }).pipe(
            Effect.ensuring(
              Effect.forEach(logs, (_, index) => Effect.ignore(log.remove(SessionID.make(`ses_${index}`))))
            ),
            Runtime.runPromise(runtime)
          )
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: cases(5) }))
    }).pipe(Effect.scoped, Effect.provide(store)),
  cases(120_000)
)

it.scoped(
  "FI-68: without its record a long log's tree is taken over untouched, and what was edited is still kept aside",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const root = join(yield* temporaryFolder, "ctx")
      const ids = ["ses_a", "ses_b"].map((id) => SessionID.make(id))
      const said = (id: string, n: number): Draft =>
        draft("session.next.synthetic", { messageID: MessageID.make(`msg_${id}${n}`), text: `text ${n}` })
      for (const id of ids) yield* log.append(id, placed(id, []))
      // More than is taken before values follow.
      for (let n = 0; n < 10_000; n += 500) {
        for (const id of ids) {
          yield* log.append(id, [said(id, n), ...Array.from({ length: 499 }, (_, index) => said(id, n + 1 + index))])
        }
      }
      yield* exportAll({ root, uid })
      const before = tree(root)
      rmSync(join(root, LedgerFile.recordsFolder), { recursive: true })
      let writes = 0
      yield* exportAll({
        root,
        uid,
        before: (operation, path) => {
          if (["write", "rename"].includes(operation) && !path.startsWith(LedgerFile.recordsFolder)) writes += 1
        }
      })
      assert.deepStrictEqual(tree(root), before)
      assert.strictEqual(writes, 0)
      rmSync(join(root, LedgerFile.recordsFolder), { recursive: true })
      const state = "home/7/agent/coder/session/ses_a/state"
      writeFileSync(join(root, state), "theirs\n")
      assert.deepStrictEqual(yield* findings(root), [
        `${state}: another program changed the file; it was kept as ${state}.aside.1 and written again`
      ])
      assert.deepStrictEqual(tree(root, { asides: false }), before)
    }).pipe(Effect.provide(store))
)

it.scoped("FI-68, FI-83: one session of a tree without its record is exported without a word on the others", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const root = join(yield* temporaryFolder, "ctx")
    for (const id of ["ses_a", "ses_b", "ses_c"]) yield* log.append(SessionID.make(id), placed(id, []))
    yield* exportAll({ root, uid })
    const before = tree(root)
    rmSync(join(root, LedgerFile.recordsFolder), { recursive: true })
    const exporter = yield* exporterAt({ root, uid })
    const found = yield* exporter.findings
    yield* exporter.exportSession("ses_b")
    assert.deepStrictEqual(tree(root), before)
    assert.strictEqual(yield* Queue.size(found), 0)
  }).pipe(Effect.provide(store))
)

it.scoped("FI-66: the record of an earlier version, which lay beside, is moved to its user and goes on", () =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const root = join(yield* temporaryFolder, "ctx")
    yield* log.append(SessionID.make("ses_a"), placed("a", []))
    yield* exportAll({ root, uid })
    const own = join(root, LedgerFile.ownFolder(processUid))
    const former = join(root, LedgerFile.recordsFolder, "ledger.sqlite")
    cpSync(join(own, "ledger.sqlite"), former)
    rmSync(own, { recursive: true })
    mkdirSync(own)
    assert.strictEqual((yield* exportAll({ root, uid })).sessions, 0)
    assert.isFalse(existsSync(former))
  }).pipe(Effect.provide(store))
)
