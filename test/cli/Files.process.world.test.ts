/** `daybook files` over sessions that prompts left, and `ctx` beside it. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import Sqlite from "better-sqlite3"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as Store from "../../packages/log/src/Store.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"
import { everyPath, houseOf } from "./support/SessionTree.ts"

beforeAll(() => void build())

/** A place with one session, answered by the offline model, and its files. */
const exported = Effect.gen(function* () {
  const here = yield* place
  writeFileSync(join(here.cwd, "notes.txt"), "some notes")
  yield* here.run(["prompt", "--session", "fix", "Read notes.txt"])
  const root = join(here.root, "data", "ctx")
  const ended = yield* here.run(["files", "export"])
  const [session] = jsonLines((yield* here.run(["sessions", "--json"])).stdout)
  const id = String(session?.["id"])
  return { here, root, ended, id, folder: join(houseOf(root, "build"), id) }
})

const contents = (root: string) =>
  everyPath(root)
    .filter((path) => !path.includes(".daybook") && !path.includes(".aside."))
    .flatMap((path) => {
      try {
        return [[path, readFileSync(path, "latin1")]]
      } catch {
        return [[path, "folder"]]
      }
    })

describe("files", () => {
  it.scopedLive("CL-111: export writes what ctx reads, and says how much", () =>
    Effect.gen(function* () {
      const { ended, folder, here, id, root } = yield* exported
      assert.deepStrictEqual(
        [ended.code, ended.stdout, ended.stderr],
        [0, `1 session brought up to date at ${root}\n`, ""]
      )
      assert.isTrue(existsSync(join(folder, "messages.jsonl")))
      const shown = (yield* here.ctx(["history", "build"])).stdout
      assert.match(
        shown,
        /^## user .*\n\nRead notes\.txt\n\n## assistant [^]*→ read \{"path":"notes\.txt"\}\n\n← read /
      )
      const listed = jsonLines((yield* here.ctx(["sessions", "build", "--json"])).stdout)
      assert.deepStrictEqual(
        listed.map(({ cwd, session, state, title }) => ({ cwd, session, state, title })),
        [{ session: id, state: "done", cwd: here.cwd, title: "fix" }]
      )
      const latest = (yield* here.ctx(["latest", "build", id])).stdout
      assert.strictEqual(latest, readFileSync(join(folder, "latest.md"), "utf8"))
      const resumed = jsonLines((yield* here.ctx(["resume", "build", "--cwd", here.cwd, "--json"])).stdout)
      assert.strictEqual(resumed[0]?.["session"], id)
    })
  )

  it.scopedLive("CL-111: export goes on where it was left, for all sessions or for one", () =>
    Effect.gen(function* () {
      const { folder, here, root } = yield* exported
      yield* here.run(["prompt", "--session", "fix", "--no-run", "Later"])
      yield* here.run(["prompt", "--session", "other", "hello"])
      const before = readFileSync(join(folder, "messages.jsonl"), "utf8")
      const one = yield* here.run(["files", "export", "--session", "other", "--json"])
      assert.deepStrictEqual(jsonLines(one.stdout), [{ root, sessions: 1 }])
      assert.strictEqual((yield* here.ctx(["sessions", "build"])).stdout.split("\n").length - 1, 2)
      yield* here.run(["resume", "fix"])
      const all = jsonLines((yield* here.run(["files", "export", "--json"])).stdout)[0]
      assert.strictEqual(all?.["root"], root)
      assert.isTrue(readFileSync(join(folder, "messages.jsonl"), "utf8").startsWith(before))
      assert.strictEqual((yield* here.run(["files", "verify"])).code, 0)
    })
  )

  it.scopedLive("CL-206: remove removes the session's files too, and exports nothing", () =>
    Effect.gen(function* () {
      const { here, folder, root } = yield* exported
      yield* here.run(["prompt", "--session", "other", "hello"])
      const removed = yield* here.run(["remove", "fix", "--yes"])
      assert.deepStrictEqual([removed.code, removed.stdout, removed.stderr], [0, "", ""])
      assert.isFalse(existsSync(folder))
      assert.isFalse(everyPath(root).some((path) => path.endsWith(".jsonl")))
      assert.strictEqual((yield* here.run(["files", "export"])).code, 0)
      assert.strictEqual((yield* here.run(["files", "verify"])).code, 0)
      // Without the exporter's record there is nothing to remove, and nothing is written.
      const none = join(here.root, "none")
      assert.strictEqual((yield* here.run(["remove", "other", "--yes"], { env: { DAYBOOK_ROOT: none } })).stderr, "")
      assert.isFalse(existsSync(none))
    })
  )

  it.scopedLive("CL-460: a rebuild that left a session's files as they are is exit code 1, and says how many", () =>
    Effect.gen(function* () {
      const { here } = yield* exported
      assert.strictEqual((yield* here.run(["prune", "fix", "--to", "100000", "--yes", "--force"])).code, 0)
      const { code, stderr } = yield* here.run(["files", "rebuild"])
      assert.strictEqual(code, 1)
      assert.match(stderr, /the files of 1 session were left as they are\n$/)
      const json = jsonLines((yield* here.run(["files", "rebuild", "--json"])).stdout)[0]
      assert.deepInclude(json, { sessions: 0, left: 1 })
      assert.strictEqual((yield* here.run(["files", "verify"])).code, 0)
    })
  )

  it.scopedLive("CL-461: remove of a session that was removed before removes what is left of its files", () =>
    Effect.gen(function* () {
      const { here, folder, id } = yield* exported
      // As after a command that was killed before it removed the files.
      yield* Effect.flatMap(EventLog, (log) => log.remove(SessionID.make(id))).pipe(
        Effect.provide(Store.layer({ filename: here.database }))
      )
      assert.isTrue(existsSync(folder))
      const again = yield* here.run(["remove", id, "--yes"])
      assert.deepStrictEqual(
        [again.code, again.stderr],
        [0, `${id} was removed before; removing what is left of its files\n`]
      )
      assert.isFalse(existsSync(folder))
      assert.strictEqual((yield* here.run(["remove", "ses_never", "--yes"])).code, 3)
    })
  )

  it.scopedLive("CL-206: remove says why files stay, and what removes them", () =>
    Effect.gen(function* () {
      const { here, folder, root } = yield* exported
      const lock = new Sqlite(join(root, ".daybook", String(process.getuid?.() ?? 0), "ledger.sqlite"))
      lock.pragma("locking_mode = EXCLUSIVE")
      lock.exec("BEGIN EXCLUSIVE")
      const removed = yield* here.run(["remove", "fix", "--yes"])
      assert.deepStrictEqual(
        [removed.code, removed.stderr],
        [0, `another process keeps the files at ${root}, and removes those of the session\n`]
      )
      assert.isTrue(existsSync(folder))
      lock.close()
      yield* here.run(["files", "export"])
      assert.isFalse(existsSync(folder))
    })
  )

  it.scopedLive("CL-112: verify names what differs and changes nothing, rebuild mends it and keeps what it found", () =>
    Effect.gen(function* () {
      const { folder, here, root } = yield* exported
      const whole = contents(root)
      const sound = yield* here.run(["files", "verify"])
      assert.deepStrictEqual([sound.code, sound.stdout], [0, ""])
      writeFileSync(join(folder, "latest.md"), "somebody else\n")
      rmSync(join(folder, "state"))
      rmSync(join(folder, "context"), { recursive: true })
      const broken = contents(root)
      const told = yield* here.run(["files", "verify"])
      assert.strictEqual(told.code, 1)
      assert.match(told.stdout, /^changed {2}home\/\S+\/latest\.md {2}/m)
      assert.match(told.stdout, /^missing {2}home\/\S+\/state {2}/m)
      assert.match(told.stderr, /^daybook: \d+ differences at .*; daybook files rebuild repairs them\n$/)
      const paths = jsonLines((yield* here.run(["files", "verify", "--json"])).stdout).map(({ path }) => path)
      assert.isTrue(paths.includes(join(folder, "latest.md").slice(root.length + 1)))
      assert.deepStrictEqual(contents(root), broken)
      const mended = yield* here.run(["files", "rebuild"])
      assert.deepStrictEqual([mended.code, mended.stdout], [0, `1 session compared and repaired at ${root}\n`])
      assert.match(mended.stderr, /latest\.md/)
      assert.deepStrictEqual(contents(root), whole)
      const aside = everyPath(root).find((path) => path.includes("latest.md.aside."))
      assert.strictEqual(aside === undefined ? undefined : readFileSync(aside, "utf8"), "somebody else\n")
      assert.strictEqual((yield* here.run(["files", "verify"])).code, 0)
    })
  )

  it.scopedLive("FL-7: what ctx refuses as torn is whole after a rebuild", () =>
    Effect.gen(function* () {
      const { folder, here, id } = yield* exported
      const file = join(folder, "messages.jsonl")
      const whole = readFileSync(file)
      writeFileSync(file, whole.subarray(0, whole.length - 5))
      const torn = yield* here.ctx(["history", "build", "--json"])
      assert.strictEqual(torn.code, 1)
      assert.include(torn.stderr, "daybook files rebuild")
      yield* here.run(["files", "rebuild", "--session", id])
      assert.strictEqual((yield* here.ctx(["history", "build", "--json"])).stdout, whole.toString("utf8"))
    })
  )

  it.scopedLive("CL-114: what cannot be used is told with its exit code", () =>
    Effect.gen(function* () {
      const { here, root } = yield* exported
      const file = join(here.root, "file")
      writeFileSync(file, "")
      for (const [words, code] of [
        [["files"], 2],
        [["files", "mend"], 2],
        [["files", "export", "more"], 2],
        [["files", "export", "--session", "nobody"], 3],
        [["files", "export", "--root", file], 6],
        [["files", "verify", "--root", join(here.root, "none")], 6]
      ] as const) {
        const ended = yield* here.run(words)
        assert.deepStrictEqual([words, ended.code, ended.stdout], [words, code, ""])
        assert.match(ended.stderr, /^daybook: \S[^\n]*\n$/)
      }
      // The files of one database are not those of another.
      const other = { env: { DAYBOOK_DB: join(here.root, "other.sqlite") } }
      yield* here.run(["prompt", "hello"], other)
      const refused = yield* here.run(["files", "export", "--root", root], other)
      assert.deepStrictEqual([refused.code, refused.stdout], [6, ""])
      assert.include(refused.stderr, "another database")
    })
  )

  it.scopedLive("CL-22: without a database there is nothing to write, and none is made", () =>
    Effect.gen(function* () {
      const here = yield* place
      const ended = yield* here.run(["files", "export"])
      assert.strictEqual(ended.code, 3)
      assert.isFalse(existsSync(join(here.root, "data")))
    })
  )
})

