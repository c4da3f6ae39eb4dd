/**
 * Method: random logs go into a real log; the conversation that each one lowers to goes through the real model of each
 * protocol to a server on loopback, and the body that arrives there is held against the provider's rules.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck as fc, Layer, Redacted } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { Models } from "@daybook/models"
import { conversation } from "../../packages/core/src/request/Lowering.ts"
import { historyAt } from "../../packages/core/src/request/Recorded.ts"
import { shownFor } from "../../packages/core/src/request/Request.ts"
import { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { Message } from "../../packages/log/src/domain/Message.ts"
import type { ModelRef } from "../../packages/log/src/domain/Values.ts"
import type { Draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { SessionStore } from "../../packages/log/src/store/SessionStore.ts"
import * as SqlSessionStore from "../../packages/log/src/store/SqlSessionStore.ts"
import { cases } from "../support/Cases.ts"
import { memoryLog } from "../support/Database.ts"
import { hostileLog, refs, withheldLog } from "../support/HostileLogs.ts"
import { plausibleLog } from "../support/PlausibleLogs.ts"
import { faultsOf, type Protocol } from "../support/ProviderHistory.ts"
import { hello } from "./support/Answers.ts"
import { answer, secret, tool } from "./support/Client.ts"
import { serveEach } from "./support/Server.ts"

const sessionID = SessionID.make("ses_any")
const protocols = Object.keys(refs) as ReadonlyArray<Protocol>

/** The models of the protocols, and what their servers got last. */
const makeWires = Effect.gen(function* () {
  const server = yield* serveEach(({ path }) =>
    path.endsWith("/messages")
      ? hello.anthropic
      : path.endsWith("/responses")
        ? hello.openai
        : path.includes(":streamGenerateContent")
          ? hello.gemini
          : hello["openai-compatible"]
  )
  const resolver = yield* Models.make({
    providers: {
      anthropic: { api: "anthropic", apiKey: Redacted.make(secret), baseUrl: server.url },
      openai: { api: "openai", apiKey: Redacted.make(secret), baseUrl: `${server.url}/v1` },
      "openai-compatible": { api: "openai-compatible", baseUrl: `${server.url}/v1` },
      gemini: { api: "gemini", apiKey: Redacted.make(secret), baseUrl: `${server.url}/v1beta` }
    }
  })
  return { server, resolver }
})

const offered = [tool("look"), tool("bash"), tool("web_search"), tool("server.tool")]
const budgeted = { body: { thinking: { type: "enabled", budget_tokens: 2048 } } }

/** What goes over the wire for messages, and why it would be refused. */
const sent = (
  wires: Effect.Effect.Success<typeof makeWires>,
  messages: ReadonlyArray<Message>,
  { protocol, thinks, tools }: { readonly protocol: Protocol; readonly thinks: boolean; readonly tools: boolean }
) =>
  Effect.gen(function* () {
    const settings = thinks && protocol === "anthropic" ? budgeted : {}
    const { info, model } = yield* wires.resolver.resolve(refs[protocol], settings)
    const prompt = conversation(messages, shownFor(info, undefined)).flatMap((one) => one.shown)
    yield* answer(model, {
      prompt: [{ role: "system", content: "You help." }, ...prompt],
      tools: tools ? offered : []
    })
    const body = wires.server.received.at(-1)?.body ?? {}
    return { body, faults: faultsOf(protocol, body) }
  })

const asked = fc.record({ thinks: fc.boolean(), tools: fc.boolean() })
const stepModels: ReadonlyArray<ModelRef> = Object.values(refs)

/** Steps of a log of any types, by the models under test. */
const byModels = (drafts: NonEmptyReadonlyArray<Draft>): NonEmptyReadonlyArray<Draft> => {
  const [first, ...rest] = drafts
  return [
    first,
    ...rest.map((one, nth): Draft =>
      one.type === "session.next.step.started"
        ? { ...one, data: { ...one.data, model: stepModels[nth % stepModels.length] ?? refs.openai } }
        : one
    )
  ]
}

describe("any log", () => {
  for (const [name, logs, count] of [
    ["what breaks conversations", hostileLog("x"), 40],
    ["withheld parts", withheldLog("x"), 40],
    ["any events", plausibleLog("x", 120).map(byModels), 10]
  ] as const) {
    it.scopedLive(
      `MD-61: a log of ${name} is accepted by every provider`,
      () =>
        Effect.gen(function* () {
          const log = yield* EventLog
          const wires = yield* makeWires
          const holds = Effect.fnUntraced(
            function* (
              drafts: NonEmptyReadonlyArray<Draft>,
              asked: { readonly thinks: boolean; readonly tools: boolean }
            ) {
              const events = yield* log.append(sessionID, drafts)
              const messages = yield* historyAt(sessionID, { baselineSeq: -1, before: events.length })
              for (const protocol of protocols) {
                const { body, faults } = yield* sent(wires, messages, { ...asked, protocol })
                assert.deepEqual(faults, [], JSON.stringify({ protocol, body }, null, 1))
              }
            },
            Effect.ensuring(Effect.orDie(log.remove(sessionID)))
          )
          const runtime = yield* Effect.runtime<EventLog | SessionStore>()
          const property = fc.asyncProperty(logs, asked, (drafts, how) =>
            Effect.runPromise(Effect.provide(holds(drafts, how), runtime))
          )
          yield* Effect.promise(() => fc.assert(property, { numRuns: cases(count) }))
        }).pipe(Effect.provide(SqlSessionStore.layer.pipe(Layer.provideMerge(memoryLog)))),
      cases(60_000)
    )
  }
})
