import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Ref, Struct } from "effect"
import type { Rule } from "../../packages/core/src/domain/Rule.ts"
import { Answer } from "../../packages/core/src/permission/PermissionAsker.ts"
import { makeMcp, obedient } from "./support/Servers.ts"

const rule = (permission: string, verdict: Rule["verdict"]): Rule => ({ permission, resource: "*", verdict })

describe("permission for a server's tools", () => {
  it.scoped("MC-15: without a rule a person is asked, and learns the tool, the server and the input", () =>
    Effect.gen(function* () {
      const { asked, mcp, said } = yield* makeMcp(
        { own: obedient },
        { rules: [], answer: () => Effect.succeed(Answer.Once()) }
      )
      yield* mcp.ready
      assert.strictEqual(yield* said("own_echo", { said: "hi" }), 'echo: {"said":"hi"}')
      assert.lengthOf(asked, 1)
      assert.strictEqual(asked[0]?.permission, "own_echo")
      assert.strictEqual(asked[0]?.title, 'Call own_echo of MCP server "own"')
      assert.deepStrictEqual([...(asked[0]?.resources ?? [])], ['{"said":"hi"}'])
    })
  )

  it.scoped("MC-15: an answer of always is for the tool, whatever its input, and for no other tool", () =>
    Effect.gen(function* () {
      const { asked, mcp, said } = yield* makeMcp(
        { own: obedient },
        { rules: [], answer: () => Effect.succeed(Answer.Always()) }
      )
      yield* mcp.ready
      yield* said("own_echo", { said: "one" })
      yield* said("own_echo", { said: "two" })
      yield* said("own_pid")
      assert.deepStrictEqual(asked.map(Struct.get("permission")), ["own_echo", "own_pid"])
    })
  )

  it.scoped("MC-15: a rule for all tools of a server decides without a question, a later one for some of them", () =>
    Effect.gen(function* () {
      const { asked, fail, mcp, offered, said } = yield* makeMcp(
        { own: obedient, other: obedient },
        { rules: [rule("own_*", "allow"), rule("own_p*", "deny"), rule("other_*", "deny")] }
      )
      yield* mcp.ready
      assert.strictEqual(yield* said("own_echo"), "echo: {}")
      const names = yield* offered
      assert.include(names, "own_echo")
      assert.notInclude(names, "own_pid")
      assert.isFalse(names.some((name) => name.startsWith("other_")))
      assert.strictEqual((yield* fail("own_pid", {})).type, "tool.unknown")
      assert.strictEqual((yield* fail("other_echo", {})).type, "tool.unknown")
      assert.deepStrictEqual(asked, [])
    })
  )

  it.scoped("MC-15: with nobody to ask the call does not reach the server, and the message names the rule", () =>
    Effect.gen(function* () {
      const { bench, fail, mcp, offered } = yield* makeMcp({ own: obedient }, { rules: [] })
      yield* mcp.ready
      const before = yield* offered
      const error = yield* fail("own_change", { add: [{ name: "grown" }] })
      assert.strictEqual(error.type, "permission.denied")
      assert.include(error.message, 'permission "own_change"')
      assert.include(error.message, 'resource "*"')
      assert.deepStrictEqual(yield* offered, before)
      assert.lengthOf(bench.asked, 1)
    })
  )

  it.scoped("MC-15: a person who declines stops the run", () =>
    Effect.gen(function* () {
      const { mcp, settle } = yield* makeMcp(
        { own: obedient },
        { rules: [], answer: () => Effect.succeed(Answer.Decline()) }
      )
      yield* mcp.ready
      const error = yield* Effect.flip(settle("own_echo", {}))
      assert.strictEqual(error._tag, "ToolDeclined")
    })
  )

  it.scoped("TO-16: what is no object is refused without a question", () =>
    Effect.gen(function* () {
      const { asked, fail, mcp } = yield* makeMcp({ own: obedient }, { rules: [] })
      yield* mcp.ready
      assert.strictEqual((yield* fail("own_echo", "words")).type, "tool.input")
      assert.deepStrictEqual(asked, [])
    })
  )

  it.scoped("TO-16: a tool that goes while its question waits is not called", () =>
    Effect.gen(function* () {
      const gone = yield* Deferred.make<void>()
      const questions = yield* Ref.make(0)
      const { fail, mcp, said, until } = yield* makeMcp(
        { own: obedient },
        {
          rules: [rule("own_pid", "allow")],
          answer: () =>
            Effect.zipRight(
              Ref.update(questions, (n) => n + 1),
              Effect.as(Deferred.await(gone), Answer.Once())
            )
        }
      )
      yield* mcp.ready
      const pid = Number(yield* said("own_pid"))
      yield* Effect.fork(
        Effect.gen(function* () {
          process.kill(pid, "SIGKILL")
          yield* until("own", ({ state }) => state === "failed")
          yield* Deferred.succeed(gone, undefined)
        })
      )
      assert.strictEqual((yield* fail("own_echo", {})).type, "tool.stale")
      assert.strictEqual(yield* Ref.get(questions), 1)
    })
  )
})
