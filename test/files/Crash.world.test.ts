/** Exports that end by SIGKILL, and disks that fail at one operation. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { temporaryFolder } from "../support/Database.ts"
import { begin, renamed } from "../support/Logs.ts"
import { exportAll, exporterAt, storeAt, tree } from "./support/Exports.ts"
import { exportAndKill, exportProgram, survives } from "./support/Kills.ts"
import { told } from "./support/Told.ts"

it.live(
  "FL-8: after kills at random file operations the tree equals a fresh export, and nothing was taken for other hands'",
  () => survives(5, Number(process.env["DAYBOOK_SEED"] ?? 5)),
  240_000
)

it.scopedLive("FI-82: a session removed after a kill leaves no temporary file, whichever file was being written", () =>
  Effect.gen(function* () {
    const outfile = yield* exportProgram
    const folder = yield* temporaryFolder
    const filename = join(folder, "store.db")
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      for (const [n, name] of ["latest.md", "meta.json", "context/dedup/blob/"].entries()) {
        const [id, root] = [SessionID.make(`ses_kill${n}`), join(folder, `root-${n}`)]
        yield* log.append(id, [
          draft("session.created", { location: { directory: "/SECRET" }, title: "SECRET" }),
          ...told(`SECRET words ${n}`)
        ])
        assert.isFalse(yield* exportAndKill(outfile, filename, root, `/${name}`), name)
        const left = Object.entries(tree(root)).filter(([path]) => path.endsWith(".tmp"))
        assert.match(left.map(([path, content]) => `${path} ${content}`).join(), /\.tmp \d+ [^]*(SECRET|kill)/, name)
        yield* log.remove(id)
        yield* exportAll({ root, uid: 7 })
        assert.deepStrictEqual(tree(root), {}, name)
      }
    }).pipe(Effect.provide(storeAt(filename)))
  })
)

const picture = "data:image/png;base64,iVBORw0KGgo="

/** What changes between two exports: rows, a picture, values, an index, a new session, a removed one. */
const change = Effect.gen(function* () {
  const log = yield* EventLog
  const [messageID, prompt] = [
    MessageID.make("msg_asked"),
    { text: "see", files: [{ uri: picture, mime: "image/png" }] }
  ]
  yield* log.append(SessionID.make("ses_grows"), [
    draft("session.next.prompt.admitted", { messageID, prompt, delivery: "queue" }),
    draft("session.next.prompt.promoted", { messageID, prompt, timeCreated: 7 }),
    renamed("grown")
  ])
  yield* begin(SessionID.make("ses_new"), 1)
  yield* log.remove(SessionID.make("ses_gone"))
})

it.scoped(
  "FI-85: whichever file operation fails, the next export in the same process or another makes the tree of a fresh one",
  () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      // The same store for all: the first export of each root ends before the change.
      const filename = join(folder, "store.db")
      const before = Effect.gen(function* () {
        for (const name of ["ses_grows", "ses_gone"]) yield* begin(SessionID.make(name), 2)
      })
      yield* Effect.gen(function* () {
        yield* before
        const roots = Array.from({ length: 10 }, (_, n) => join(folder, `root-${n}`))
        yield* Effect.forEach(roots, (root) => exportAll({ root, uid: 7 }))
        yield* change
        const fresh = join(folder, "fresh")
        yield* exportAll({ root: fresh, uid: 7 })
        let failures = 0
        for (const [n, root] of roots.entries()) {
          let left = 17 * n
          const failing = () => {
            if (left-- === 0) throw Object.assign(new Error("fault"), { code: n % 2 === 0 ? "EIO" : "ENOSPC" })
          }
          yield* Effect.scoped(
            Effect.gen(function* () {
              const exporter = yield* exporterAt({ root, uid: 7, before: failing })
              const first = yield* Effect.either(exporter.catchUp)
              if (first._tag === "Left") {
                failures += 1
                assert.strictEqual(first.left._tag, "FileFailed")
              }
              if (n % 3 === 0) yield* exporter.catchUp
            })
          ).pipe(
            // The record itself cannot be opened.
            Effect.catchTag("RootUnusable", () => Effect.sync(() => void (failures += 1)))
          )
          yield* exportAll({ root, uid: 7 })
          assert.deepStrictEqual(tree(root), tree(fresh), `fault at ${17 * n}`)
        }
        assert.isAbove(failures, 5)
        assert.isTrue(existsSync(join(fresh, "home/7/agent/build/session/ses_grows/context/dedup/blob")))
      }).pipe(Effect.provide(storeAt(filename)))
    }),
  120_000
)
