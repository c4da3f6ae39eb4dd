/** `daybook undo` as a process, and what other verbs say of snapshots, on a session whose turns changed files. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Stream, Struct } from "effect"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { idOf } from "../../packages/core/src/snapshot/Restore.ts"
import { answerTo, runtime, say } from "../support/Harness.ts"
import { callParts, calls, ScriptedModel, textParts } from "../support/ScriptedModel.ts"
import { project, write } from "../undo/support/Repository.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, type Place, place } from "./support/Process.ts"
import { serveAt } from "./support/RemoteServer.ts"

beforeAll(() => void build())

const agents = [{ name: "free", permissions: [{ permission: "*", resource: "*", verdict: "allow" as const }] }]

/** Runs in a runtime on the database of a place. */
const inside = <A, E>(here: Place, work: Effect.Effect<A, E, Sessions | ScriptedModel>) =>
  Effect.suspend(() => {
    mkdirSync(dirname(here.database), { recursive: true })
    return Effect.provide(work, runtime({ filename: here.database, agents }))
  })

/** A session "fix" whose last prompt changed two files. */
const prepared = (here: Place) =>
  Effect.gen(function* () {
    project(here.cwd, { "a.txt": "1", "b.txt": "1" })
    const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
    const { id } = yield* sessions.create({ location: { directory: here.cwd }, agent: "free", title: "fix" })
    yield* model.answer(calls(callParts("c", "bash", { command: "echo 2 > a.txt; echo 2 > b.txt" })))
    yield* answerTo(id, "change them", "done")
    return id
  }).pipe((work) => inside(here, work))

const snapshotsOf = (here: Place) => join(dirname(here.database), "snapshots")

/** The lines of doctor about snapshots. */
const checks = (here: Place, ...words: ReadonlyArray<string>) =>
  Effect.map(here.run(["doctor", "--json", ...words]), ({ stdout }) =>
    jsonLines(stdout).flatMap(({ about, says, verdict }) => (about === "snapshots" ? [{ verdict, says }] : []))
  )

