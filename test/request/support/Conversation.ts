/**
 * Runs a long conversation from a seed: prompts, steers during a turn, queued prompts, parallel calls with results of all sizes
 * and some media, model and agent switches, changing context, tools and system texts for one prompt, automatic and requested
 * compactions, pruning and its end, and restarts on the same file. The models' requests are recorded as received.
 */
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Schema } from "effect"
import { build } from "../../../packages/core/src/agent/BuiltinAgents.ts"
import { HostContext } from "../../../packages/core/src/context/ContextRegistry.ts"
import * as SystemContext from "../../../packages/core/src/context/SystemContext.ts"
import type { Agent } from "../../../packages/core/src/domain/Agent.ts"
import { ToolFailure } from "../../../packages/core/src/domain/ToolError.ts"
import type { ShownRequest } from "../../../packages/core/src/request/Recorded.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../../packages/core/src/tool/HostTools.ts"
import { define } from "../../../packages/core/src/tool/ToolDefinition.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import type { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"
import type { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { eventsOf } from "../../runner/support/Runs.ts"
import * as GeneratedModel from "./GeneratedModel.ts"
import { random as makeRandom, type Random } from "./Random.ts"

const careful: Agent = {
  name: "careful",
  prompt: "You are careful.",
  permissions: [...build.permissions, { permission: "bash", resource: "*", verdict: "deny" }],
  settings: { temperature: 0.5 },
  turnLimit: 4,
  enterReminder: "Be careful from here on.",
  leaveReminder: "Enough of care."
}

/** A larger request is compacted: the window minus its reserve. */
const window = { contextTokens: 14_000, outputTokens: 1_000 }

const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

export interface Conversation {
  readonly filename: string
  readonly sessionID: SessionID
  readonly directory: string
  readonly transcript: GeneratedModel.Transcript
  /** Previewed requests, with the number of the request that was sent next. */
  readonly previews: ReadonlyArray<{ readonly next: number; readonly body: string }>
}

export const open = (filename: string, random: Random, transcript: GeneratedModel.Transcript) =>
  Layer.build(
    Layer.fresh(
      Daybook.layer({
        filename,
        agents: [careful],
        projectConfig: false,
        compaction: { reserveTokens: 2_000, keepRecentTokens: 1_000 }
      }).pipe(Layer.provide(GeneratedModel.layer(random, transcript, window)))
    )
  )

/** A shown request in the form that a model receives. */
export const bodyOf = ({ frame, messages }: ShownRequest): string =>
  GeneratedModel.bodyOf(
    [...frame.system.map((content) => ({ role: "system" as const, content })), ...messages],
    frame.tools
  )

const lookTool = (random: Random, steer: (text: string) => Effect.Effect<unknown, unknown>) =>
  define(
    Tool.make("look", {
      description: "Looks at something",
      parameters: { size: Schema.Int, media: Schema.Boolean, fail: Schema.Boolean },
      success: Schema.Struct({ text: Schema.String, media: Schema.Boolean })
    }),
    {
      handler: ({ fail, media, size }) =>
        Effect.gen(function* () {
          if (random.chance(0.05)) yield* Effect.orDie(steer(`By the way: ${random.words(5)}`))
          if (fail) return yield* new ToolFailure({ type: "look.dark", message: "It is dark." })
          return { text: random.words(size), media }
        }),
      render: ({ media, text }) => ({
        structured: { length: text.length },
        content: [
          { type: "text", text },
          ...(media ? [{ type: "file" as const, uri: pixel, mime: "image/png", name: "pixel.png" }] : [])
        ]
      })
    }
  )

/** One runtime's part of the conversation: until the models have received this many requests in total. */
const part = Effect.fn(function* (
  until: number,
  conversation: Conversation & { readonly previews: Array<Conversation["previews"][number]> },
  random: Random
) {
  const { directory, sessionID, transcript } = conversation
  const sessions = yield* Sessions
  const tools = yield* HostTools
  // This test has no power cuts, and thousands of flushes take longer than everything else.
  yield* Effect.orDie((yield* SqlClient.SqlClient)`PRAGMA synchronous = OFF`)
  const context = yield* HostContext
  yield* sessions.create({ id: sessionID, location: { directory } })
  yield* tools.register([lookTool(random, (text) => sessions.prompt({ sessionID, prompt: { text }, resume: false }))])
  let weather = `The weather is ${random.words(3)}.`
  yield* context.register(
    SystemContext.textSource("test/weather", () =>
      Effect.sync(() => SystemContext.text(weather, "There is no weather any more."))
    )
  )
  // While this source is unavailable, a compaction keeps the old baseline and later updates.
  let tide = "The tide is low."
  let fog = false
  yield* context.register(
    SystemContext.textSource("test/tide", () =>
      Effect.sync(() => (fog ? SystemContext.unavailable : SystemContext.text(tide)))
    )
  )
  while (transcript.seen.length < until) {
    if (random.chance(0.15)) weather = random.chance(0.2) ? "" : `The weather is ${random.words(3)}.`
    fog = transcript.seen.length > 0 && random.chance(fog ? 0.9 : 0.15)
    if (random.chance(0.1)) tide = `The tide is ${random.words(2)}.`
    if (random.chance(0.08)) {
      const id = GeneratedModel.models[random.below(2)] ?? "one"
      yield* sessions.switchModel(sessionID, { providerID: GeneratedModel.provider, id })
    }
    if (random.chance(0.08))
      yield* sessions.switchAgent(sessionID, ["build", "plan", "careful"][random.below(3)] ?? "build")
    if (random.chance(0.03)) yield* sessions.unprune(sessionID)
    if (random.chance(0.02)) {
      yield* sessions.compact(sessionID)
      yield* sessions.wait(sessionID)
    }
    const prompts = random.chance(0.2) ? 2 : 1
    for (let nth = 0; nth < prompts; nth++) {
      yield* sessions.prompt({
        sessionID,
        prompt: {
          text: random.words(random.below(80) + 1),
          ...(random.chance(0.1) ? { system: `Answer in ${random.words(1)}.` } : {}),
          ...(random.chance(0.1) ? { tools: { bash: false, "g*": random.chance(0.5) } } : {})
        },
        delivery: random.chance(0.15) ? "queue" : "steer",
        resume: false
      })
    }
    if (random.chance(0.2)) {
      const next = transcript.seen.length
      conversation.previews.push({ next, body: bodyOf(yield* sessions.request({ sessionID })) })
    }
    // An activity may reach its turn limit: the next prompt starts a new one.
    yield* Effect.ignore(sessions.resume(sessionID))
  }
})

/** Converses until the models have received `turns` requests, in the given number of consecutive runtimes. */
export const converse = Effect.fn(function* (
  folder: string,
  sessionID: SessionID,
  turns: number,
  seed: number,
  runtimes = 2
) {
  const random = makeRandom(seed)
  const transcript = GeneratedModel.transcript()
  const previews: Array<Conversation["previews"][number]> = []
  const conversation = { filename: join(folder, "store.sqlite"), sessionID, directory: folder, transcript, previews }
  for (let nth = 1; nth <= runtimes; nth++) {
    const until = Math.ceil((turns * nth) / runtimes)
    yield* Effect.scoped(
      Effect.flatMap(open(conversation.filename, random, transcript), (runtime) =>
        Effect.scoped(part(until, conversation, random)).pipe(Effect.provide(runtime))
      )
    )
  }
  return conversation satisfies Conversation
})

/** The session's steps by sequence number, with the changes between them. */
export const stepsOf = (sessionID: SessionID): Effect.Effect<ReadonlyArray<Step>, unknown, EventLog> =>
  Effect.map(eventsOf(sessionID), (events) => {
    const steps: Array<Step> = []
    let between = new Set<string>()
    for (const { data, seq, type } of events) {
      if (type === "session.next.request.framed" && data.baselineSeq !== undefined) between.add("baseline")
      if (type === "session.next.step.started") {
        steps.push({ seq, between })
        between = new Set()
      } else between.add(type.slice("session.next.".length))
    }
    return steps
  })

export interface Step {
  readonly seq: number
  /** The types of events since the previous step, and `baseline` if it was rendered again. */
  readonly between: ReadonlySet<string>
}
