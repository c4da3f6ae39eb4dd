/** Listing, revoking and auditing approvals, as processes on one database. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { PermissionStore } from "../../packages/core/src/permission/PermissionStore.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import * as ScriptedModel from "../support/ScriptedModel.ts"
import { build } from "./support/Bundle.ts"
import { jsonLines, place } from "./support/Process.ts"

beforeAll(() => void build())

const numbers = (stdout: string) => jsonLines(stdout).map((approval) => approval["number"])

/** A session with three approvals in its folder, one in another, and a decision. */
const prepared = Effect.gen(function* () {
  const here = yield* place
  const other = join(here.root, "other")
  mkdirSync(other)
  yield* here.run(["prompt", "--session", "one", "--no-run", "hello"])
  const id = SessionID.make(String(jsonLines((yield* here.run(["sessions", "--json"])).stdout)[0]?.["id"]))
  yield* Effect.gen(function* () {
    const [store, log] = [yield* PermissionStore, yield* EventLog]
    const source = { sessionID: id, callID: "call_1", agent: "build" }
    const bash = (resource: string) => ({ permission: "bash", resource })
    const hostile = { permission: "own_echo", resource: "*\u001b[2J\u202e", definition: "ab" }
    yield* store.save(here.cwd, [bash("npm test"), bash("make"), hostile], source)
    yield* store.save(other, [bash("make")], source)
    yield* store.used([1])
    yield* log.append(id, [
      draft("session.next.permission.decided", {
        assistantMessageID: MessageID.make("msg_a"),
        callID: "call_1",
        permission: "bash",
        resources: ["echo \u001b]52;c;eA==\u0007"],
        decision: "always",
        patterns: ["npm test"],
        saved: [1]
      })
    ])
  }).pipe(
    Effect.provide(Daybook.layer({ filename: here.database }).pipe(Layer.provide(ScriptedModel.layer()))),
    Effect.orDie
  )
  return { here, id, other }
})

it.scopedLive("CL-170: permissions lists what counts in this folder or in all, safely for a terminal", () =>
  Effect.gen(function* () {
    const { here, id, other } = yield* prepared
    const listed = yield* here.run(["permissions"])
    assert.match(listed.stdout, new RegExp(`^1  .*  ${id}  build  used 1 times, .*  bash +npm test$`, "m"))
    assert.notMatch(listed.stdout, /[\u0000-\u0009\u000b-\u001f\u202e]/)
    assert.deepStrictEqual(numbers((yield* here.run(["permissions", "list", "--json"])).stdout), [1, 2, 3])
    assert.deepStrictEqual(numbers((yield* here.run(["permissions", "--json"], { cwd: other })).stdout), [4])
    const everywhere = yield* here.run(["permissions", "list", "--all"])
    assert.strictEqual(everywhere.stdout.trimEnd().split("\n").length, 4)
    assert.include(everywhere.stdout, other)
  })
)

it.scopedLive(
  "CL-171: revoke takes numbers, permissions and patterns, only in this folder, and wants --yes without a terminal",
  () =>
    Effect.gen(function* () {
      const { here, other } = yield* prepared
      for (const [words, message] of [
        [["revoke"], "nothing to revoke"],
        [["revoke", "1"], "nothing was revoked; give --yes"],
        [["revoke", "1", "nothing", "--yes"], 'approval "nothing" does not exist in this folder'],
        [["revoke", "4", "--yes"], "--all looks in every folder"],
        [["revoke", "n*", "--yes"], 'approval "n*" does not exist'],
        [["list", "more"], "takes no arguments"],
        [["grant"], "use list, revoke or audit"]
      ] as const) {
        const refused = yield* here.run(["permissions", ...words])
        assert.include(refused.stderr, message)
        assert.notStrictEqual(refused.code, 0)
      }
      assert.lengthOf(numbers((yield* here.run(["permissions", "--json"])).stdout), 3)
      const revoked = yield* here.run(["permissions", "revoke", "npm test", "own_echo", "--yes"])
      assert.include(revoked.stderr, "revoked: 1, 3")
      assert.deepStrictEqual(numbers((yield* here.run(["permissions", "--json", "--all"])).stdout), [2, 4])
      yield* here.run(["permissions", "revoke", "bash make", "--yes", "--all"])
      assert.deepStrictEqual(numbers((yield* here.run(["permissions", "--json"], { cwd: other })).stdout), [])
    })
)

it.scopedLive("CL-171: on a terminal revoke shows what it would take back, and only a yes does it", () =>
  Effect.gen(function* () {
    const { here } = yield* prepared
    const answering = Effect.fnUntraced(function* (answer: string) {
      const running = yield* here.start(["permissions", "revoke", "2"], { terminal: { columns: 160, rows: 30 } })
      yield* running.until("stdout", (text) => text.includes("make") && text.includes("Revoke it? [y/N]"))
      yield* running.type(`${answer}\r`)
      return (yield* running.ended).code
    })
    assert.notStrictEqual(yield* answering(""), 0)
    assert.deepStrictEqual(numbers((yield* here.run(["permissions", "--json"])).stdout), [1, 2, 3])
    assert.strictEqual(yield* answering("y"), 0)
    assert.deepStrictEqual(numbers((yield* here.run(["permissions", "--json"])).stdout), [1, 3])
  })
)

it.scopedLive("CL-172: audit shows the decisions in the sessions of this folder, revocations among them", () =>
  Effect.gen(function* () {
    const { here, id, other } = yield* prepared
    yield* here.run(["permissions", "revoke", "1", "--yes"])
    const shown = yield* here.run(["permissions", "audit"])
    const [decided, revoked] = shown.stdout.trimEnd().split("\n")
    assert.match(decided ?? "", new RegExp(`  ${id}  always +bash .*keeps npm test, saved as 1`))
    assert.match(revoked ?? "", /  revoked +bash +npm test +approval 1/)
    assert.notMatch(shown.stdout, /[\u0000-\u0009\u000b-\u001f]/)
    const json = jsonLines((yield* here.run(["permissions", "audit", "--json", "--limit", "1"])).stdout)
    assert.deepStrictEqual(
      json.map((event) => event["type"]),
      ["session.next.permission.revoked"]
    )
    assert.strictEqual((yield* here.run(["permissions", "audit"], { cwd: other })).stdout, "")
    assert.lengthOf(jsonLines((yield* here.run(["permissions", "audit", "--all", "--json"], { cwd: other })).stdout), 2)
  })
)
