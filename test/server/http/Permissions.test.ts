/** Permissions of tools over TCP, with the asker of a runtime. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Schema, TestClock } from "effect"
import { OpenPermission } from "../../../packages/api/src/group/WorkApi.ts"
import {
  Answer,
  PermissionAsker,
  type PermissionRequest
} from "../../../packages/core/src/permission/PermissionAsker.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import { issue } from "../../../packages/server/src/http/Tokens.ts"
import * as Asks from "../../../packages/server/src/shared/Asks.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { answer, post, token } from "./support/ServedApi.ts"

const sessionID = SessionID.make("ses_1")

const request: PermissionRequest = {
  sessionID,
  callID: "call_1",
  tool: "bash",
  agent: "build",
  location: { directory: "/work" },
  permission: "bash",
  resources: ["rm -r build"],
  title: "rm -r build",
  subject: { type: "command", command: "rm -r build", folder: "/work", warnings: [] },
  notes: [],
  always: []
}

const decodeOpen = Schema.decodeUnknown(Schema.Array(OpenPermission))

/** A server whose permissions are asked of its clients. */
const servedWith = (options: Parameters<typeof Asks.make>[0]) =>
  Effect.sync(() => {
    const asks = Asks.make(options)
    return Layer.merge(ServedApi.layer({ permissionAsker: asks.layer }, {}, { asks }), asks.layer)
  })

const served = servedWith({})

const asked = Effect.fnUntraced(function* (more: Partial<PermissionRequest> = {}) {
  const fiber = yield* Effect.fork((yield* PermissionAsker).ask({ ...request, ...more }))
  yield* Effect.yieldNow()
  const { body } = yield* answer(`/sessions/${sessionID}/permissions`)
  const [open] = yield* decodeOpen(body)
  return { fiber, open, path: `/sessions/${sessionID}/permissions/${open?.ask}` }
})

it.scopedLive("HT-37: an open permission is shown whole, and the first decision counts", () =>
  Effect.gen(function* () {
    const { fiber, open, path } = yield* asked()
    assert.deepEqual({ ...open }, { ask: open?.ask, askedAt: open?.askedAt, ...request })
    assert.deepEqual((yield* answer("/permissions")).body, [open])
    assert.strictEqual((yield* post(path, { decision: "once" })).status, 204)
    assert.deepEqual(yield* Fiber.join(fiber), Answer.Once())
    const again = yield* post(path, { decision: "decline" })
    assert.strictEqual(again.status, 409)
    assert.deepInclude(again.body, { _tag: "PermissionClosed", decision: "once" })
    assert.deepEqual((yield* answer(`/sessions/${sessionID}/permissions`)).body, [])
  }).pipe(Effect.provide(Layer.unwrapEffect(served)))
)

it.scopedLive("HT-37: a permission for one call is not kept, and one with patterns can be", () =>
  Effect.gen(function* () {
    const { fiber, path } = yield* asked()
    const kept = yield* post(path, { decision: "always" })
    assert.strictEqual(kept.status, 400)
    assert.deepInclude(kept.body, { _tag: "InvalidInput", field: "decision" })
    yield* post(path, { decision: "correct", message: "keep it" })
    assert.deepEqual(yield* Fiber.join(fiber), Answer.Correct({ message: "keep it" }))
    const other = yield* asked({ always: ["rm -r *"] })
    yield* post(other.path, { decision: "always", resources: ["rm -r build"] })
    assert.deepEqual(yield* Fiber.join(other.fiber), Answer.AlwaysFor({ resources: ["rm -r build"] }))
  }).pipe(Effect.provide(Layer.unwrapEffect(served)))
)

it.scopedLive("HT-37: who may prompt may not decide", () =>
  Effect.gen(function* () {
    const { fiber, path } = yield* asked()
    const authorization = `Bearer ${issue(token, { scope: "prompt" })}`
    assert.strictEqual((yield* post(path, { decision: "once" }, { authorization })).status, 403)
    assert.notStrictEqual((yield* Fiber.status(fiber))._tag, "Done")
    yield* post(path, { decision: "decline" })
    assert.deepEqual(yield* Fiber.join(fiber), Answer.Decline())
  }).pipe(Effect.provide(Layer.unwrapEffect(served)))
)

/** A permission that is asked without a server. */
const askedAlone = Effect.fnUntraced(function* (options: Parameters<typeof Asks.make>[0]) {
  const asks = Asks.make(options)
  const asking = Effect.flatMap(PermissionAsker, ({ ask }) => ask(request))
  const fiber = yield* Effect.fork(Effect.provide(asking, asks.layer))
  yield* Effect.yieldNow()
  return { asks, fiber, ask: asks.all()[0]?.ask ?? "" }
})

it.effect("HT-480: a permission waits for a decision without a limit", () =>
  Effect.gen(function* () {
    const { ask, asks, fiber } = yield* askedAlone({})
    yield* TestClock.adjust("1000 days")
    assert.strictEqual(asks.answer(sessionID, ask, Answer.Once()), "taken")
    assert.deepEqual(yield* Fiber.join(fiber), Answer.Once())
  })
)

it.effect("HT-480: a limit of more days than a timer of the system counts holds to its end", () =>
  Effect.gen(function* () {
    const { asks, fiber } = yield* askedAlone({ patience: "60 days" })
    yield* TestClock.adjust("59 days")
    assert.lengthOf(asks.all(), 1)
    yield* TestClock.adjust("1 day")
    assert.deepEqual(yield* Fiber.join(fiber), Answer.Expired({ waited: Duration.toMillis("60 days") }))
  })
)

it.scoped("HT-480: with a limit a permission says how much time is left, and is refused when it is over", () =>
  Effect.gen(function* () {
    const { fiber, open, path } = yield* asked()
    const waited = Duration.toMillis("3 minutes")
    assert.strictEqual(open?.timeLeftMs, waited)
    yield* TestClock.adjust("1 minute")
    const { body } = yield* answer("/permissions")
    assert.deepEqual(body, [{ ...open, timeLeftMs: Duration.toMillis("2 minutes") }])
    yield* TestClock.adjust("2 minutes")
    assert.deepEqual(yield* Fiber.join(fiber), Answer.Expired({ waited }))
    const late = yield* post(path, { decision: "once" })
    assert.strictEqual(late.status, 409)
    assert.deepInclude(late.body, { _tag: "PermissionClosed", decision: "expired" })
  }).pipe(Effect.provide(Layer.unwrapEffect(servedWith({ patience: "3 minutes" }))))
)