describe("undo", () => {
  it.scopedLive(
    "CL-303: over a server, undo and redo restore the files of the server's machine, with the same account",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const id = yield* prepared(here)
        const words = yield* serveAt(here)
        const over = (...given: ReadonlyArray<string>) => here.run([...words, "undo", "fix", ...given])
        const content = (name: string) => readFileSync(join(here.cwd, name), "utf8")
        write(here.cwd, { "b.txt": "mine" })
        assert.deepStrictEqual(yield* over("--dry-run"), yield* here.run(["undo", "fix", "--dry-run"]))
        const undone = yield* over("--json")
        assert.strictEqual(undone.code, 1)
        assert.deepInclude(JSON.parse(undone.stdout), { sessionID: id, undone: true, prompt: { text: "change them" } })
        assert.deepStrictEqual([content("a.txt"), content("b.txt")], ["1", "mine"])
        const redone = yield* over("--redo")
        assert.deepStrictEqual([redone.code, redone.stdout], [0, ""])
        assert.include(redone.stderr, "restored   a.txt")
        assert.deepStrictEqual([content("a.txt"), content("b.txt")], ["2\n", "mine"])
        const forced = yield* over("--force")
        assert.strictEqual(forced.code, 0)
        assert.deepStrictEqual([content("a.txt"), content("b.txt")], ["1", "1"])
      })
  )

  it.scopedLive(
    "CL-275 to CL-280: undo restores files, names what it leaves, prints the prompt, and exits with 1 for files it left",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const id = yield* prepared(here)
        write(here.cwd, { "b.txt": "mine" })
        const dry = yield* here.run(["undo", "--dry-run"])
        assert.deepStrictEqual([dry.code, dry.stdout], [1, ""])
        assert.include(dry.stderr, "restored   a.txt")
        assert.include(dry.stderr, "left       b.txt: it changed since the turn")
        assert.strictEqual(readFileSync(join(here.cwd, "a.txt"), "utf8"), "2\n")
        const json = yield* here.run(["undo", "fix", "--dry-run", "--json"])
        assert.deepInclude(JSON.parse(json.stdout), { sessionID: id, undone: false, prompt: { text: "change them" } })
        const undone = yield* here.run(["undo", "fix"])
        assert.deepStrictEqual([undone.code, undone.stdout], [1, "change them\n"])
        assert.strictEqual(readFileSync(join(here.cwd, "a.txt"), "utf8"), "1")
        assert.strictEqual(readFileSync(join(here.cwd, "b.txt"), "utf8"), "mine")
        write(here.cwd, { "a.txt": "mine" })
        const refused = yield* here.run(["undo", "fix", "--redo"])
        assert.deepStrictEqual([refused.code, refused.stdout], [1, ""])
        assert.include(refused.stderr, "a.txt")
        write(here.cwd, { "a.txt": "1" })
        const redone = yield* here.run(["undo", "fix", "--redo"])
        assert.deepStrictEqual([redone.code, redone.stdout], [0, ""])
        assert.include(redone.stderr, "restored   a.txt")
        assert.strictEqual(readFileSync(join(here.cwd, "a.txt"), "utf8"), "2\n")
        assert.strictEqual((yield* here.run(["undo", "fix", "--redo"])).code, 3)
        yield* here.run(["undo", "fix"])
        const nothing = yield* here.run(["undo", "fix"])
        assert.strictEqual(nothing.code, 3)
        assert.include(nothing.stderr, "has no prompt to undo")
        assert.strictEqual((yield* here.run(["undo"], { cwd: here.root })).code, 3)
      }),
    120_000
  )

  it.scopedLive(
    "CL-278: undo exits with 4 while the session runs, and with 1 if files cannot be restored; the history stays",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const sessionID = yield* prepared(here)
        const busy = Effect.gen(function* () {
          const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
          yield* model.answer(Stream.concat(Stream.fromIterable(textParts("t", "2")), Stream.never))
          yield* say(sessionID, "two")
          yield* sessions.events({ sessionID }).pipe(
            Stream.filter(({ type }) => type === "session.next.prompt.promoted"),
            Stream.take(2),
            Stream.runDrain
          )
          const refused = yield* here.run(["undo", "fix"])
          assert.strictEqual(refused.code, 4, refused.stderr)
          yield* sessions.interrupt(sessionID)
        })
        yield* inside(here, busy)
        assert.strictEqual((yield* here.run(["undo", "fix"])).code, 0)
        // Content of the first turn is lost.
        const [store = ""] = readdirSync(snapshotsOf(here)).filter((name) => name.endsWith(".git"))
        const id = idOf(Buffer.from("1"))
        rmSync(join(snapshotsOf(here), store, "objects", id.slice(0, 2), id.slice(2)))
        const failed = yield* here.run(["undo", "fix"])
        assert.strictEqual(failed.code, 1, failed.stderr)
        assert.strictEqual(readFileSync(join(here.cwd, "a.txt"), "utf8"), "2\n")
        const messages = yield* here.run(["messages", "fix"])
        assert.include(messages.stdout, "change them")
      }),
    120_000
  )

  it.scopedLive(
    "CL-281 to CL-283: stats and doctor count snapshots, doctor mends them, and prune erases those of pruned turns",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        yield* prepared(here)
        const [stats] = jsonLines((yield* here.run(["stats", "--json"])).stdout)
        assert.deepInclude(stats?.["snapshots"], { folders: 1, snapshots: 2 })
        assert.match((yield* here.run(["stats"])).stdout, /\nsnapshots of files [\d.]+ KB: 2 snapshots of 1 folder\n/)
        const [fine] = yield* checks(here)
        assert.match(String(fine?.says), /^2 snapshots of 1 folder, [\d.]+ KB$/)
        const pruned = yield* here.run(["prune", "--to", "100000", "--yes"])
        assert.include(pruned.stdout, "2 snapshots of files erased\n")
        const [store] = readdirSync(snapshotsOf(here)).filter((name) => name.endsWith(".git"))
        assert.isUndefined(store)
        const again = yield* here.run(["prune", "--to", "100000", "--yes", "--json"])
        assert.deepInclude(jsonLines(again.stdout)[0], { snapshots: 0 })
        mkdirSync(join(snapshotsOf(here), "broken.git"))
        assert.deepStrictEqual((yield* checks(here)).map(Struct.get("verdict")), ["warning"])
        assert.deepStrictEqual((yield* checks(here, "--fix")).map(Struct.get("verdict")), ["ok"])
        assert.isFalse(existsSync(join(snapshotsOf(here), "broken.git")))
      }),
    120_000
  )
})
