/** What lies under a root in the end: sessions of every scope, with runs, contexts and pictures, some of them removed. */
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Layer, Runtime, Stream } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { verify } from "../../packages/files/src/verify/Verify.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as SqlSessionStore from "../../packages/log/src/store/SqlSessionStore.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { cases } from "../support/Cases.ts"
import { memoryLog, temporaryFolder } from "../support/Database.ts"
import { session } from "../support/Logs.ts"
import { cut } from "../support/PlausibleLogs.ts"
import { framedLog } from "./context/support/FramedLogs.ts"
import { exportAll, exporterAt, storeAt, tree } from "./support/Exports.ts"

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

it.effect(
  "FL-8, PK-6, FI-82: however a session grows, its files are those of a fresh export, and go with it",
  () =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const [folder, id] = [yield* temporaryFolder, SessionID.make("ses_grows")]
      const root = join(folder, "ctx")
      const exporter = yield* exporterAt({ root, uid })
      const runtime = yield* Effect.runtime<EventLog | SessionStore>()
      let n = 0
      const equals = Effect.gen(function* () {
        const fresh = join(folder, `fresh-${n++}`)
        yield* exportAll({ root: fresh, uid })
        assert.deepStrictEqual(tree(root), tree(fresh))
        rmSync(fresh, { recursive: true })
      })
      const property = fc.asyncProperty(
        framedLog("grows"),
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
        fc.nat(40),
        (drafts, lengths, middle) =>
          Effect.gen(function* () {
            for (const [index, portion] of cut(placedAt("grows", drafts), lengths).entries()) {
              yield* log.append(id, portion)
              yield* exporter.catchUp
              if (index === middle) yield* equals
            }
            yield* equals
          }).pipe(
            Effect.ensuring(Effect.orDie(Effect.zipRight(log.remove(id), exporter.catchUp))),
            Effect.zipRight(Effect.sync(() => assert.deepStrictEqual(tree(root), {}))),
            Runtime.runPromise(runtime)
          )
      )
      yield* Effect.promise(() => fc.assert(property, { numRuns: cases(6) }))
    }).pipe(Effect.scoped, Effect.provide(SqlSessionStore.layer.pipe(Layer.provideMerge(memoryLog)))),
  cases(120_000)
)

const at = { assistantMessageID: MessageID.make("msg_0") }
const model = { providerID: "scripted", id: "one" }
const tokens = { input: 3, output: 2, reasoning: 1, cache: { read: 1, write: 0 } }

/** A step of its own, whose request shows results after this place as they are and those up to it as placeholders. */
const stepAfterPruning = (n: number, through: number): NonEmptyReadonlyArray<Draft> => [
  draft("session.next.context.pruned", { through }),
  draft("session.next.request.framed", {
    hash: `frame${n}`,
    baselineSeq: -1,
    system: ["You help."],
    tools: { offered: [], defined: [] },
    settings: { contextWindow: 50_000 }
  }),
  draft("session.next.step.started", { assistantMessageID: MessageID.make(`msg_${n}`), agent: "build", model }),
  draft("session.next.step.ended", {
    assistantMessageID: MessageID.make(`msg_${n}`),
    finish: "stop",
    cost: 0,
    tokens
  })
]

it.scoped("PK-6, FI-52: a folder of the context goes with its last file, after a kill in between as well", () =>
  Effect.gen(function* () {
    const [log, id, root] = [yield* EventLog, SessionID.make("ses_0"), join(yield* temporaryFolder, "ctx")]
    const swap = join(root, "home/7/agent/build/session/ses_0/context/swap")
    const provider = { executed: false }
    yield* log.append(id, [
      draft("session.created", { location: { directory: "/work" } }),
      draft("session.next.step.started", { ...at, agent: "build", model }),
      draft("session.next.tool.input.started", { ...at, callID: "call_0", name: "read" }),
      draft("session.next.tool.input.ended", { ...at, callID: "call_0", text: "{}" }),
      draft("session.next.tool.called", { ...at, callID: "call_0", tool: "read", input: {}, provider }),
      draft("session.next.tool.success", {
        ...at,
        callID: "call_0",
        structured: {},
        content: [{ type: "text", text: "a result ".repeat(400) }],
        provider
      }),
      draft("session.next.step.ended", { ...at, finish: "stop", cost: 0, tokens })
    ])
    let killed = false
    const before = (operation: string, path: string) => {
      if (operation !== "remove" || !path.endsWith("/context/swap") || killed) return
      killed = true
      throw Object.assign(new Error("killed"), { code: "EIO" })
    }
    for (const [n, through] of [5, -1, 5, -1].entries()) {
      yield* log.append(id, stepAfterPruning(n + 1, through))
      // Of the first two, one export ends before it removes the folder.
      yield* Effect.either(exportAll({ root, uid, before }))
      yield* exportAll({ root, uid })
      assert.strictEqual(existsSync(swap), through === 5)
    }
    assert.isTrue(killed)
    mkdirSync(swap)
    yield* exportAll({ root, uid })
    assert.isFalse(existsSync(swap))
    yield* log.remove(id)
    yield* exportAll({ root, uid })
    assert.deepStrictEqual(tree(root), {})
  }).pipe(Effect.provide(SqlSessionStore.layer.pipe(Layer.provideMerge(memoryLog))))
)
