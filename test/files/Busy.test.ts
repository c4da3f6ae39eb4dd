/** What lies under a root in the end: sessions of every scope, with runs, contexts and pictures, some of them removed. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { draft, EventLog, SessionID, type Draft } from "@daybook/core"
import { verify } from "@daybook/files"
import { Chunk, Effect, FastCheck as fc, Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { temporaryFolder } from "../support/Database.ts"
import { session } from "../support/Logs.ts"
import { cut } from "../support/PlausibleLogs.ts"
import { framedLog } from "./context/support/FramedLogs.ts"
import { exportAll, exporterAt, storeAt, tree } from "./support/Exports.ts"
import { cases } from "../support/Cases.ts"

const uid = 7

it.scoped("FL-2: after a busy day nothing but the entries of the layout lies under the root", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const root = join(folder, "ctx")
    yield* Effect.gen(function* () {
      const log = yield* EventLog
      const entries = ["messages.jsonl", "events.jsonl", "latest.md", "state", "cwd", "created_at", "updated_at"]
      const context = "budget|pack\\.json|pack\\.md|summary\\.md|todo\\.md|refs\\.jsonl|swap(/index\\.jsonl)?"
      const name = "[a-zA-Z0-9][a-zA-Z0-9._+-]{0,63}"
      const inSession = `${entries.join("|")}|meta\\.json|context(/(${context}|dedup(/(index\\.jsonl|blob(/sha256-[0-9a-f]{64})?))?))?`
      const inHouse = `index(/(list|current|by-cwd(/[0-9a-f]{64})?))?|(?!index(?:/|$))${name}(/(${inSession}))?`
      const layout = new RegExp(
        `^(home(/\\d+)?|shared(/${name})?|(home/\\d+|shared/${name})/(agent(/${name})?|model(/${name}\\.d)?|(agent/${name}|model/${name}\\.d)/session(/(${inHouse}))?))$`
      )
      const places = [
        { scope: "private", uid, kind: "model" },
        { scope: "shared", shared: "team", kind: "agent" },
        { scope: "shared", shared: "team", kind: "model" },
        { scope: "temp", uid, kind: "agent" }
      ] as const
      const logs = fc.sample(framedLog("day"), { numRuns: 6, seed: 8 })
      const [first, ...rest] = logs.toSorted((a, b) => b.length - a.length)[0] ?? []
      assert.isDefined(first)
      yield* log.append(session("day"), [first, ...rest])
      for (const [n, place] of places.entries()) {
        yield* log.append(session(`place${n}`), [
          draft("session.created", { location: { directory: "/a" } }),
          draft("session.next.addressed", { address: { ...place, name: "coder", session: "index-1" } })
        ])
        yield* exportAll({ root, uid, shared: { team: { read: "group" } } })
      }
      yield* log.remove(session("place0"))
      yield* exportAll({ root, uid })
      const paths = Object.keys(tree(root))
      assert.isTrue(paths.some((path) => path.endsWith("/context/pack.json")))
      assert.isTrue(paths.includes("shared/team/model/coder.d/session/index-1/state"))
      assert.deepStrictEqual(
        paths.filter((path) => !layout.test(path)),
        []
      )
      assert.deepStrictEqual(readdirSync(root).toSorted(), [".daybook", "home", "shared"])
    }).pipe(Effect.provide(storeAt(join(folder, "store.db"))))
  })
)

/** The log with an address of its own, given once. */
const placedAt = (name: string, drafts: ReadonlyArray<Draft>): NonEmptyReadonlyArray<Draft> => {
  const address = { scope: "private", uid, kind: "agent", name: "coder", session: name } as const
  const placed = drafts.findIndex(({ type }) => type === "session.next.addressed")
  return [
    draft("session.created", { location: { directory: "/root/work" } }),
    ...drafts.flatMap((one, n): ReadonlyArray<Draft> => {
      if (n === 0) return []
      if (one.type !== "session.next.addressed") return [one]
      return n === placed ? [draft("session.next.addressed", { address, root: "/root" })] : []
    })
  ]
}

it.effect.prop(
  "FL-8, IX-4, PK-1: sessions that run side by side, get addresses late, go and come again make the bytes of a fresh export",
  [
    fc.tuple(framedLog("a"), framedLog("b"), framedLog("c")),
    fc.array(fc.integer({ min: 3, max: 7 }), { minLength: 1 }),
    fc.array(fc.nat(3), { minLength: 1 }),
    fc.uniqueArray(fc.nat(30), { maxLength: 3 })
  ],
  ([logs, lengths, stops, removals]) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const [often, once, fresh] = [join(folder, "often"), join(folder, "once"), join(folder, "fresh")]
      yield* Effect.gen(function* () {
        const log = yield* EventLog
        const living = logs.map((drafts, n) => {
          const all = cut(placedAt(`s${n}`, drafts), lengths)
          return { id: SessionID.make(`ses_${n}`), all, left: [...all] }
        })
        const one = yield* exporterAt({ root: once, uid })
        for (let n = 0; living.some(({ left }) => left.length > 0);) {
          for (const session of living) {
            const portion = session.left.shift()
            if (portion === undefined) continue
            yield* log.append(session.id, portion)
            if (removals.includes(n)) {
              yield* log.remove(session.id)
              session.left = [...session.all]
            }
            if (stops[n++ % stops.length] !== 0) continue
            yield* one.catchUp
            yield* exportAll({ root: often, uid })
          }
        }
        yield* one.catchUp
        for (const root of [often, fresh]) yield* exportAll({ root, uid })
        assert.deepStrictEqual(tree(often), tree(fresh))
        assert.deepStrictEqual(tree(once), tree(fresh))
        assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(verify({ root: once, uid }))), [])
      }).pipe(Effect.provide(storeAt(join(folder, "store.db"))))
    }).pipe(Effect.scoped),
  { fastCheck: { numRuns: cases(3) }, timeout: cases(120_000) }
)
