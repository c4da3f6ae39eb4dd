/** The exporter over real folders and databases: what it writes, when, and that portions make no difference. */
import { existsSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, it } from "@effect/vitest"
import { Chunk, Effect, FastCheck as fc, Fiber, Queue, Stream, TestClock } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { Exporter } from "../../packages/files/src/Exporter.ts"
import { verify } from "../../packages/files/src/verify/Verify.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { cases } from "../support/Cases.ts"
import { temporaryFolder } from "../support/Database.ts"
import { begin, renamed, session, unique } from "../support/Logs.ts"
import { cut, plausibleLog } from "../support/PlausibleLogs.ts"
import { exportAll, exporterAt, storeAt, tree, withStore } from "./support/Exports.ts"
import { runnerLog } from "./support/RunnerLogs.ts"

const folderOf = (id: string) => `home/7/agent/build/session/${id}`
const uid = 7

/** A folder with a database in it, which the effect gets as its store, and a root beside it. */
const read = (root: string, path: string) => readFileSync(join(root, path), "utf8")

const addressed = (name: string, session = "default") =>
  draft("session.next.addressed", { address: { scope: "private", uid, kind: "agent", name, session } })

it.scoped("FI-69: a new session has all its files, with the permissions of its scope", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const id = session("new")
      yield* begin(id)
      assert.deepStrictEqual(yield* exportAll({ root, uid }), { position: 1, sessions: 1 })
      const files = tree(root)
      const house = "home/7/agent/build/session"
      assert.deepStrictEqual(
        Object.entries(files).map(
          ([path, content]) => `${path} ${content.split(" ")[content.startsWith("folder") ? 1 : 0]}`
        ),
        [
          "home 700",
          "home/7 700",
          "home/7/agent 700",
          "home/7/agent/build 700",
          house + " 700",
          `${house}/index 700`,
          `${house}/index/by-cwd 700`,
          `${house}/index/by-cwd/${Object.keys(files)
            .find((path) => path.includes("by-cwd/"))
            ?.slice(-64)} 600`,
          `${house}/index/current 600`,
          `${house}/index/list 600`,
          `${house}/ses_new 700`,
          ...[
            "context 700",
            "created_at 600",
            "cwd 600",
            "events.jsonl 600",
            "messages.jsonl 600",
            "meta.json 600"
          ].map((rest) => `${house}/ses_new/${rest}`),
          `${house}/ses_new/state 600`,
          `${house}/ses_new/updated_at 600`
        ]
      )
      assert.strictEqual(read(root, `${house}/ses_new/state`), "idle\n")
      assert.strictEqual(read(root, `${house}/index/list`), "ses_new\n")
    })
  )
)

it.scoped("FI-69: exporting again without a new event writes nothing", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const id = session("same")
      yield* begin(id, 3)
      yield* exportAll({ root, uid })
      const stamps = () =>
        Object.keys(tree(root)).map((path) => {
          const { ctimeNs, ino } = statSync(join(root, path), { bigint: true })
          return [path, ino, ctimeNs]
        })
      const before = stamps()
      assert.deepStrictEqual(yield* exportAll({ root, uid }), { position: 4, sessions: 0 })
      assert.deepStrictEqual(stamps(), before)
    })
  )
)

/** Appends the portions in turn, exports when told to, and gives the tree and what a fresh export makes. */
const inPortions = (
  logs: ReadonlyArray<readonly [SessionID, NonEmptyReadonlyArray<Draft>]>,
  lengths: ReadonlyArray<number>,
  stops: ReadonlyArray<number>
) =>
  Effect.scoped(
    withStore((root, folder) =>
      Effect.gen(function* () {
        const log = yield* EventLog
        const portions = logs.map(([id, drafts]) => ({ id, runs: [...cut(drafts, lengths)] }))
        let n = 0
        // Within one life of the exporter, and over several.
        const lives = [yield* exporterAt({ root: `${root}-one`, uid })]
        while (portions.some(({ runs }) => runs.length > 0)) {
          for (const { id, runs } of portions) {
            const run = runs.shift()
            if (run === undefined) continue
            yield* log.append(id, run)
            if (stops[n++ % stops.length] === 0) {
              for (const life of lives) yield* life.catchUp
              yield* exportAll({ root, uid })
            }
          }
        }
        for (const life of lives) yield* life.catchUp
        yield* exportAll({ root, uid })
        const fresh = join(folder, "fresh")
        yield* exportAll({ root: fresh, uid })
        const expected = tree(fresh)
        assert.deepStrictEqual(tree(root), expected)
        assert.deepStrictEqual(tree(`${root}-one`), expected)
        assert.deepStrictEqual(Chunk.toReadonlyArray(yield* Stream.runCollect(verify({ root, uid }))), [])
      })
    )
  )

