/** A recorded session as a test double: the application is answered as it was, or told what it asks differently. */
import { assert, it } from "@effect/vitest"
import * as Tool from "@effect/ai/Tool"
import { Effect, Layer, Schema } from "effect"
import { HostTools } from "../../packages/core/src/tool/HostTools.ts"
import { define } from "../../packages/core/src/tool/ToolDefinition.ts"
import * as RecordedModel from "../../packages/core/src/session/RecordedModel.ts"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import type { Message } from "../../packages/log/src/domain/Message.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import { scene, newSession, runtime } from "../support/Harness.ts"
import { callParts, calls, finish, says, streams } from "../support/ScriptedModel.ts"

const secret = "sk-ant-api03-aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7bC9dE2fG4hJ6"

/** The application: a tool that answers always the same, and two prompts. */
const stock = define(
  Tool.make("stock", { parameters: { item: Schema.String }, success: Schema.Struct({ count: Schema.Int }) }),
  { readOnly: true, handler: () => Effect.succeed({ count: 3 }) }
)
const allowed = {
  agents: [{ name: "build", permissions: [{ permission: "*", resource: "*", verdict: "allow" as const }] }]
}

const application = (id: SessionID, first: string) =>
  Effect.gen(function* () {
    const sessions = yield* Sessions
    yield* (yield* HostTools).register([stock])
    yield* sessions.ask({ sessionID: id, prompt: { text: first } })
    return yield* sessions.ask({ sessionID: id, prompt: { text: `And this? ${secret}` } })
  }).pipe(Effect.scoped)

const answers = [
  calls(callParts("call_1", "stock", { item: "nail" })),
  says("There are three."),
  streams(
    { type: "reasoning-start", id: "r", metadata: { acme: { signature: "abc" } } },
    { type: "reasoning-delta", id: "r", delta: "hm" },
    { type: "reasoning-end", id: "r" },
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "A key." },
    { type: "text-end", id: "t" },
    finish()
  )
]

/** The messages of models, without ids and times. */
const said = (messages: ReadonlyArray<Message>) =>
  messages.flatMap((message) =>
    message.type === "assistant"
      ? message.content.map((part) =>
          part.type === "tool" ? [part.id, part.name, part.input] : [part.type, part.text, part.providerMetadata ?? {}]
        )
      : []
  )

const recorded = Effect.gen(function* () {
  const { id, model, sessions } = yield* scene()
  for (const answer of answers) yield* model.answer(answer)
  yield* application(id, "How many nails?")
  const { items } = yield* sessions.messages({ sessionID: id })
  return { fixture: yield* RecordedModel.record(id), said: said(items) }
}).pipe(Effect.provide(runtime(allowed)))

const encode = Schema.encodeSync(Schema.parseJson(RecordedModel.Fixture))
const decode = Schema.decodeUnknownSync(Schema.parseJson(RecordedModel.Fixture))

const replayed = <A, E>(fixture: RecordedModel.Fixture, work: Effect.Effect<A, E, Sessions | HostTools>) =>
  Effect.provide(
    work,
    Daybook.layer({ filename: ":memory:", ...allowed }).pipe(Layer.provide(RecordedModel.layer(fixture)))
  )

it.scoped("RQ-801: the same application gets the same parts, calls and metadata, from the file of a fixture", () =>
  Effect.gen(function* () {
    const { fixture, said: before } = yield* recorded
    const after = yield* replayed(
      decode(encode(fixture)),
      Effect.gen(function* () {
        const { id } = yield* newSession()
        const { text } = yield* application(id, "How many nails?")
        assert.strictEqual(text, "A key.")
        return said((yield* (yield* Sessions).messages({ sessionID: id })).items)
      })
    )
    assert.deepStrictEqual(after, before)
  })
)

it.scoped("RQ-802: a request that was not recorded fails, and names the line that differs", () =>
  Effect.gen(function* () {
    const { fixture } = yield* recorded
    const error = yield* replayed(
      fixture,
      Effect.gen(function* () {
        const { id } = yield* newSession()
        return yield* Effect.flip(application(id, "How many bolts?"))
      })
    )
    assert.include(String(error), 'line 1 is "user: How many bolts?"; recorded was "user: How many nails?"')
  })
)

it.scoped("RQ-801: each answer is given once", () =>
  Effect.gen(function* () {
    const { fixture } = yield* recorded
    const error = yield* replayed(
      fixture,
      Effect.gen(function* () {
        const [one, two] = [yield* newSession(), yield* newSession()]
        yield* application(one.id, "How many nails?")
        return yield* Effect.flip(application(two.id, "How many nails?"))
      })
    )
    assert.include(String(error), "all 3 recorded answers were given")
  })
)

it.scoped("RQ-800: a fixture has no secret, and no system text", () =>
  Effect.gen(function* () {
    const text = encode((yield* recorded).fixture)
    assert.notInclude(text, secret)
    assert.include(text, "And this? <redacted>")
    assert.notInclude(text, "You are an agent")
  })
)
