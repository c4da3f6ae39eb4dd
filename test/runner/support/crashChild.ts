/** A process that dies in the middle of a turn: run by `Recovery.test.ts`, which kills it when its tool is running. */
import { Sessions } from "@daybook/core"
import { Effect, Stream } from "effect"
import { runtime, say } from "../../support/Harness.ts"
import { callParts, ScriptedModel, textParts } from "../../support/ScriptedModel.ts"
import { tool } from "./Runs.ts"

const [, , filename = "", directory = "", id = ""] = process.argv

const program = Effect.gen(function* () {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel
  yield* tool("hang", () =>
    Effect.zipRight(
      Effect.sync(() => process.send?.("running")),
      Effect.never
    )
  )
  yield* tool("web", () => Effect.never)
  const session = yield* sessions.create({ id, location: { directory } })
  const metadata = { anthropic: { type: "server_tool_use" } }
  // One chunk, and then silence: a call at the provider, a call whose input is being written, and one that runs.
  const parts = [
    ...textParts("t", "Let me see.").slice(0, 2),
    { type: "tool-call", id: "hosted", name: "web", params: { q: "x" }, providerExecuted: true, metadata },
    { type: "tool-params-start", id: "pending", name: "hang", providerExecuted: false },
    ...callParts("running", "hang", {})
  ] as const
  yield* model.answer(Stream.concat(Stream.fromIterable(parts), Stream.never))
  yield* say(session.id, "go", { id: "msg_go" })
  yield* sessions.wait(session.id)
}).pipe(Effect.scoped, Effect.provide(runtime({ filename })))

await Effect.runPromise(program)
