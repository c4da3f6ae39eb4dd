import { realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, FastCheck, Fiber, Layer, Queue } from "effect"
import type { Agent } from "../../packages/core/src/domain/Agent.ts"
import { deniesAll, literal, matches, type Rule, verdictOf } from "../../packages/core/src/domain/Rule.ts"
import type { Authorization } from "../../packages/core/src/permission/Judgement.ts"
import * as Permission from "../../packages/core/src/permission/Permission.ts"
import {
  Answer,
  layerHeadless,
  PermissionAsker,
  type PermissionRequest
} from "../../packages/core/src/permission/PermissionAsker.ts"
import * as PermissionStore from "../../packages/core/src/permission/PermissionStore.ts"
import { CurrentLocation } from "../../packages/log/src/domain/Values.ts"
import { MessageID, SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { approvals, patterns, source } from "../support/Approvals.ts"

/** Approvals are for a folder that is there. */
const folder = realpathSync(tmpdir())

const rule = (permission: string, resource: string, verdict: Rule["verdict"]): Rule => ({
  permission,
  resource,
  verdict
})

const request = (permissions: ReadonlyArray<Rule>, over: Partial<Authorization> = {}) => {
  const agent: Agent = { name: "tester", permissions }
  return {
    sessionID: SessionID.make("ses_a"),
    messageID: MessageID.make("msg_a"),
    callID: "call_1",
    agent,
    permission: "edit",
    resources: ["src/a.ts"] as const,
    title: "Edit src/a.ts",
    ...over
  }
}

const build = Effect.fnUntraced(function* (
  asker: Layer.Layer<PermissionAsker>,
  store: Layer.Layer<PermissionStore.PermissionStore> = approvals
) {
  const location = Layer.succeed(CurrentLocation, { directory: folder })
  const context = yield* Layer.build(
    Permission.layer.pipe(Layer.provideMerge(store), Layer.provide(asker), Layer.provide(location))
  )
  return {
    permission: Context.get(context, Permission.Permission),
    store: Context.get(context, PermissionStore.PermissionStore)
  }
})

/** Every question waits in a queue until the test answers it. */
const makeDesk = Effect.gen(function* () {
  const questions = yield* Queue.unbounded<{
    readonly asked: PermissionRequest
    readonly answer: Deferred.Deferred<Answer>
  }>()
  const layer = Layer.succeed(PermissionAsker, {
    ask: (asked) =>
      Effect.gen(function* () {
        const answer = yield* Deferred.make<Answer>()
        yield* Queue.offer(questions, { asked, answer })
        return yield* Deferred.await(answer)
      })
  })
  return { questions, layer }
})

/** Few characters, and those that mean something, so that texts collide. */
const fragment = FastCheck.constantFrom("a", "b", "*", "?", "\\", "\n")

describe("rules", () => {
  it.each([
    ["*", "anything\nat all", true],
    ["", "", true],
    ["", "a", false],
    ["src/*", "src/a/b.ts", true],
    ["src/*", "src", false],
    ["?.ts", "a.ts", true],
    ["?.ts", "ab.ts", false],
    ["*.ts", "a.tsx", false],
    ["git *status*", "git -C x status -s", true],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "a-c-b", false],
    ["rm \\*.o", "rm *.o", true],
    ["rm \\*.o", "rm -rf /home/.o", false],
    ["a\\\\b", "a\\b", true],
    ["**", "", true],
    [".+", "xx", false]
  ])("PM-1: pattern %j on %j: %j", (pattern, text, expected) => {
    assert.strictEqual(matches(pattern, text), expected)
  })

  it.prop(
    "PM-1: the literal pattern of a text matches it, and no text that differs",
    [FastCheck.string({ unit: fragment }), FastCheck.string({ unit: fragment })],
    ([text, other]) => {
      assert.isTrue(matches(literal(text), text))
      assert.strictEqual(matches(literal(text), other), text === other)
    }
  )

  it("PM-1: a hostile pattern is answered in time that is bounded by the lengths", () => {
    assert.isFalse(matches("*a".repeat(200) + "b", "a".repeat(20_000)))
  })

  it("PM-1: the last rule that matches decides, for permission patterns too", () => {
    const rules = [rule("*", "*", "allow"), rule("edit", "*", "ask"), rule("edit", "docs/*", "allow")]
    assert.strictEqual(verdictOf(rules, "read", "a"), "allow")
    assert.strictEqual(verdictOf(rules, "edit", "a"), "ask")
    assert.strictEqual(verdictOf(rules, "edit", "docs/a"), "allow")
    assert.isUndefined(verdictOf([], "edit", "a"))
  })

  it("TO-15: only a last rule that denies every resource withdraws a permission", () => {
    assert.isTrue(deniesAll([rule("bash", "*", "allow"), rule("*", "*", "deny")], "bash"))
    assert.isFalse(deniesAll([rule("bash", "*", "deny"), rule("bash", "git *", "allow")], "bash"))
    assert.isFalse(deniesAll([rule("bash", "rm *", "deny")], "bash"))
    assert.isFalse(deniesAll([], "bash"))
  })
})

