/**
 * The runtime with a chat completions server on loopback that rejects requests by what they hold, as real servers do. It calls
 * tools in its first answer, and says "Hello" in all others.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Models } from "@daybook/models"
import { Effect, Layer } from "effect"
import type { Agent } from "../../../packages/core/src/domain/Agent.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import { hello } from "../../models/support/Answers.ts"
import { chunks, type Received, refusal, type Reply, serveEach } from "../../models/support/Server.ts"
import { temporaryFolder } from "../../support/Harness.ts"
import { picture } from "../../support/Pictures.ts"
import { dataOf } from "./Runs.ts"

export const model = { providerID: "openai-compatible", id: "m" }

export type Call = readonly [name: string, input: Readonly<Record<string, unknown>>]

export interface Refusing {
  /** Why the server rejects a body, given as JSON; undefined if it accepts it. */
  readonly rejects: (body: string) => string | undefined
  /** The status of a rejection, by its reason. */
  readonly status?: (reason: string) => number
  readonly calls?: ReadonlyArray<Call>
  /** What the model thinks before its calls. */
  readonly thought?: string
}

const free: Agent = {
  name: "build",
  prompt: "Be brief.",
  permissions: [{ permission: "*", resource: "*", verdict: "allow" }]
}

const calling = (calls: ReadonlyArray<Call>, reasoning_content?: string): Reply => {
  const tool_calls = calls.map(([name, input], index) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: JSON.stringify(input) }
  }))
  const choice = (delta: object, finish_reason: string | null) => ({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason }]
  })
  const thought = reasoning_content === undefined ? [] : [choice({ reasoning_content }, null)]
  return chunks(...thought, choice({ role: "assistant", tool_calls }, null), choice({}, "tool_calls"))
}

const offersTools = ({ body }: Received): boolean => Array.isArray(body["tools"]) && body["tools"].length > 0

/** A session of that server, in a folder with two pictures. */
export const makeRefusing = Effect.fnUntraced(function* ({
  calls = [],
  rejects,
  status = () => 400,
  thought
}: Refusing) {
  let called = false
  const greeting = hello["openai-compatible"]
  const server = yield* serveEach((request) => {
    const reason = rejects(JSON.stringify(request.body["messages"]))
    if (reason !== undefined) return refusal(status(reason), { error: { message: reason } })
    if (called || calls.length === 0 || !offersTools(request)) return greeting
    called = true
    return calling(calls, thought)
  })
  const directory = yield* temporaryFolder
  writeFileSync(join(directory, "a.png"), yield* picture())
  writeFileSync(join(directory, "b.png"), yield* picture({ width: 16 }))
  const models = Models.layerOptions({
    providers: { "openai-compatible": { api: "openai-compatible", baseUrl: `${server.url}/v1` } }
  })
  const runtime = Daybook.layer({ filename: ":memory:", agents: [free] }).pipe(Layer.provide(models))
  const context = yield* Layer.build(runtime)
  const run = <A, E>(effect: Effect.Effect<A, E, Layer.Layer.Success<typeof runtime>>) =>
    Effect.provide(effect, context)
  const sessions = yield* run(Sessions)
  const { id } = yield* sessions.create({ location: { directory }, model })
  /** Sends a prompt and waits for its end; the error's message if it failed. */
  const ask = Effect.fnUntraced(function* (text: string) {
    yield* sessions.prompt({ sessionID: id, prompt: { text }, resume: false })
    return yield* sessions.resume(id).pipe(
      Effect.as(undefined),
      Effect.catchAll(({ message }) => Effect.succeed(message))
    )
  })
  const received = () => server.received.filter(offersTools)
  return { id, sessions, ask, run, received, withheld: run(dataOf(id, "session.next.part.withheld")) }
})
