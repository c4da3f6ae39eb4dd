/** Answers of a given form: the tool that takes them, one correction, and the value in the log. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, ParseResult, Schema, type SchemaAST, Struct } from "effect"
import { checkOf, structuredOutput } from "../../packages/core/src/request/StructuredOutput.ts"
import { AnswerUndecodable, askFor, Sessions } from "../../packages/core/src/session/Sessions.ts"
import type { SessionID } from "../../packages/log/src/domain/Identifiers.ts"
import type { JsonRecord, OutputFormat } from "../../packages/log/src/domain/Values.ts"
import { brief, compaction, exchange, long, narrow, summary, window } from "../compaction/support/Talks.ts"
import { dataOf, failureOf, resultsIn, tool, transcript } from "../runner/support/Runs.ts"
import { allUserTexts, newSession, open, runtime, scene, temporaryFolder } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"

const format: OutputFormat = {
  schema: {
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer", minimum: 0 } },
    required: ["name", "age"],
    additionalProperties: false
  },
  description: "Who it is."
}
const ada = { name: "Ada", age: 36 }
const tools = { agents: [brief("look")] }

/** Asks for the form, and runs: the tag of the run's failure, if it fails. */
const ask = Effect.fnUntraced(function* (id: SessionID, output: OutputFormat = format, text = "Who is it?") {
  const sessions = yield* Sessions
  yield* sessions.prompt({ sessionID: id, prompt: { text, output }, resume: false })
  return yield* failureOf(sessions.resume(id))
})

const answer = (input: unknown, id = "o") => calls(callParts(id, "structured_output", input))

/** The structured answers of the transcript. */
const values = (id: SessionID) =>
  Effect.map(transcript(id), (messages) => messages.flatMap((message) => structuredOutput(message) ?? []))

it.scoped("RQ-40: the model is offered the form as a tool, has to call one, and its input is the answer", () =>
  Effect.gen(function* () {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(answer(ada))
    assert.isUndefined(yield* ask(id))
    const request = yield* model.request
    assert.strictEqual(request.toolChoice, "required")
    assert.deepStrictEqual(request.tools.map(Struct.get("name")), ["structured_output"])
    assert.include(request.tools[0]?.description, "Who it is.")
    assert.deepStrictEqual(yield* values(id), [ada])
    // Nothing is asked after it, and the session is done.
    assert.strictEqual(yield* model.pending, 0)
    const session = yield* sessions.get(id)
    assert.strictEqual(session.activity?.state, "completed")
    const shown = yield* sessions.request({ sessionID: id, at: 100 })
    assert.deepStrictEqual(shown.frame.tools[0]?.parameters, format.schema)
    assert.strictEqual(shown.frame.settings["toolChoice"], "required")
  }).pipe(Effect.provide(runtime(tools)))
)

it.scoped("RQ-40: the next prompt asks for no form, unless it says so", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    yield* model.answer(answer(ada))
    yield* ask(id)
    yield* model.request
    const request = yield* exchange(id, "plain")
    assert.notStrictEqual(request.toolChoice, "required")
    assert.notInclude(request.tools.map(Struct.get("name")), "structured_output")
    assert.deepStrictEqual(yield* values(id), [ada])
  }).pipe(Effect.provide(runtime(tools)))
)

it.scoped(
  "RQ-55, RQ-40: a prompt that turns off all tools still has the form's, and a preview shows what will be asked",
  () =>
    Effect.gen(function* () {
      const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
      yield* tool("look", () => Effect.succeed("seen"))
      const { id } = yield* newSession()
      const prompt = { text: "Who?", output: format, tools: { "*": false } }
      yield* sessions.prompt({ sessionID: id, prompt, resume: false })
      const preview = yield* sessions.request({ sessionID: id })
      assert.strictEqual(preview.frame.settings["toolChoice"], "required")
      yield* model.answer(answer(ada))
      yield* sessions.resume(id)
      for (const tools of [preview.frame.tools, (yield* model.request).tools]) {
        assert.deepStrictEqual(tools.map(Struct.get("name")), ["structured_output"])
      }
      assert.deepStrictEqual(yield* values(id), [ada])
    }).pipe(Effect.scoped, Effect.provide(runtime(tools)))
)

it.scoped("RQ-41: other tools may be called first, as often as needed", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    yield* tool("look", () => Effect.succeed("It is Ada, 36."))
    const { id } = yield* newSession()
    for (const name of ["a", "b", "c"]) yield* model.answer(calls(callParts(name, "look", {})))
    yield* model.answer(answer(ada))
    assert.isUndefined(yield* ask(id))
    assert.deepStrictEqual(yield* values(id), [ada])
    assert.strictEqual(yield* model.pending, 4)
  }).pipe(Effect.provide(runtime(tools)))
)

