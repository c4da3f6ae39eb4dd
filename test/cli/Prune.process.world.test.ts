/** `daybook prune` around the real command. Spec: CL-200..CL-208. */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, watch } from "node:fs"
import { dirname, join } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as Store from "../../packages/log/src/Store.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import { contents, session } from "../support/Logs.ts"
import { begun } from "../support/Pruning.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, type Place, place } from "./support/Process.ts"

beforeAll(() => void build())

const [first, second] = [session("first"), session("second")]

/** A place whose database has two sessions of settled turns. */
const stored = Effect.tap(place, ({ database }) => {
  mkdirSync(dirname(database), { recursive: true, mode: 0o700 })
  return Effect.zipRight(begun(first, 20), begun(second, 20)).pipe(Effect.provide(Store.layer({ filename: database })))
})

const rows = ({ database }: Place) => Effect.provide(contents, Store.layer({ filename: database }))

it.scopedLive("CL-200: without --yes it lists what would go, and changes nothing", () =>
  Effect.gen(function* () {
    const here = yield* stored
    const before = yield* rows(here)
    const shown = yield* here.run(["prune", "--to", "100000"])
    assert.strictEqual(shown.code, 0, shown.stderr)
    assert.match(
      shown.stdout,
      /^SESSION +EVENTS +BYTES +UP TO +HELD BACK BY\nses_first +\d+ +[\d.]+ [KM]B +\d+\nses_second /
    )
    assert.match(
      shown.stdout,
      /\n2 sessions, \d+ events, [\d.]+ [KM]B of events; removing them frees an estimated [\d.]+ [KM]B\n$/
    )
    assert.include(shown.stderr, "nothing was removed; --yes removes the events, and the snapshots of files that undo")
    const [line, total] = jsonLines((yield* here.run(["prune", first, "--to", "30", "--json"])).stdout)
    assert.deepInclude(line, { sessionID: first, floor: -1, held: [] })
    assert.deepInclude(total, { total: { ...(total?.["total"] as object), sessions: 1 } })
    assert.deepStrictEqual(yield* rows(here), before)
  })
)