it.effect.prop(
  "FL-8: random logs in random portions, over one life of the exporter or many, make the bytes of a fresh export",
  [
    plausibleLog("a", 40),
    plausibleLog("b", 20),
    fc.array(fc.nat(7), { minLength: 1 }),
    fc.array(fc.nat(3), { minLength: 1 })
  ],
  ([a, b, lengths, stops]) =>
    inPortions(
      [
        [SessionID.make("ses_a"), a],
        [SessionID.make("ses_b"), b]
      ],
      lengths,
      stops
    ),
  { fastCheck: { numRuns: cases(3) } }
)

it.effect.prop(
  "FL-8: what a runner writes, in random portions and with changed addresses, makes the bytes of a fresh export",
  [runnerLog("r"), fc.array(fc.nat(7), { minLength: 1 }), fc.array(fc.nat(3), { minLength: 1 })],
  ([drafts, lengths, stops]) => {
    const [first, ...rest] = drafts
    return first === undefined ? Effect.void : inPortions([[SessionID.make("ses_r"), [first, ...rest]]], lengths, stops)
  },
  { fastCheck: { numRuns: cases(3) } }
)

it.scoped("FI-82: a removed session's files go, with its index and its house, and asides stay", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const [log, gone, stays] = [yield* EventLog, session("gone"), session("stays")]
      yield* log.append(gone, [draft("session.created", { location: { directory: "/a" } }), addressed("coder")])
      yield* begin(stays, 1)
      yield* exportAll({ root, uid })
      assert.isTrue(existsSync(join(root, "home/7/agent/coder/session/default/state")))
      yield* log.remove(gone)
      yield* exportAll({ root, uid })
      assert.isFalse(existsSync(join(root, "home/7/agent/coder")))
      assert.isTrue(existsSync(join(root, folderOf(stays), "state")))
    })
  )
)

it.scoped("FI-82: a session that is made again under its id is exported anew, whatever is seen first", () =>
  withStore((root, folder) =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session("again")]
      yield* begin(id, 5)
      const exporter = yield* exporterAt({ root, uid })
      yield* exporter.catchUp
      yield* log.remove(id)
      yield* begin(id, 1)
      yield* exporter.catchUp
      yield* exportAll({ root: join(folder, "fresh"), uid })
      assert.deepStrictEqual(tree(root), tree(join(folder, "fresh")))
      // At the address of one that was removed, too.
      yield* log.remove(id)
      yield* begin(id, 9)
      yield* log.remove(id)
      yield* exporter.catchUp
      assert.deepStrictEqual(tree(root), {})
    })
  )
)

it.scoped(
  "FI-82: a session that is made again while one export of it is under way has no line of its life before",
  () =>
    withStore((root, folder) =>
      Effect.gen(function* () {
        const [log, id] = [yield* EventLog, session("again")]
        yield* begin(id, 3)
        let remake = Effect.void
        // As another process would, between the look for removals and the read of the log.
        const between = {
          ...log,
          removals: (from?: { readonly after?: number | undefined }) => Effect.tap(log.removals(from), () => remake)
        }
        const exporter = yield* Effect.provideService(exporterAt({ root, uid }), EventLog, between)
        yield* exporter.catchUp
        yield* log.append(id, [renamed("new")])
        remake = Effect.suspend(() => {
          remake = Effect.void
          return Effect.orDie(Effect.asVoid(Effect.zipRight(log.remove(id), begin(id, 9))))
        }).pipe(Effect.provideService(EventLog, log))
        yield* Effect.ignore(exporter.exportSession(id))
        yield* exporter.catchUp
        yield* exportAll({ root: join(folder, "fresh"), uid })
        assert.deepStrictEqual(tree(root), tree(join(folder, "fresh")))
      })
    )
)

