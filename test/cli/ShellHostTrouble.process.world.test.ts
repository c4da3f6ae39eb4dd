/** What the verbs of live shells do while their host does not answer, or its database is locked. */
import { mkdirSync, readFileSync } from "node:fs"
import { dirname } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect } from "effect"
import { build } from "./support/Bundle.ts"
import { shellPlace } from "./support/ShellHost.ts"

beforeAll(() => void build())

it.scopedLive("SL-183: the second Ctrl-C ends exec while the command is stopped", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    const id = yield* here.create()
    const survivor = "sh -c 'trap \"echo interrupted\" INT; echo begun; while :; do sleep 1000.6; done'"
    const running = yield* here.startShell(["exec", id, survivor])
    yield* running.until("stdout", (text) => text === "begun\n")
    const host = yield* here.pid
    yield* running.signal("SIGINT")
    yield* running.until("stdout", (text) => text.startsWith("begun\ninterrupted\n"))
    // From here on, only the second signal can end the client.
    yield* Effect.acquireUseRelease(
      Effect.sync(() => process.kill(host, "SIGSTOP")),
      () =>
        Effect.gen(function* () {
          yield* running.signal("SIGINT")
          const { code, stderr } = yield* running.ended
          assert.deepStrictEqual([code, stderr], [130, ""])
        }),
      () => Effect.sync(() => process.kill(host, "SIGCONT"))
    )
    assert.strictEqual((yield* here.shell(["exec", yield* here.create(), "echo here"])).stdout, "here\n")
  })
)

it.scopedLive(
  "SL-581: while the database is locked, a command returns its result and says that it is not recorded; the shell stays",
  () =>
    Effect.gen(function* () {
      const here = yield* shellPlace()
      const id = yield* here.create()
      yield* Effect.acquireUseRelease(
        Effect.sync(() => {
          const other = new Sqlite(here.database)
          other.exec("BEGIN IMMEDIATE")
          return other
        }),
        () =>
          Effect.gen(function* () {
            const { code, stderr, stdout } = yield* here.shell(["exec", id, "V=kept; echo ran"])
            assert.deepStrictEqual([code, stdout], [0, "ran\n"])
            assert.match(stderr, /^the command ran, and is not recorded: .*busy/m)
          }),
        (other) => Effect.sync(() => other.close())
      )
      const after = yield* here.shell(["exec", id, "echo $V"])
      assert.deepStrictEqual([after.code, after.stdout, after.stderr], [0, "kept\n", ""])
      assert.strictEqual(readFileSync(here.log, "utf8"), "")
    })
)

it.scopedLive("SL-173: a host whose database is locked does not start, and says so", () =>
  Effect.gen(function* () {
    const here = yield* shellPlace()
    yield* Effect.acquireUseRelease(
      Effect.sync(() => {
        mkdirSync(dirname(here.database), { recursive: true })
        const other = new Sqlite(here.database)
        other.exec("BEGIN EXCLUSIVE")
        return other
      }),
      () =>
        Effect.gen(function* () {
          const { code, stderr } = yield* here.shell(["create"])
          assert.strictEqual(code, 4)
          assert.match(
            stderr,
            /^daybook: the host of the shells did not start: \S+: another process holds the database; /
          )
        }),
      (other) => Effect.sync(() => other.close())
    )
    assert.strictEqual(yield* here.create(), "1_local")
  })
)