describe("RQ-42: an answer that does not fit", () => {
  it.scoped("RQ-42: it is corrected once: the model reads what is wrong, and may try again", () =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      yield* model.answer(answer({ name: "Ada", age: -1, sex: "f" }))
      yield* model.answer(answer(ada, "o2"))
      assert.isUndefined(yield* ask(id))
      yield* model.request
      const second = yield* model.request
      const [[, result] = []] = resultsIn(second)
      assert.include(result, "/age must be >= 0")
      assert.include(result, "must NOT have additional properties")
      assert.deepStrictEqual(yield* values(id), [ada])
    }).pipe(Effect.provide(runtime(tools)))
  )

  it.scoped("RQ-42: a second answer that does not fit is the run's failure, and the session says so", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      yield* model.answer(answer({ name: "Ada" }))
      yield* model.answer(answer({ age: 36 }, "o2"))
      assert.strictEqual(yield* ask(id), "StructuredOutputFailed")
      const { activity } = yield* sessions.get(id)
      assert.strictEqual(activity?.state, "failed")
      assert.strictEqual(activity?.error?.type, "StructuredOutputFailed")
      assert.include(activity?.error?.message, "its answer was invalid twice")
      assert.deepStrictEqual(yield* values(id), [])
      assert.strictEqual(yield* model.pending, 2)
    }).pipe(Effect.provide(runtime(tools)))
  )

  it.scoped("RQ-42: two wrong calls in one answer are one wrong answer; a right one beside a wrong one counts", () =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      const wrong = callParts("w1", "structured_output", {})
      yield* model.answer(calls(wrong, callParts("w2", "structured_output", { name: 1 })))
      yield* model.answer(calls(callParts("o", "structured_output", ada), callParts("w3", "structured_output", {})))
      assert.isUndefined(yield* ask(id))
      assert.deepStrictEqual(yield* values(id), [ada])
    }).pipe(Effect.provide(runtime(tools)))
  )

  it.scoped("RQ-42: a resume after the failure is a new try", () =>
    Effect.gen(function* () {
      const { id, model, sessions } = yield* scene()
      for (const name of ["o1", "o2"]) yield* model.answer(answer({}, name))
      assert.strictEqual(yield* ask(id), "StructuredOutputFailed")
      yield* model.answer(answer({}, "o3"))
      yield* model.answer(answer(ada, "o4"))
      yield* sessions.resume(id)
      assert.deepStrictEqual(yield* values(id), [ada])
    }).pipe(Effect.provide(runtime(tools)))
  )
})

it.scoped("RQ-43: an answer in words is corrected once, durably; a second one is the run's failure", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    yield* model.answer(says("It is Ada."))
    yield* model.answer(says("As I said: Ada."))
    assert.strictEqual(yield* ask(id), "StructuredOutputFailed")
    yield* model.request
    const second = yield* model.request
    const told = "Give the answer by calling structured_output, in the form that it asks for; text alone is not read."
    assert.strictEqual(allUserTexts(second).at(-1), told)
    assert.deepStrictEqual((yield* dataOf(id, "session.next.synthetic")).map(Struct.get("text")), [told])
  }).pipe(Effect.provide(runtime(tools)))
)

it.scoped("RQ-43: one answer in words and one that does not fit are two", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    yield* model.answer(says("It is Ada."))
    yield* model.answer(answer({}))
    assert.strictEqual(yield* ask(id), "StructuredOutputFailed")
    assert.strictEqual(yield* model.pending, 2)
  }).pipe(Effect.provide(runtime(tools)))
)

it.scoped("RQ-44: a schema that cannot be used is refused at admission, with the reason, and nothing is admitted", () =>
  Effect.gen(function* () {
    const { id, sessions } = yield* scene()
    const refused = Effect.fnUntraced(function* (schema: JsonRecord) {
      const error = yield* Effect.flip(sessions.prompt({ sessionID: id, prompt: { text: "?", output: { schema } } }))
      assert.strictEqual(error._tag, "InvalidInput")
      return error.message
    })
    assert.include(yield* refused({ type: "array" }), `prompt.output.schema: its root must be an object`)
    assert.include(yield* refused({}), `"type": "object"`)
    assert.include(
      yield* refused({ type: "object", properties: { a: { type: "text" } } }),
      "it is not a valid JSON Schema: "
    )
    assert.include(
      yield* refused({ type: "object", properties: { a: { $ref: "https://example.com/a" } } }),
      "not a valid JSON Schema"
    )
    assert.include(yield* refused({ type: "object", properties: { a: { pattern: "(" } } }), "not a valid JSON Schema")
    assert.include(yield* refused({ type: "object", $async: true }), "remove $async")
    assert.include(yield* refused({ type: "object", description: "x".repeat(70_000) }), "may have 65536 characters")
    const cyclic: Record<string, unknown> = { type: "object" }
    cyclic["properties"] = cyclic
    yield* refused(cyclic)
    assert.deepStrictEqual(yield* sessions.inbox(id), [])
  }).pipe(Effect.provide(runtime(tools)))
)

