/** `daybook stats`. */
import { mkdirSync, readFileSync } from "node:fs"
import { dirname } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Store from "../../packages/log/src/Store.ts"
import { session } from "../support/Logs.ts"
import { begun } from "../support/Pruning.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

const Planned = Schema.Struct({ total: Schema.Struct({ events: Schema.Int, frees: Schema.Int }) })

it.scopedLive(
  "CL-194, CL-195: stats prints sizes of the database or of a session, as text and JSON, and changes nothing",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      yield* here.run(["prompt", "--no-run", "--session", "one", "hello"])
      yield* here.run(["prompt", "--no-run", "--session", "two", "hello"])
      const before = readFileSync(here.database)
      const text = yield* here.run(["stats"])
      assert.match(text.stdout, /^file [\d.]+ KB, write-ahead log [^]*2 sessions, \d+ events[^]*tables, with indexes\n/)
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

it.scopedLive(
  "CL-196: stats says what a prune without a bound would remove, and labels what that frees as an estimate",
  () =>
    Effect.gen(function* () {
      const here = yield* place
      const ids = [session("first"), session("second")]
      mkdirSync(dirname(here.database), { recursive: true })
      yield* Effect.provide(
        Effect.forEach(ids, (id) => begun(id, 6)),
        Store.layer({ filename: here.database })
      )
      const planned = jsonLines((yield* here.run(["prune", "--to", "100000", "--json"])).stdout).at(-1)
      const { events, frees } = Schema.decodeUnknownSync(Planned)(planned).total
      const [all] = jsonLines((yield* here.run(["stats", "--json"])).stdout)
      assert.deepStrictEqual(all?.["prune"], (planned as { readonly total: unknown }).total)
      const [one] = jsonLines((yield* here.run(["stats", "ses_first", "--json"])).stdout)
      assert.deepInclude(one?.["prune"], { sessions: 1, events: events / 2 })
      const { stdout } = yield* here.run(["stats"])
      assert.match(
        stdout,
        new RegExp(`prune can remove ${events} events of 2 sessions, .* free an estimated [\\d.]+ KB\n`)
      )
      assert.isAbove(frees, 0)
    })
)