it.scoped("FI-81: a session that gets an address moves there whole, and leaves nothing where it was", () =>
  withStore((root, folder) =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session("moves")]
      yield* begin(id, 2)
      yield* exportAll({ root, uid })
      yield* log.append(id, [addressed("coder", "review"), renamed("there")])
      yield* exportAll({ root, uid })
      assert.isFalse(existsSync(join(root, "home/7/agent/build")))
      yield* exportAll({ root: join(folder, "fresh"), uid })
      assert.deepStrictEqual(tree(root), tree(join(folder, "fresh")))
      assert.strictEqual(read(root, "home/7/agent/coder/session/index/current"), "review\n")
    })
  )
)

it.scoped("SC-2: a session of scope temp has no file and is in no index", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session("temp")]
      const address = { scope: "temp", uid, kind: "agent", name: "coder", session: "default" } as const
      yield* log.append(id, [
        draft("session.created", { location: { directory: "/a" } }),
        draft("session.next.addressed", { address })
      ])
      yield* exportAll({ root, uid })
      yield* log.append(id, [renamed("later")])
      yield* exportAll({ root, uid })
      assert.deepStrictEqual(tree(root), {})
    })
  )
)

it.scoped("SC-4: a shared space is readable as its policy says, and its owner's alone without one", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      for (const shared of ["open", "team", "closed"]) {
        const address = { scope: "shared", shared, kind: "agent", name: "coder", session: "default" } as const
        yield* log.append(session(shared), [
          draft("session.created", { location: { directory: "/a" } }),
          draft("session.next.addressed", { address })
        ])
      }
      const umask = process.umask(0o077)
      yield* Effect.addFinalizer(() => Effect.sync(() => process.umask(umask)))
      yield* exportAll({ root, uid, shared: { open: { read: "everyone" }, team: { read: "group" } } })
      const mode = (path: string) => (statSync(join(root, path)).mode & 0o777).toString(8)
      const modes = (space: string) => {
        const folder = `shared/${space}/agent/coder/session`
        return [`shared/${space}`, folder, `${folder}/default/state`, `${folder}/index/list`].map(mode)
      }
      assert.deepStrictEqual(modes("open"), ["755", "755", "644", "644"])
      assert.deepStrictEqual(modes("team"), ["750", "750", "640", "640"])
      assert.deepStrictEqual(modes("closed"), ["700", "700", "600", "600"])
      assert.deepStrictEqual(["shared", ""].map(mode), ["711", "711"])
      // A policy that was taken back closes what was open.
      yield* exportAll({ root, uid })
      assert.deepStrictEqual(modes("open"), ["700", "700", "600", "600"])
      assert.deepStrictEqual(["shared", ""].map(mode), ["700", "700"])
    })
  )
)

it.scoped("FL-9, FI-66: a second exporter of a root is refused at once, and comes in when the first is gone", () =>
  withStore((root) =>
    Effect.gen(function* () {
      yield* begin(session("one"))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const first = yield* exporterAt({ root, uid })
          const refused = yield* Effect.flip(Effect.scoped(exporterAt({ root, uid })))
          assert.strictEqual(refused._tag, "RootBusy")
          yield* first.catchUp
        })
      )
      assert.deepStrictEqual(yield* exportAll({ root, uid }), { position: 1, sessions: 0 })
    })
  )
)

it.scoped("FI-67: a root of another store is refused and left as it is; so is one of a later state", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const root = join(folder, "ctx")
    const on = (name: string) => storeAt(join(folder, name))
    yield* Effect.provide(Effect.zipRight(begin(session("a"), 2), exportAll({ root, uid })), on("a.db"))
    const before = tree(root)
    for (const [name, count] of [
      ["longer.db", 5],
      ["shorter.db", 1]
    ] as const) {
      const refused = yield* Effect.provide(
        Effect.zipRight(begin(session(unique()), count), Effect.flip(exportAll({ root, uid }))),
        on(name)
      )
      assert.strictEqual(refused._tag, "RootOfAnotherStore")
    }
    assert.deepStrictEqual(tree(root), before)
  })
)

it.scoped("FI-67: a root whose last session was removed is known again", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      yield* begin(session("a"))
      yield* begin(session("b"))
      yield* exportAll({ root, uid })
      yield* log.remove(session("b"))
      assert.strictEqual((yield* exportAll({ root, uid })).position, 2)
      assert.strictEqual((yield* exportAll({ root, uid })).position, 2)
    })
  )
)

