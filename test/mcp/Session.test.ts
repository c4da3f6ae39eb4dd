import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import * as Mcp from "../../packages/mcp/src/Mcp.ts"
import { dataOf, resultsIn } from "../runner/support/Runs.ts"
import { runtime, say, scene } from "../support/Harness.ts"
import { callParts, calls, says } from "../support/ScriptedModel.ts"
import { obedient } from "./support/Servers.ts"

const agent = {
  name: "build",
  permissions: [{ permission: "own_*", resource: "*", verdict: "allow" as const }]
}

it.scoped("MC-3: a session's model is offered a server's tools, calls them, and reads what they gave", () =>
  Effect.gen(function* () {
    const host = Layer.succeed(HostTools, yield* HostTools)
    const servers = yield* Layer.build(Layer.provide(Mcp.layer({ own: obedient }), host))
    yield* Context.get(servers, Mcp.Mcp).ready
    const { id, model, sessions } = yield* scene()
    yield* model.answer(calls(callParts("c1", "own_echo", { said: "hi" }), callParts("c2", "own_fail", {})))
    yield* model.answer(says("I see."))
    yield* say(id, "go", { resume: false })
    yield* sessions.resume(id)
    const { tools } = yield* model.request
    assert.isTrue(tools.some(({ name }) => name === "own_echo"))
    assert.deepStrictEqual(resultsIn(yield* model.request), [
      ["c1", 'echo: {"said":"hi"}'],
      ["c2", "the tool's own words"]
    ])
    const [failed] = yield* dataOf(id, "session.next.tool.failed")
    assert.deepStrictEqual(failed?.error, { type: "tool.execution", message: "the tool's own words" })
  }).pipe(Effect.provide(runtime({ agents: [agent] })))
)