it.scopedLive(
  "CL-201, CL-205: a bound is required, malformed sizes and durations are refused, and options beside --restore",
  () =>
    Effect.gen(function* () {
      const here = yield* stored
      const cases: ReadonlyArray<readonly [words: ReadonlyArray<string>, sentence: RegExp]> = [
        [[], /say what may go: give --keep AGE, --max-size SIZE or --to SEQ/],
        [["--keep", "90"], /--keep: expected a whole number and a unit/],
        [["--keep", "3m"], /--keep: expected a whole number and a unit, h, d, w or y, for example 90d \(m could mean/],
        [["--keep", "1.5d"], /--keep: expected a whole number/],
        [["--max-size", "2gb"], /--max-size: expected a number and a unit/],
        [["--to", "soon"], /--to: expected a sequence number, or compaction/],
        [["--restore", "x", "--keep", "1d"], /--restore FILE takes nothing else/],
        [["--restore", "x", "--yes"], /--restore FILE takes nothing else/],
        [["--restore", "x", "--force"], /--restore FILE takes nothing else/]
      ]
      for (const [words, sentence] of cases) {
        const { code, stderr } = yield* here.run(["prune", ...words])
        assert.strictEqual(code, 2, words.join(" "))
        assert.match(stderr, sentence)
      }
    })
)

it.scopedLive("CL-202, CL-205: --yes archives and prunes; --restore puts the archives back exactly, or refuses", () =>
  Effect.gen(function* () {
    const here = yield* stored
    const [before, archives] = [yield* rows(here), join(here.root, "archives")]
    const done = yield* here.run(["prune", "--to", "100000", "--archive", archives, "--yes"])
    assert.strictEqual(done.code, 0, done.stderr)
    assert.match(
      done.stdout,
      /^2 sessions, \d+ events pruned; the database went from [\d.]+ KB to [\d.]+ KB\narchived: /
    )
    const files = readdirSync(archives).map((name) => join(archives, name))
    assert.strictEqual(files.length, 2)
    for (const file of files) assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    const expired = yield* here.run(["events", first])
    assert.strictEqual(expired.code, 3)
    const messages = yield* here.run(["messages", first, "--limit", "5"])
    assert.include(messages.stdout, "answer 0")
    for (const file of files) {
      const back = yield* here.run(["prune", "--restore", file])
      assert.match(back.stdout, /^\d+ events of ses_\w+ are back\n$/)
    }
    assert.deepStrictEqual(yield* rows(here), before)
    const again = yield* here.run(["prune", "--restore", files[0] ?? ""])
    assert.strictEqual(again.code, 1)
    assert.include(again.stderr, "are in the log already")
  })
)

it.scopedLive("CL-208: events below the floor name the --after with which the remaining ones are shown", () =>
  Effect.gen(function* () {
    const here = yield* stored
    assert.strictEqual((yield* here.run(["prune", first, "--to", "30", "--yes"])).code, 0)
    const { code, stderr, stdout } = yield* here.run(["events", first, "--json"])
    assert.deepStrictEqual([code, stdout], [3, ""])
    const [, floor = ""] = /up to (\d+) were pruned: give --after \1 /.exec(stderr) ?? []
    const remaining = yield* here.run(["events", first, "--after", floor, "--json"])
    assert.strictEqual(remaining.code, 0, remaining.stderr)
    assert.deepInclude(jsonLines(remaining.stdout)[0], { seq: Number(floor) + 1 })
  })
)

/** Completes when a file with such a name appears in the folder. */
const appears = (folder: string, name: RegExp) =>
  Effect.async<void>((resume) => {
    const watcher = watch(folder, (_, found) => {
      if (name.test(found ?? "")) resume(Effect.void)
    })
    return Effect.sync(() => watcher.close())
  })

it.scopedLive("CL-204: the first signal stops a prune, which reports exactly what is pruned; a later one ends it", () =>
  Effect.gen(function* () {
    const here = yield* stored
    const store = Store.layer({ filename: here.database })
    // Its copying takes many steps.
    const last = session("last")
    yield* Effect.provide(begun(last, 150, 1), store)
    const floors = Effect.provide(
      Effect.map(
        Effect.forEach([first, second, last], (id) =>
          SessionStore.pipe(Effect.flatMap(({ snapshot }) => snapshot(id)))
        ),
        (found) => found.map(({ floor }) => floor)
      ),
      store
    )
    const archives = join(here.root, "archives")
    mkdirSync(archives, { mode: 0o700 })
    const begins = yield* Effect.fork(appears(archives, /^ses_last\..*\.part$/))
    yield* Effect.yieldNow()
    const running = yield* here.startAlone(["prune", "--to", "100000", "--archive", archives, "--yes"])
    yield* Fiber.join(begins)
    // No step that writes can end before the signal has arrived.
    const release = yield* here.lock
    yield* running.signal("SIGINT")
    yield* release
    const { code, stderr, stdout } = yield* running.ended
    assert.deepStrictEqual([code, stdout], [130, ""])
    const [one = -1, two = -1, three] = yield* floors
    assert.isAbove(one, 0)
    assert.isAbove(two, 0)
    assert.strictEqual(three, -1)
    assert.include(stderr, `stopped: 2 sessions, ${one + two + 2} events pruned`)
    assert.deepStrictEqual(
      readdirSync(archives).map((name) => name.split(".")[0]),
      [first, second]
    )
    const later = yield* here.run(["prune", "--to", "100000", "--yes"])
    assert.match(later.stdout, /^1 session, \d+ events pruned; /)
    assert.notInclude(yield* floors, -1)
  })
)

it.scopedLive("CL-203: a size that cannot be reached is exit code 1, with the reason", () =>
  Effect.gen(function* () {
    const here = yield* stored
    const { code, stderr, stdout } = yield* here.run(["prune", "--max-size", "1KB", "--yes", "--json"])
    assert.strictEqual(code, 1)
    assert.deepInclude(jsonLines(stdout)[0], { sessions: 2, failed: [], archives: [] })
    assert.match(stderr, /the database has [\d.]+ KB, more than 1\.0 KB: nothing else may go/)
    assert.isFalse(existsSync(join(here.root, "archives")))
  })
)

it.scopedLive("CL-207: files that are behind hold a prune back and are named, until their root is removed", () =>
  Effect.gen(function* () {
    const here = yield* stored
    const root = join(dirname(here.database), "ctx")
    assert.strictEqual((yield* here.run(["files", "export", "--root", root])).code, 0)
    yield* Effect.provide(begun(session("third"), 1), Store.layer({ filename: here.database }))
    const held = yield* here.run(["prune", "--to", "100000", "--json"])
    const third = jsonLines(held.stdout).find(({ sessionID }) => sessionID === "ses_third")
    assert.deepInclude(third, { events: 0, held: [{ name: `files ${root}`, after: -1 }] })
    rmSync(root, { recursive: true })
    const free = yield* here.run(["prune", "--to", "100000", "--json"])
    assert.deepInclude(
      jsonLines(free.stdout).find(({ sessionID }) => sessionID === "ses_third"),
      { held: [] }
    )
  })
)