it.scoped("FI-83: one session is exported at once, wherever the cursor is, and not again when its turn comes", () =>
  withStore((root, folder) =>
    Effect.gen(function* () {
      const [first, wanted] = [session("first"), session("wanted")]
      yield* begin(first, 3)
      yield* begin(wanted, 3)
      const exporter = yield* exporterAt({ root, uid })
      yield* exporter.exportSession(wanted)
      assert.isFalse(existsSync(join(root, folderOf(first))))
      assert.strictEqual(read(root, "home/7/agent/build/session/index/list"), "ses_wanted\n")
      yield* exporter.catchUp
      yield* exportAll({ root: join(folder, "fresh"), uid })
      assert.deepStrictEqual(tree(root), tree(join(folder, "fresh")))
      const missing = yield* Effect.flip(exporter.exportSession("ses_nobody"))
      assert.strictEqual(missing._tag, "SessionNotFound")
      assert.strictEqual((yield* Effect.flip(exporter.exportSession("../x")))._tag, "SessionNotFound")
    })
  )
)

const following = Effect.gen(function* () {
  const exporter = yield* Exporter
  yield* Effect.forkScoped(exporter.follow)
  return exporter
})

it.scopedLive("FI-84: while it follows, what was reached is in the files", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session("live")]
      yield* begin(id)
      const exporter = yield* following
      for (const n of [1, 2, 3, 4, 5]) {
        const [event] = yield* log.append(id, [renamed(`title ${n}`)])
        yield* exporter.reached(event.position)
        assert.include(read(root, `${folderOf(id)}/meta.json`), `"title":"title ${n}"`)
      }
    }).pipe(Effect.provide(Exporter.layer({ root, uid })))
  )
)

it.scopedLive("FI-84: many who wait at once are all told", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const [log, id] = [yield* EventLog, session("many")]
      yield* begin(id)
      const exporter = yield* following
      const events = yield* Effect.forEach(Array.from({ length: 50 }), (_, n) => log.append(id, [renamed(`${n}`)]))
      yield* Effect.forEach(events, ([{ position }]) => exporter.reached(position), { concurrency: "unbounded" })
      assert.include(read(root, `${folderOf(id)}/meta.json`), `"seq":50`)
    }).pipe(Effect.provide(Exporter.layer({ root, uid })))
  )
)

it.scoped("FI-84: without a follower, reaching a place exports up to it", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const [exporter, id] = [yield* Exporter, session("asked")]
      const [event] = yield* begin(id)
      yield* exporter.reached(event.position)
      assert.strictEqual(read(root, `${folderOf(id)}/state`), "idle\n")
    }).pipe(Effect.provide(Exporter.layer({ root, uid })))
  )
)

it.scoped("FI-85: a full disk holds nobody up, is said, and is got over by itself", () =>
  withStore((root) =>
    Effect.gen(function* () {
      let full = true
      const before = (operation: string) => {
        if (full && operation === "write") throw Object.assign(new Error("no space"), { code: "ENOSPC" })
      }
      const [log, id] = [yield* EventLog, session("full")]
      const [event] = yield* begin(id)
      const exporter = yield* exporterAt({ root, uid, before })
      const failed = yield* Effect.flip(exporter.catchUp)
      assert.strictEqual(failed._tag, "FileFailed")
      assert.include(failed.message, "the disk is full; free some space, and the export continues")
      const loop = yield* Effect.fork(exporter.follow)
      yield* TestClock.adjust("1 milli")
      // It returns although nothing is written.
      yield* exporter.reached(event.position)
      assert.isFalse(existsSync(join(root, folderOf(id), "state")))
      full = false
      const [next] = yield* log.append(id, [renamed("room")])
      yield* TestClock.adjust("2 seconds")
      yield* exporter.reached(next.position)
      yield* Fiber.interrupt(loop)
      yield* exporter.catchUp
      assert.include(read(root, `${folderOf(id)}/meta.json`), `"title":"room"`)
    })
  )
)

it.scoped(
  "FI-86: a folder in the way of one session holds up no other, and the session is written when it is gone",
  () =>
    withStore((root, folder) =>
      Effect.gen(function* () {
        const [log, bad, good] = [yield* EventLog, session("bad"), session("good")]
        yield* begin(bad)
        yield* begin(good)
        const exporter = yield* exporterAt({ root, uid })
        yield* exporter.catchUp
        const state = join(root, folderOf(bad), "state")
        rmSync(state)
        yield* Effect.promise(() => import("node:fs/promises").then(({ symlink }) => symlink("/etc/hostname", state)))
        yield* log.append(bad, [renamed("waits")])
        yield* log.append(good, [renamed("goes on")])
        yield* exporter.catchUp
        assert.include(read(root, `${folderOf(good)}/meta.json`), "goes on")
        assert.notInclude(read(root, `${folderOf(bad)}/meta.json`), "waits")
        rmSync(state)
        yield* exporter.catchUp
        yield* exportAll({ root: join(folder, "fresh"), uid })
        assert.deepStrictEqual(tree(root), tree(join(folder, "fresh")))
      })
    )
)

