/** A process that `Crash.ts` kills during a turn, while its tool runs and a steer, if any, waits. */
import { Effect, Queue, Schema, Stream } from "effect"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { PromptInput } from "../../../packages/log/src/domain/Values.ts"
import { runtime } from "../../support/Harness.ts"
import { callParts, ScriptedModel, textParts } from "../../support/ScriptedModel.ts"
import { tool } from "./Runs.ts"

const [, , filename = "", directory = "", id = "", asked = ""] = process.argv
const { prompt, steer } = Schema.decodeSync(
  Schema.parseJson(Schema.Struct({ prompt: PromptInput, steer: Schema.optional(PromptInput) }))
)(asked)

const program = Effect.gen(function* () {
  const sessions = yield* Sessions
  const model = yield* ScriptedModel
  const running = yield* Queue.unbounded<void>()
  yield* tool("hang", () => Effect.zipRight(Queue.offer(running, undefined), Effect.never))
  yield* tool("web", () => Effect.never)
  const session = yield* sessions.create({ id, location: { directory } })
  const metadata = { anthropic: { type: "server_tool_use" } }
  // One chunk, then silence: a provider-executed call, a call whose input is still streaming, and a running call.
  const parts = [
    ...textParts("t", "Let me see.").slice(0, 2),
    { type: "tool-call", id: "hosted", name: "web", params: { q: "x" }, providerExecuted: true, metadata },
    { type: "tool-params-start", id: "pending", name: "hang", providerExecuted: false },
    ...callParts("running", "hang", {})
  ] as const
  yield* model.answer(Stream.concat(Stream.fromIterable(parts), Stream.never))
  yield* sessions.prompt({ sessionID: session.id, prompt, id: "msg_go" })
  yield* Queue.take(running)
  if (steer !== undefined) yield* sessions.prompt({ sessionID: session.id, prompt: steer })
  process.send?.("running")
  yield* sessions.wait(session.id)
}).pipe(Effect.scoped, Effect.provide(runtime({ filename })))

await Effect.runPromise(program)