describe("Permission", () => {
  it.scoped("PM-2: a rule that allows is not asked about; one that denies is refused without asking", () =>
    Effect.gen(function* () {
      const asker = Layer.succeed(PermissionAsker, { ask: () => Effect.dieMessage("asked") })
      const { permission } = yield* build(asker)
      yield* permission.authorize(request([rule("edit", "*", "allow")]))
      const error = yield* Effect.flip(permission.authorize(request([rule("edit", "src/*", "deny")])))
      assert.strictEqual(error._tag === "ToolFailure" && error.type, "permission.denied")
    })
  )

  it.scoped("PM-2: one denied resource refuses the whole, however many are allowed", () =>
    Effect.gen(function* () {
      const asker = Layer.succeed(PermissionAsker, { ask: () => Effect.dieMessage("asked") })
      const { permission } = yield* build(asker)
      const rules = [rule("edit", "*", "allow"), rule("edit", "secret", "deny")]
      const error = yield* Effect.flip(permission.authorize(request(rules, { resources: ["a", "b", "secret"] })))
      assert.include(error.message, `"secret"`)
    })
  )

  it.scoped("PM-2: only the resources that no rule settles are asked about, in one question", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk
      const { permission } = yield* build(desk.layer)
      const fiber = yield* Effect.fork(
        permission.authorize(request([rule("edit", "docs/*", "allow")], { resources: ["docs/a", "b", "c"] }))
      )
      const { answer, asked } = yield* Queue.take(desk.questions)
      assert.deepStrictEqual(asked.resources, ["b", "c"])
      assert.deepStrictEqual(asked.location, { directory: folder })
      yield* Deferred.succeed(answer, Answer.Once())
      yield* Fiber.join(fiber)
    })
  )

  it.scoped("TO-12: with no rule at all the answer is ask, and nobody there refuses with what to do", () =>
    Effect.gen(function* () {
      const { permission } = yield* build(layerHeadless)
      const error = yield* Effect.flip(permission.authorize(request([], { permission: "bash", resources: ["rm *.o"] })))
      assert.strictEqual(error._tag === "ToolFailure" && error.type, "permission.denied")
      for (const words of ["bash", "rm *.o", `"tester"`, `verdict "allow"`, JSON.stringify("rm \\*.o")]) {
        assert.include(error.message, words)
      }
    })
  )

  it.scoped(
    "PM-21: what is allowed for the session is not asked again in it, is in another, and is saved nowhere",
    () =>
      Effect.gen(function* () {
        const desk = yield* makeDesk
        const { permission, store } = yield* build(desk.layer)
        const ask = (over: Partial<Authorization> = {}) => Effect.fork(permission.authorize(request([], over)))
        const first = yield* ask({ always: ["src/*"] })
        yield* Deferred.succeed((yield* Queue.take(desk.questions)).answer, Answer.Session())
        yield* Fiber.join(first)
        yield* Fiber.join(yield* ask({ resources: ["src/other"] }))
        assert.deepStrictEqual(yield* store.list(folder), [])
        for (const over of [
          { sessionID: SessionID.make("ses_other") },
          { permission: "bash" },
          { resources: ["lib/a"] as const }
        ]) {
          const asked = yield* ask(over)
          yield* Deferred.succeed((yield* Queue.take(desk.questions)).answer, Answer.Once())
          yield* Fiber.join(asked)
        }
        const denied = yield* Effect.flip(permission.authorize(request([rule("edit", "src/*", "deny")])))
        assert.strictEqual(denied._tag, "ToolFailure")
      })
  )

  it.scoped("PM-3: patterns that a person typed are saved in place of those of the question", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk
      const { permission, store } = yield* build(desk.layer)
      const fiber = yield* Effect.fork(permission.authorize(request([], { always: ["src/*"] })))
      yield* Deferred.succeed((yield* Queue.take(desk.questions)).answer, Answer.AlwaysFor({ resources: ["src/a*"] }))
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(patterns(yield* store.list(folder)), [{ permission: "edit", resource: "src/a*" }])
    })
  )

  it.scoped(
    "PM-560: patterns that do not match the call are not saved, and the question is asked again with the reason",
    () =>
      Effect.gen(function* () {
        const desk = yield* makeDesk
        const { permission, store } = yield* build(desk.layer)
        const fiber = yield* Effect.fork(permission.authorize(request([], { always: ["src/*"] })))
        yield* Deferred.succeed((yield* Queue.take(desk.questions)).answer, Answer.AlwaysFor({ resources: ["yes"] }))
        const again = yield* Queue.take(desk.questions)
        assert.include(again.asked.notes[0] ?? "", '"yes" does not match this call')
        assert.deepStrictEqual(yield* store.list(folder), [])
        yield* Deferred.succeed(again.answer, Answer.AlwaysFor({ resources: ["src/*"] }))
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(patterns(yield* store.list(folder)), [{ permission: "edit", resource: "src/*" }])
      })
  )

  it.scoped("PM-3: `always` is saved for the project and not asked again; `once` is asked again", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk
      const { permission, store } = yield* build(desk.layer)
      const answerNext = Effect.fnUntraced(function* (answer: Answer) {
        const fiber = yield* Effect.fork(permission.authorize(request([], { always: ["src/*"] })))
        yield* Deferred.succeed((yield* Queue.take(desk.questions)).answer, answer)
        yield* Fiber.join(fiber)
      })
      yield* answerNext(Answer.Once())
      assert.deepStrictEqual(yield* store.list(folder), [])
      yield* answerNext(Answer.Always())
      assert.deepStrictEqual(patterns(yield* store.list(folder)), [{ permission: "edit", resource: "src/*" }])
      yield* permission.authorize(request([], { resources: ["src/other.ts"] }))
      assert.strictEqual(yield* Queue.size(desk.questions), 0)
    })
  )

  it.scoped("PM-3: `always` on a command with a star allows that command and no other", () =>
    Effect.gen(function* () {
      const answers = [Answer.Always(), Answer.Decline()]
      const asker = Layer.succeed(PermissionAsker, {
        ask: () => Effect.sync(() => answers.shift() ?? Answer.Unavailable())
      })
      const { permission } = yield* build(asker)
      const bash = (command: string) => permission.authorize(request([], { permission: "bash", resources: [command] }))
      yield* bash("rm *.o")
      yield* bash("rm *.o")
      const error = yield* Effect.flip(bash("rm -rf / .o"))
      assert.strictEqual(error._tag, "ToolDeclined")
    })
  )

  it.scoped("PM-3: a saved approval never overrides a rule that denies", () =>
    Effect.gen(function* () {
      const { permission, store } = yield* build(layerHeadless)
      yield* store.save(folder, [{ permission: "*", resource: "*" }], source)
      yield* permission.authorize(request([rule("edit", "*", "ask")]))
      const error = yield* Effect.flip(permission.authorize(request([rule("edit", "*", "deny")])))
      assert.strictEqual(error._tag, "ToolFailure")
    })
  )

  it.scoped("PM-4: one session asks one question at a time, and an `always` answers those that wait", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk
      const { permission } = yield* build(desk.layer)
      const fibers = yield* Effect.forEach([1, 2, 3], () => Effect.fork(permission.authorize(request([]))))
      const first = yield* Queue.take(desk.questions)
      // Another session is not held up by this one.
      const other = yield* Effect.fork(permission.authorize(request([], { sessionID: SessionID.make("ses_b") })))
      const second = yield* Queue.take(desk.questions)
      assert.strictEqual(second.asked.sessionID, "ses_b")
      assert.strictEqual(yield* Queue.size(desk.questions), 0)
      yield* Deferred.succeed(first.answer, Answer.Always())
      yield* Fiber.joinAll(fibers)
      assert.strictEqual(yield* Queue.size(desk.questions), 0)
      yield* Deferred.succeed(second.answer, Answer.Once())
      yield* Fiber.join(other)
    })
  )

  it.scoped("PM-4: an interrupted question lets the next one be asked", () =>
    Effect.gen(function* () {
      const desk = yield* makeDesk
      const { permission } = yield* build(desk.layer)
      const first = yield* Effect.fork(permission.authorize(request([])))
      yield* Queue.take(desk.questions)
      const second = yield* Effect.fork(permission.authorize(request([])))
      assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(first)))
      yield* Deferred.succeed((yield* Queue.take(desk.questions)).answer, Answer.Once())
      yield* Fiber.join(second)
    })
  )

  it.scoped("TO-5: a decline is a decline for every caller that has to ask", () =>
    Effect.gen(function* () {
      const asker = Layer.succeed(PermissionAsker, { ask: () => Effect.succeed(Answer.Decline()) })
      const { permission } = yield* build(asker)
      const error = yield* Effect.flip(permission.authorize(request([])))
      assert.strictEqual(error._tag, "ToolDeclined")
    })
  )

  it.scoped("PM-5: approvals that cannot be read or saved cost a question, not the call", () =>
    Effect.gen(function* () {
      const fault = new PermissionStore.PermissionStoreError({ operation: "reading them", cause: "disk" })
      const store = Layer.succeed(PermissionStore.PermissionStore, {
        list: () => Effect.fail(fault),
        listAll: Effect.fail(fault),
        save: () => Effect.fail(fault),
        used: () => Effect.fail(fault),
        decisions: () => Effect.fail(fault),
        revoke: () => Effect.fail(fault)
      })
      const asker = Layer.succeed(PermissionAsker, { ask: () => Effect.succeed(Answer.Always()) })
      const { permission } = yield* build(asker, store)
      yield* permission.authorize(request([]))
    })
  )
})
