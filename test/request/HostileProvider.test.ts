/**
 * Method: the whole runtime talks to providers on loopback that say the worst and refuse what a provider refuses: blank
 * texts, answers that are cut off anywhere, reused ids, with switches of model, interrupts, steers and checkpoints in
 * between. Then every turn is shown again from the log and sent once more: the bodies have to be equal.
 */
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Redacted, Schema, Stream } from "effect"
import { Models } from "@daybook/models"
import { build } from "../../packages/core/src/agent/BuiltinAgents.ts"
import { ToolFailure } from "../../packages/core/src/domain/ToolError.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define, jsonSchemaTool } from "../../packages/core/src/tool/ToolDefinition.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import { MessageID, type SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { draft } from "../../packages/log/src/events/SessionEvents.ts"
import { EventLog } from "../../packages/log/src/log/EventLog.ts"
import { hello } from "../models/support/Answers.ts"
import { answer, at, secret } from "../models/support/Client.ts"
import { hostileAnswer, rendered, type Said } from "../models/support/HostileAnswers.ts"
import { type Received, refusal, type Reply, serveEach } from "../models/support/Server.ts"
import { cases } from "../support/Cases.ts"
import { newSession, say } from "../support/Harness.ts"
import { refs } from "../support/HostileLogs.ts"
import { faultsOf, type Protocol } from "../support/ProviderHistory.ts"
import { waitingFor } from "../support/Waiting.ts"
import { stepsOf } from "./support/Conversation.ts"
import { summary } from "./support/GeneratedModel.ts"
import { random as makeRandom, type Random } from "./support/Random.ts"

const protocols = Object.keys(refs) as ReadonlyArray<Protocol>
const protocolOf = ({ path }: Pick<Received, "path">): Protocol =>
  path.endsWith("/messages")
    ? "anthropic"
    : path.endsWith("/responses")
      ? "openai"
      : path.includes(":streamGenerateContent")
        ? "gemini"
        : "openai-compatible"

const isSummary = ({ body }: Received): boolean => JSON.stringify(body).includes("Use exactly this form")

/** Providers that answer by `say` until they are told to be plain, and what they refused. */
const makeProviders = Effect.fnUntraced(function* (sayTo: (nth: number) => Said) {
  const refused: Array<string> = []
  const silences = yield* Queue.unbounded<{ readonly text: string; readonly cut: boolean }>()
  const state = { plain: false }
  const server = yield* serveEach((received, nth): Reply => {
    const protocol = protocolOf(received)
    if (state.plain) return hello[protocol]
    const faults = faultsOf(protocol, received.body)
    if (faults.length > 0) {
      refused.push(`${protocol} request ${nth}: ${faults.join("; ")}`)
      return refusal(400, { error: { type: "invalid_request_error", message: faults.join("; ") } })
    }
    if (isSummary(received)) return rendered(protocol, { blocks: [{ kind: "text", text: summary(nth) }], end: "stop" })
    const said = sayTo(nth)
    const last = said.blocks.at(-1)
    const cut = said.end === "cut"
    if (!cut && said.end !== "silence") return rendered(protocol, said)
    if (last?.kind === "text") Queue.unsafeOffer(silences, { text: last.text, cut })
    // A client that sees the end of a connection forgets what it has not read yet: `drive` cuts once the text is read.
    return rendered(protocol, { ...said, end: "silence" })
  })
  const providers: Models.Options["providers"] = {
    anthropic: { api: "anthropic", apiKey: Redacted.make(secret), baseUrl: server.url },
    openai: { api: "openai", apiKey: Redacted.make(secret), baseUrl: `${server.url}/v1` },
    "openai-compatible": { api: "openai-compatible", baseUrl: `${server.url}/v1` },
    gemini: { api: "gemini", apiKey: Redacted.make(secret), baseUrl: `${server.url}/v1beta` }
  }
  return { refused, silences, server, state, providers }
})

type Providers = Effect.Effect.Success<ReturnType<typeof makeProviders>>

const runtime = ({ providers }: Providers) =>
  Daybook.layer({
    filename: ":memory:",
    projectConfig: false,
    agents: [
      {
        ...build,
        prompt: "You help.",
        turnLimit: 4,
        permissions: [
          { permission: "*", resource: "*", verdict: "allow" },
          { permission: "bash", resource: "*", verdict: "deny" }
        ]
      }
    ]
  }).pipe(Layer.provide(Models.layerOptions({ providers, policy: { retry: false } })))

/** Runs the session; where its provider falls silent in the middle of a text, interrupts it or cuts the connection there. */
const drive = Effect.fnUntraced(function* (sessionID: SessionID, { server, silences }: Providers) {
  const sessions = yield* Sessions
  const live = yield* Stream.toQueueOfElements(sessions.live(sessionID))
  const deltas = Effect.flatten(Queue.take(live))
  const run = yield* Effect.fork(Effect.exit(sessions.resume(sessionID)))
  const interrupted = Effect.gen(function* () {
    const { cut, text } = yield* Queue.take(silences)
    let said = ""
    while (!said.endsWith(text)) {
      const event = yield* Effect.orDie(deltas)
      if (event.type === "session.next.text.delta") said += event.data.delta
    }
    yield* cut ? server.sever : sessions.interrupt(sessionID)
    yield* Fiber.await(run)
  })
  yield* waitingFor("a turn to end or fall silent")(Effect.raceFirst(Fiber.await(run), interrupted))
}, Effect.scoped)

/** Looks, and says so with what a tool may return: text, none, blank text, a picture; or fails without a word. */
const lookTool = (random: Random, steer: Effect.Effect<unknown>) =>
  define(Tool.make("look", { parameters: { size: Schema.Int }, success: Schema.Struct({ text: Schema.String }) }), {
    handler: ({ size }) =>
      Effect.gen(function* () {
        if (random.chance(0.1)) yield* steer
        if (size < 0) return yield* new ToolFailure({ type: "look.dark", message: "" })
        return { text: size === 0 ? "\n" : "dark" }
      }),
    render: ({ text }) => ({
      structured: {},
      content: random.chance(0.2)
        ? [{ type: "file", uri: "data:image/png;base64,iVBORw0KGgo=", mime: "image/png", name: "a.png" }]
        : random.chance(0.2)
          ? []
          : [{ type: "text", text }]
    })
  })

const converse = Effect.fnUntraced(function* (seed: number, rounds: number, providers: Providers) {
  const random = makeRandom(seed)
  const sessions = yield* Sessions
  const log = yield* EventLog
  const { id } = yield* newSession()
  const steer = Effect.orDie(sessions.prompt({ sessionID: id, prompt: { text: "By the way." }, resume: false }))
  yield* Effect.flatMap(HostTools, (host) => host.register([lookTool(random, steer)]))
  for (let round = 0; round < rounds; round++) {
    yield* sessions.switchModel(id, refs[protocols[random.below(protocols.length)] ?? "anthropic"])
    if (random.chance(0.15)) {
      yield* sessions.compact(id)
      yield* sessions.wait(id)
    }
    // A prompt of an older log, which was admitted blank.
    if (random.chance(0.15)) {
      const blank = { messageID: MessageID.make(`msg_blank-${round}`), prompt: { text: "\n " } }
      yield* log.append(id, [draft("session.next.prompt.admitted", { ...blank, delivery: "steer" })])
    }
    if (random.chance(0.5)) {
      const prompt = {
        text: `Prompt ${round}`,
        ...(random.chance(0.3) ? { system: random.chance(0.5) ? "\n" : "Be brief." } : {})
      }
      yield* sessions.prompt({ sessionID: id, prompt, delivery: random.chance(0.3) ? "queue" : "steer", resume: false })
    }
    yield* drive(id, providers)
  }
  return id
})

const keys: Readonly<Record<Protocol, string>> = {
  anthropic: "messages",
  openai: "input",
  "openai-compatible": "messages",
  gemini: "contents"
}

/** What the model reads of a request, in order, without the marks of the cache, which move. */
const shownIn = (protocol: Protocol, body: unknown): ReadonlyArray<unknown> => {
  const messages = at(body, keys[protocol])
  const all = Array.isArray(messages) ? messages : []
  const parts = protocol === "anthropic" ? "content" : protocol === "gemini" ? "parts" : undefined
  const blocks =
    parts === undefined
      ? all
      : all.flatMap((message: unknown) => {
          const content = at(message, parts)
          return Array.isArray(content) ? content.map((block: unknown) => [at(message, "role"), block]) : []
        })
  return blocks.map((block) => JSON.stringify(block).replaceAll(',"cache_control":{"type":"ephemeral"}', ""))
}

const rewrites = ["compaction.ended", "context.pruned", "model.switched", "baseline"]

describe("providers that say the worst", () => {
  for (const seed of Array.from({ length: cases(1) }, (_, nth) => nth + 1)) {
    it.scopedLive(
      `EX-R12: no request is refused, earlier messages keep their bytes, and every turn is shown as it was sent: ${seed}`,
      () =>
        Effect.gen(function* () {
          const random = makeRandom(seed * 7919)
          const providers = yield* makeProviders((nth) => hostileAnswer(random, nth))
          const { server, state } = providers
          yield* Effect.gen(function* () {
            const sessions = yield* Sessions
            const id = yield* converse(seed, 14, providers)
            assert.deepEqual(providers.refused, [])
            const sent = server.received.filter((one) => !isSummary(one))
            const steps = yield* stepsOf(id)
            assert.strictEqual(steps.length, sent.length)
            state.plain = true
            const resolver = yield* Models.make({ providers: providers.providers })
            let kept = 0
            for (const [nth, { between, seq }] of steps.entries()) {
              const [now, before] = [sent[nth], sent[nth - 1]]
              if (now === undefined) return assert.fail(`request ${nth} is missing`)
              if (before !== undefined && !rewrites.some((type) => between.has(type)) && now.path === before.path) {
                const [was, is] = [shownIn(protocolOf(before), before.body), shownIn(protocolOf(now), now.body)]
                assert.deepEqual(is.slice(0, was.length), was, `request ${nth} changed what the one before was shown`)
                kept += 1
              }
              const { frame, messages, model: ref } = yield* sessions.request({ sessionID: id, at: seq })
              const { model } = yield* resolver.resolve(ref)
              const prompt = [...frame.system.map((content) => ({ role: "system" as const, content })), ...messages]
              yield* answer(model, { prompt, tools: frame.tools.map(jsonSchemaTool) })
              assert.deepEqual(server.received.at(-1)?.body, now.body, `request ${nth} is not shown as it was`)
            }
            assert.isAbove(kept, 2)
          }).pipe(Effect.scoped, Effect.provide(runtime(providers)))
        }),
      60_000
    )
  }

  /** The last message of a body, as text. */
  const lastText = (protocol: Protocol, body: unknown): string => JSON.stringify(shownIn(protocol, body).at(-1))

  for (const protocol of protocols) {
    for (const [end, words] of [
      ["silence", "was cut off"],
      ["cut", "was cut off"],
      ["length", "was cut off"],
      ["stop", "Go on with the work that is left"]
    ] as const) {
      it.scopedLive(
        `EX-R13: a resume after an answer that ended by ${end} asks to go on, as the runtime: ${protocol}`,
        () =>
          Effect.gen(function* () {
            const begun: Said = { blocks: [{ kind: "text", text: "Once upon" }], end }
            const rest: Said = { blocks: [{ kind: "text", text: " a time." }], end: "stop" }
            const providers = yield* makeProviders((nth) => (nth === 0 ? begun : rest))
            yield* Effect.gen(function* () {
              const sessions = yield* Sessions
              const { id } = yield* newSession()
              yield* sessions.switchModel(id, refs[protocol])
              yield* say(id, "Tell a story.", { resume: false })
              yield* drive(id, providers)
              yield* drive(id, providers)
              yield* say(id, "Thanks.", { resume: false })
              yield* drive(id, providers)
              assert.deepEqual(providers.refused, [])
              const [, resumed, third] = providers.server.received.map(({ body }) => body)
              assert.include(lastText(protocol, resumed), words)
              assert.include(
                lastText(protocol, resumed),
                "<reminder>\\\\nThe runtime wrote this message, not the user."
              )
              assert.include(JSON.stringify(resumed), "Once upon")
              const was = shownIn(protocol, resumed)
              assert.deepEqual(shownIn(protocol, third).slice(0, was.length), was)
              assert.include(lastText(protocol, third), "Thanks.")
            }).pipe(Effect.scoped, Effect.provide(runtime(providers)))
          })
      )
    }

    it.scopedLive(
      `EX-R13: a session that was asked nothing still has a request that the provider takes: ${protocol}`,
      () =>
        Effect.gen(function* () {
          const providers = yield* makeProviders(() => ({ blocks: [{ kind: "text", text: "Hello." }], end: "stop" }))
          yield* Effect.gen(function* () {
            const sessions = yield* Sessions
            const { id } = yield* newSession()
            yield* sessions.switchModel(id, refs[protocol])
            yield* drive(id, providers)
            assert.deepEqual(providers.refused, [])
            assert.strictEqual(providers.server.received.length, 1)
          }).pipe(Effect.scoped, Effect.provide(runtime(providers)))
        })
    )
  }
})