for (const [what, seq] of [
  ["of a session that has files", 2],
  ["that is a session's first", 0]
] as const) {
  it.scoped(`FI-86: an event that cannot be read, ${what}, holds back its session alone, until it is mended`, () =>
    withStore((root, folder) =>
      Effect.gen(function* () {
        const [log, sql] = [yield* EventLog, yield* SqlClient.SqlClient]
        const [damaged, other] = [session("damaged"), session("other")]
        yield* begin(other)
        if (seq > 0) {
          yield* begin(damaged)
          yield* log.append(damaged, [renamed("before")])
          yield* exportAll({ root, uid })
        } else yield* begin(damaged)
        for (const id of [damaged, other, damaged, other]) yield* log.append(id, [renamed("after")])
        const [row] = yield* sql<{ readonly data: string }>`
          SELECT data FROM event WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${damaged}) AND seq = ${seq}`
        yield* sql`UPDATE event SET data = substr(data, 2) WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${damaged}) AND seq = ${seq}`
        const held = yield* Effect.scoped(
          Effect.gen(function* () {
            const exporter = yield* exporterAt({ root, uid })
            const findings = yield* exporter.findings
            const { position } = yield* exporter.catchUp
            yield* log.append(other, [renamed("later")])
            yield* log.append(damaged, [renamed("later")])
            const later = yield* exporter.catchUp
            assert.strictEqual(later.position, position + 2)
            return Chunk.toReadonlyArray(yield* Queue.takeAll(findings))
          })
        )
        // Once, however often it was tried.
        assert.deepStrictEqual(
          held.map(({ kind, path, sessionID }) => ({ kind, path, sessionID })),
          [{ kind: "behind", path: folderOf(damaged), sessionID: damaged }]
        )
        assert.include(held[0]?.details, `event ${seq} of ${damaged}`)
        assert.deepInclude(JSON.parse(read(root, `${folderOf(other)}/meta.json`)), { title: "later" })
        if (seq > 0) assert.deepInclude(JSON.parse(read(root, `${folderOf(damaged)}/meta.json`)), { title: "before" })
        else assert.isFalse(existsSync(join(root, folderOf(damaged))))
        yield* sql`UPDATE event SET data = ${row?.data ?? ""} WHERE session = (SELECT session FROM event_sequence WHERE session_id = ${damaged}) AND seq = ${seq}`
        yield* exportAll({ root, uid })
        yield* exportAll({ root: join(folder, "fresh"), uid })
        assert.deepStrictEqual(tree(root), tree(join(folder, "fresh")))
      })
    )
  )
}

it.scoped("FI-69: rows wait in memory up to 1 MiB, however much of the log is read at once", () =>
  withStore((root) =>
    Effect.gen(function* () {
      const log = yield* EventLog
      const id = session("long")
      yield* begin(id)
      // More than two portions in one page of the log, and each event shorter than what comes alone.
      const text = "x".repeat(60 * 1024)
      const said = (n: number): Draft =>
        draft("session.next.synthetic", { messageID: MessageID.make(`msg_long${n}`), text })
      for (let n = 0; n < 200; n += 20) {
        yield* log.append(id, [said(n), ...Array.from({ length: 19 }, (_, index) => said(n + 1 + index))])
      }
      const path = join(root, folderOf(id), "messages.jsonl")
      const sizes: Array<number> = []
      const before = (operation: string, at: string) => {
        if (operation === "write" && at.endsWith("/messages.jsonl")) sizes.push(statSync(path).size)
      }
      yield* exportAll({ root, uid, before })
      const writes = [...sizes, statSync(path).size].map((size, index) => size - (sizes[index - 1] ?? 0))
      assert.isAtLeast(statSync(path).size, 200 * text.length)
      assert.isAtMost(Math.max(...writes), 1024 * 1024 + 64 * 1024)
      // And not a write for each event.
      assert.isAtMost(sizes.length, 14)
    })
  )
)
