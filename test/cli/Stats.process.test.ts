/** `daybook stats`. */
import { readFileSync } from "node:fs"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

it.scopedLive(
  "CL-194, CL-195: stats prints sizes of the database or of a session, as text and JSON, and changes nothing",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "--session", "one", "hello"])
      yield* here.run(["prompt", "--no-run", "--session", "two", "hello"])
      const before = readFileSync(here.database)
      const text = yield* here.run(["stats"])
      assert.match(text.stdout, /^file [\d.]+ kB, write-ahead log [^]*2 sessions, \d+ events[^]*tables, with indexes\n/)
      assert.match(text.stdout, /largest sessions\n +[\d.]+ k?B +\d+ {2}ses_\S+ (?:one|two)\n/)
      const [all] = jsonLines((yield* here.run(["stats", "--json", "--exact"])).stdout)
      const [one] = jsonLines((yield* here.run(["stats", "one", "--json"])).stdout)
      assert.deepInclude(all, { sessions: 2, sampled: false, fileBytes: before.length })
      assert.deepInclude(one, { sessions: 1 })
      assert.strictEqual(Number(all?.["events"]), 2 * Number(one?.["events"]))
      assert.strictEqual((yield* here.run(["stats", "no such"])).code, 3)
      assert.isTrue(before.equals(readFileSync(here.database)))
    })
)
