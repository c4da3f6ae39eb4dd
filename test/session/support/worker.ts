/**
 * A separate process on a database file, bundled and started by `Workers.ts`. `work` admits prompts one by one and prints
 * `ack N` for each acknowledged one; its model calls a tool and then answers. `follow` prints a session's events. `own` and
 * `ask` acquire a session without working on it. Each runs until it is killed or done.
 */
import { appendFileSync, existsSync, writeSync } from "node:fs"
import { dirname } from "node:path"
import { LanguageModel, type Response, Tool } from "@effect/ai"
import { Effect, Either, Layer, Logger, Schema, Stream } from "effect"
import { layerLanguageModel } from "../../../packages/core/src/model/ModelResolver.ts"
import { Sessions } from "../../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../../packages/core/src/tool/HostTools.ts"
import { define } from "../../../packages/core/src/tool/ToolDefinition.ts"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import { SessionOwner } from "../../../packages/log/src/coordination/SessionOwner.ts"
import { SessionID } from "../../../packages/log/src/domain/Identifiers.ts"

export type Order =
  | {
      readonly do: "work"
      readonly filename: string
      readonly sessionID: string
      /** The first and the last number to admit. */
      readonly from: number
      readonly to: number
      /** The file to which each call of the tool appends a line. */
      readonly effects: string
      /** Waits until the work is done after this many prompts. */
      readonly every: number
    }
  | {
      /** `own`: owns the session until the process is killed or loses it; `ask`: only checks whether another process owns it. */
      readonly do: "own" | "ask"
      readonly filename: string
      readonly sessionID: string
      readonly leaseMs: number
      /** Once it owns the session, its event loop does not run until this file exists. */
      readonly busyUntil?: string
    }
  | { readonly do: "follow"; readonly filename: string; readonly sessionID: string; readonly after: number }

const say = (line: string) => Effect.sync(() => void writeSync(1, `${line}\n`))

/** The model's parts: a call of `note` after each prompt, an answer after the result. */
const parts = (afterTool: boolean): ReadonlyArray<Response.StreamPartEncoded> => [
  ...(afterTool
    ? [
        { type: "text-start" as const, id: "t" },
        { type: "text-delta" as const, id: "t", delta: "noted" },
        { type: "text-end" as const, id: "t" }
      ]
    : [{ type: "tool-call" as const, id: "call", name: "note", params: {}, providerExecuted: false }]),
  {
    type: "finish",
    reason: afterTool ? "stop" : "tool-calls",
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
  }
]

const model = LanguageModel.make({
  generateText: () => Effect.dieMessage("the runner streams"),
  streamText: ({ prompt }) => Stream.fromIterable(parts(prompt.content.at(-1)?.role === "tool"))
})

export const runtime = (filename: string, leaseMs?: number) =>
  Daybook.layer({ filename, ...(leaseMs === undefined ? {} : { leaseMs }) }).pipe(
    Layer.provide(
      layerLanguageModel({ ref: { providerID: "worker", id: "one" } }).pipe(
        Layer.provide(Layer.effect(LanguageModel.LanguageModel, model))
      )
    )
  )

/** Registers the tool `note`: each run appends one line before it answers. */
export const registerNote = (effects: string) =>
  Effect.flatMap(HostTools, (host) =>
    host.register([
      define(Tool.make("note", { success: Schema.String }), {
        handler: (_, { callID, messageID }) =>
          Effect.sync(() => {
            appendFileSync(effects, `${messageID} ${callID}\n`)
            return "noted"
          })
      })
    ])
  )

export const promptOf = (sessionID: SessionID, number: number) =>
  ({
    id: `msg_${number}`,
    sessionID,
    prompt: { text: `prompt ${number}` },
    delivery: number % 3 === 0 ? "queue" : "steer"
  }) as const

const work = (order: Extract<Order, { readonly do: "work" }>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const sessions = yield* Sessions
      yield* registerNote(order.effects)
      const { id } = yield* sessions.create({
        id: order.sessionID,
        location: { directory: dirname(order.filename) }
      })
      yield* say("ready")
      for (let number = order.from; number <= order.to; number += 1) {
        yield* sessions.prompt(promptOf(id, number))
        yield* say(`ack ${number}`)
        if (number % order.every === 0) yield* sessions.wait(id)
      }
      yield* sessions.wait(id)
      yield* say("done")
    })
  )

const follow = (order: Extract<Order, { readonly do: "follow" }>) =>
  Effect.flatMap(Sessions, (sessions) =>
    Stream.runForEach(
      sessions.events({ sessionID: SessionID.make(order.sessionID), after: order.after }),
      ({ id, seq, type }) => say(`event ${seq} ${id} ${type}`)
    )
  )

const own = (order: Extract<Order, { readonly do: "own" | "ask" }>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const [owners, sessions] = [yield* SessionOwner, yield* Sessions]
      const { id } = yield* sessions.create({
        id: order.sessionID,
        location: { directory: dirname(order.filename) }
      })
      yield* say("waiting")
      if (order.do === "ask") {
        const found = yield* Effect.either(owners.acquireUnlessBusy(id))
        return yield* say(
          Either.isRight(found) ? "free" : `busy ${found.left._tag === "SessionBusy" ? found.left.ownerID : ""}`
        )
      }
      const { stopRequested, token } = yield* owners.acquire(id)
      yield* say(`owned ${token.epoch} ${token.ownerID}`)
      const { busyUntil } = order
      if (busyUntil !== undefined) while (!existsSync(busyUntil)) continue
      yield* Effect.catchTag(stopRequested, "OwnerLost", () => say("lost"))
    })
  )

/** Runs the order of the process. */
export const main = (order: Order): Promise<void> => {
  const task: Effect.Effect<void, unknown, Sessions | HostTools | SessionOwner> =
    order.do === "work" ? work(order) : order.do === "follow" ? follow(order) : own(order)
  return task.pipe(
    Effect.provide(runtime(order.filename, "leaseMs" in order ? order.leaseMs : undefined)),
    Effect.provide(Logger.remove(Logger.defaultLogger)),
    Effect.runPromise
  )
}