describe("doctor and the session files", () => {
  const about = (stdout: string) => jsonLines(stdout).filter((check) => check["about"] === "files")

  it.scopedLive(
    "FI-91, CL-19: doctor says why the files are not current, since when, and how far they are behind",
    () =>
      Effect.gen(function* () {
        const { here, root } = yield* exported
        // An export is no follower.
        assert.deepStrictEqual(about((yield* here.run(["doctor", "--json"])).stdout), [])
        const say = (state: Record<string, unknown>) =>
          writeFileSync(
            join(root, ".daybook", String(process.geteuid?.()), "follower.json"),
            JSON.stringify({ version: 1, pid: process.pid, position: 0, since: 0, ...state }).padEnd(2_047) + "\n"
          )
        say({ state: "failing", error: "the disk is full; free some space, and the export continues" })
        const failing = yield* here.run(["doctor", "--json"])
        assert.strictEqual(failing.code, 1)
        const [failed] = about(failing.stdout)
        assert.deepInclude(failed, { verdict: "error" })
        assert.match(
          String(failed?.["says"]),
          /not current since 1970-01-01T00:00:00\.000Z: the disk is full; .* \d+ events behind/
        )
        say({ state: "following" })
        const following = yield* here.run(["doctor", "--json"])
        assert.deepInclude(about(following.stdout)[0], { verdict: "ok" })
        // That process is gone.
        say({ state: "following", pid: 2 ** 30 })
        assert.deepInclude(about((yield* here.run(["doctor", "--json"])).stdout)[0], { verdict: "warning" })
      })
  )
})