it("RQ-40: a schema may name draft-06, draft-07, 2019-09 or 2020-12, and means what it means there", () => {
  const drafts = ["http://json-schema.org/draft-06/schema#", "http://json-schema.org/draft-07/schema#"]
  for (const $schema of [...drafts, "https://json-schema.org/draft/2019-09/schema"]) {
    const pair = { type: "array", items: [{ type: "string" }, { type: "integer" }], additionalItems: false }
    const check = Either.getOrThrow(checkOf({ schema: { $schema, type: "object", properties: { pair } } }))
    assert.deepStrictEqual([check({ pair: ["a", 1] }), check({ pair: ["a", "b"] })], [true, false], $schema)
  }
  const $schema = "https://json-schema.org/draft/2020-12/schema"
  const pair = { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], items: false }
  const check = Either.getOrThrow(checkOf({ schema: { $schema, type: "object", properties: { pair } } }))
  assert.deepStrictEqual([check({ pair: ["a", 1] }), check({ pair: ["a", 1, 2] })], [true, false])
})

it("RQ-46: draft-04 means what it means there, and a schema without a name is of the draft that it is valid in", () => {
  const age = { type: "integer", minimum: 0, exclusiveMinimum: true }
  for (const $schema of [{ $schema: "http://json-schema.org/draft-04/schema#" }, {}]) {
    const check = Either.getOrThrow(checkOf({ schema: { ...$schema, type: "object", properties: { age } } }))
    assert.deepStrictEqual([check({ age: 1 }), check({ age: 0 })], [true, false])
  }
  const pair = { type: "array", items: [{ type: "string" }, { type: "integer" }], additionalItems: false }
  const check = Either.getOrThrow(checkOf({ schema: { type: "object", properties: { pair } } }))
  assert.deepStrictEqual([check({ pair: ["a", 1] }), check({ pair: ["a", "b"] })], [true, false])
})

it.scoped("RQ-46: a root that refers to an object is that object, for the model and for the check", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    const { schema } = format
    yield* model.answer(answer(ada))
    assert.isUndefined(yield* ask(id, { schema: { $ref: "#/$defs/Who", $defs: { Who: schema } } }))
    const request = yield* model.request
    assert.strictEqual(request.tools[0]?.name, "structured_output")
    assert.deepStrictEqual(yield* values(id), [ada])
    const refused = checkOf({ schema: { $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/A" } } } })
    assert.deepStrictEqual(refused, Either.left('its root refers to "#/$defs/A", which is not in it'))
  }).pipe(Effect.provide(runtime(tools)))
)

class Person extends Schema.Class<Person>("Person")({ name: Schema.String, born: Schema.DateFromString }) {}

describe("askFor", () => {
  const asked = <A, I>(output: Schema.Schema<A, I>, given: unknown) =>
    Effect.gen(function* () {
      const { id, model } = yield* scene()
      yield* model.answer(answer(given))
      return yield* askFor({ sessionID: id, prompt: { text: "Who is it?" }, output })
    }).pipe(Effect.provide(runtime(tools)))

  it.scoped("IB-59: the value is decoded, and of the schema's type", () =>
    Effect.gen(function* () {
      const { value } = yield* asked(Person, { name: "Ada", born: "1815-12-10" })
      assert.instanceOf(value, Person)
      assert.strictEqual(value.born.getFullYear(), 1815)
    })
  )

  it.scoped("IB-59: a schema whose root is no object is asked for as a field of one", () =>
    Effect.gen(function* () {
      const { value } = yield* asked(Schema.Array(Schema.Literal("red", "green")), { value: ["red"] })
      assert.deepStrictEqual(value, ["red"])
    })
  )

  it.scoped("IB-59: a value that fits the JSON Schema and does not decode is told with the answer", () =>
    Effect.gen(function* () {
      const Even = Schema.Struct({ n: Schema.transformOrFail(Schema.Int, Schema.Int, evenness) })
      const error = yield* Effect.flip(asked(Even, { n: 3 }))
      assert.instanceOf(error, AnswerUndecodable)
      assert.deepStrictEqual(error instanceof AnswerUndecodable ? error.answer.output : undefined, { n: 3 })
    })
  )
})

const evenness = {
  strict: true,
  decode: (n: number, _: unknown, ast: SchemaAST.AST) =>
    n % 2 === 0 ? ParseResult.succeed(n) : ParseResult.fail(new ParseResult.Type(ast, n, "it is odd")),
  encode: ParseResult.succeed
} as const

it("LM-23: patterns of a schema are matched in linear time, anywhere in the text; what cannot be is refused", () => {
  const checked = (schema: JsonRecord) => checkOf({ schema: { type: "object", ...schema } })
  const fits = (schema: JsonRecord, value: unknown) => Either.getOrThrow(checked(schema))(value)
  const hostile = { properties: { a: { pattern: "^(a|aa|a?b?)+(a+)+$" } }, patternProperties: { "^(x+x+)+y$": false } }
  assert.isFalse(fits(hostile, { a: `${"a".repeat(50_000)}!` }))
  assert.isTrue(fits(hostile, { a: "a".repeat(50_000), ["x".repeat(50_000)]: 1 }))
  assert.isTrue(fits({ properties: { a: { pattern: "\\d{2}-[ä-ü]" } } }, { a: "see 12-ö here" }))
  assert.isFalse(fits({ properties: { a: { pattern: "^\\p{Lu}" } } }, { a: "small" }))
  for (const pattern of ["(?=a)b", "(a)\\1", "a".repeat(1_001), "(?:(?:a{999}){999}){999}"]) {
    assert.isTrue(Either.isLeft(checked({ properties: { a: { pattern } } })), pattern)
  }
})

it.scoped("RQ-44: two schemas that use one id are two schemas", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    for (const [nth, type] of (["string", "integer"] as const).entries()) {
      const schema = { $id: "https://example.com/x", type: "object", properties: { a: { type } }, required: ["a"] }
      yield* model.answer(answer({ a: type === "string" ? "1" : 1 }, `o${nth}`))
      assert.isUndefined(yield* ask(id, { schema }))
    }
    assert.deepStrictEqual(yield* values(id), [{ a: "1" }, { a: 1 }])
  }).pipe(Effect.provide(runtime(tools)))
)

