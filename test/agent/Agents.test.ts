import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Struct } from "effect"
import * as Agents from "../../packages/core/src/agent/Agents.ts"
import { type Agent, type AgentMode, canAssist, canLead } from "../../packages/core/src/domain/Agent.ts"
import { deniesAll, verdictOf } from "../../packages/core/src/domain/Rule.ts"

const withAgents = (options: Parameters<typeof Agents.layer>[0] = {}) => Effect.provide(Agents.layer(options))

describe("built-in agents", () => {
  it.effect("CR-6: without a name the agent is build", () =>
    Effect.gen(function* () {
      const agents = yield* Agents.Agents
      assert.strictEqual((yield* agents.get(undefined)).name, "build")
      assert.deepStrictEqual(yield* agents.get(undefined), yield* agents.get("build"))
    }).pipe(withAgents())
  )

  it.effect("CF-10: build reads, searches, loads skills, keeps its list, asks and hands out work; all else asks", () =>
    Effect.gen(function* () {
      const { get } = yield* Agents.Agents
      const { permissions } = yield* get("build")
      for (const permission of ["read", "glob", "grep", "skill", "todo", "question", "task"]) {
        assert.strictEqual(verdictOf(permissions, permission, "anything"), "allow", permission)
      }
      for (const permission of ["edit", "bash", "external_directory", "files_read", "mcp"]) {
        assert.isUndefined(verdictOf(permissions, permission, "anything"), permission)
      }
    }).pipe(withAgents())
  )

  it.effect("CF-11: plan changes no files, not even through another agent, and asks for commands", () =>
    Effect.gen(function* () {
      const { get } = yield* Agents.Agents
      const plan = yield* get("plan")
      assert.isTrue(deniesAll(plan.permissions, "edit"))
      assert.isTrue(deniesAll(plan.permissions, "task"))
      assert.strictEqual(verdictOf(plan.permissions, "bash", "rm -rf /"), "ask")
      for (const permission of ["read", "glob", "grep", "skill", "todo", "question"]) {
        assert.strictEqual(verdictOf(plan.permissions, permission, "anything"), "allow", permission)
      }
      assert.include(plan.enterReminder ?? "", "planning")
      assert.include(plan.leaveReminder ?? "", "allowed again")
      assert.isTrue(canLead(plan))
      assert.isFalse(canAssist(plan))
    }).pipe(withAgents())
  )
})

describe("agents of the host", () => {
  const mine: Agent = { name: "mine", mode: "subagent", permissions: [] }

  it.effect("CF-14: an agent given as a value is used as it is, also under a built-in name", () =>
    Effect.gen(function* () {
      const agents = yield* Agents.Agents
      assert.deepStrictEqual(yield* agents.get("mine"), mine)
      assert.deepStrictEqual(yield* agents.get("plan"), { name: "plan", permissions: [] })
      assert.deepStrictEqual((yield* agents.list()).map(Struct.get("name")), ["build", "plan", "mine"])
      assert.deepStrictEqual(yield* agents.problems(), [])
    }).pipe(withAgents([mine, { name: "plan", permissions: [] }]))
  )

  it.effect("CF-15: a name that nobody has is refused with those that are known", () =>
    Effect.gen(function* () {
      const agents = yield* Agents.Agents
      const error = yield* Effect.flip(agents.get("../mine"))
      assert.strictEqual(error.message, 'there is no agent "../mine"; known: build, plan, mine')
      assert.isTrue(Exit.isFailure(yield* Effect.exit(agents.get("__proto__"))))
    }).pipe(withAgents([mine]))
  )

  it("CF-22: a mode says where an agent may work, and without one it may anywhere", () => {
    const where = (mode?: AgentMode) => {
      const agent = { name: "a", permissions: [], ...(mode === undefined ? {} : { mode }) }
      return [canLead(agent), canAssist(agent)]
    }
    assert.deepStrictEqual(
      [where(), where("all"), where("primary"), where("subagent")],
      [
        [true, true],
        [true, true],
        [true, false],
        [false, true]
      ]
    )
  })
})