it.scoped("RQ-40: a long answer is whole in the log, whatever of a result is shown", () =>
  Effect.gen(function* () {
    const { id, model } = yield* scene()
    const lines = { lines: Array.from({ length: 5_000 }, (_, nth) => `${nth} ${"x".repeat(30)}`) }
    yield* model.answer(answer(lines))
    assert.isUndefined(yield* ask(id, { schema: { type: "object" } }))
    assert.deepStrictEqual(yield* values(id), [lines])
  }).pipe(Effect.provide(runtime(tools)))
)

it.scoped("RQ-55, RQ-40: the form holds across a compaction in the middle of its activity", () =>
  Effect.gen(function* () {
    const model = yield* ScriptedModel
    yield* tool("look", () => Effect.succeed(long("seen", 900)))
    const { id } = yield* newSession()
    for (const name of ["one", "two"]) yield* exchange(id, name)
    yield* model.answer(answer({}, "wrong"))
    yield* model.answer(calls(callParts("c", "look", {})))
    yield* model.answer(says(summary("To be exact")))
    yield* model.answer(answer(ada, "right"))
    assert.isUndefined(yield* ask(id))
    const requests = yield* Effect.replicateEffect(model.request, yield* model.pending)
    assert.strictEqual(requests.length, 4)
    assert.strictEqual(requests.at(-1)?.toolChoice, "required")
    assert.deepStrictEqual(yield* values(id), [ada])
    assert.strictEqual((yield* dataOf(id, "session.next.compaction.ended")).length, 1)
  }).pipe(Effect.provide(narrow({ ...tools, compaction: { ...compaction, prune: false } })))
)

it.scopedLive(
  "RQ-55, RQ-40: the form is durable: an input that waited over a restart asks for it, and shows its value after",
  () =>
    Effect.gen(function* () {
      const filename = `${yield* temporaryFolder}/daybook.db`
      const options = { ...tools, filename }
      const within = <A, E>(body: Effect.Effect<A, E, Sessions | ScriptedModel>) =>
        Effect.scoped(Effect.flatMap(open(options, window), (services) => Effect.provide(body, services)))
      const id = yield* within(
        Effect.gen(function* () {
          const session = yield* newSession()
          const sessions = yield* Sessions
          yield* sessions.prompt({ sessionID: session.id, prompt: { text: "Who?", output: format }, resume: false })
          return session.id
        })
      )
      yield* within(
        Effect.gen(function* () {
          const [sessions, model] = [yield* Sessions, yield* ScriptedModel]
          yield* model.answer(answer(ada))
          yield* sessions.resume(id)
          assert.strictEqual((yield* model.request).toolChoice, "required")
        })
      )
      assert.deepStrictEqual(yield* within(values(id)), [ada])
    })
)
