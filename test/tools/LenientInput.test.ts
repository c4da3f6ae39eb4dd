/** Inputs as models write them: what is meant by each, and what is refused all the same. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Tool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, FastCheck as fc, Schema, Stream, Struct } from "effect"
import { decodeInput } from "../../packages/core/src/tool/LenientInput.ts"
import { define, fromJsonSchema } from "../../packages/core/src/tool/ToolDefinition.ts"
import type { TodoItem } from "../../packages/log/src/domain/Values.ts"
import { dataOf } from "../runner/support/Runs.ts"
import { answerTo, runtime, say, scene } from "../support/Harness.ts"
import { callParts, calls, says, ScriptedModel } from "../support/ScriptedModel.ts"
import { patchOf } from "./PatchTree.ts"
import { agentWith, allowAll, callBy, makeWorkbench, type Options, textOf } from "./Workbench.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const Trip = Schema.Struct({
  to: Schema.NonEmptyString,
  days: optional(Schema.Int.pipe(Schema.between(1, 30))),
  withDog: optional(Schema.Boolean),
  via: optional(Schema.Array(Schema.Struct({ place: Schema.NonEmptyString, note: optional(Schema.String) }))),
  by: optional(Schema.Literal("train", "night_train")),
  guide: optional(Schema.NullOr(Schema.String)),
  label: optional(Schema.NonEmptyString),
  budget: optional(Schema.Union(Schema.Number, Schema.Struct({ atMost: Schema.Number })))
})
const decode = (input: unknown) => Effect.either(decodeInput("trip", Trip)(input))

const meant: ReadonlyArray<readonly [what: string, input: unknown, value: typeof Trip.Type]> = [
  ["an unknown field", { to: "x", description: "why" }, { to: "x" }],
  ["unknown fields further in", { to: "x", via: [{ place: "y", id: 1 }] }, { to: "x", via: [{ place: "y" }] }],
  ["a number as text", { to: "x", days: " 12 " }, { to: "x", days: 12 }],
  ["a truth value as text", { to: "x", withDog: "True" }, { to: "x", withDog: true }],
  ["null for an optional field", { to: "x", days: null, withDog: null, via: null }, { to: "x" }],
  ["null where null has a meaning", { to: "x", guide: null }, { to: "x", guide: null }],
  ["null further in", { to: "x", via: [{ place: "y", note: null }] }, { to: "x", via: [{ place: "y" }] }],
  ["an empty text for an optional field of another kind", { to: "x", days: "", by: "", via: "" }, { to: "x" }],
  ["an empty text for an optional text that is not empty", { to: "x", label: "" }, { to: "x" }],
  ["a word for nothing for an optional text", { to: "x", label: "None" }, { to: "x", label: "None" }],
  ["an empty text where one is allowed", { to: "x", guide: "" }, { to: "x", guide: "" }],
  ["a list as JSON", { to: "x", via: '[{"place":"y"}]' }, { to: "x", via: [{ place: "y" }] }],
  ["an object as JSON in a list", { to: "x", via: ['{"place":"y"}'] }, { to: "x", via: [{ place: "y" }] }],
  ["an object as JSON in a choice", { to: "x", budget: '{"at_most":"5"}' }, { to: "x", budget: { atMost: 5 } }],
  ["the whole input as JSON", '{"to":"x","days":2}', { to: "x", days: 2 }],
  ["the whole input below `input`", { input: { to: "x", days: "2" } }, { to: "x", days: 2 }],
  ["the whole input as JSON below `input`", { input: '{"to":"x"}' }, { to: "x" }],
  ["the whole input below `arguments`", { arguments: { to: "x" } }, { to: "x" }],
  ["a bare text", "x", { to: "x" }],
  ["a bare text in a list", { to: "x", via: ["y"] }, { to: "x", via: [{ place: "y" }] }],
  ["another spelling of a field", { To: "x", with_dog: true, "WITH-DOG": false }, { to: "x", withDog: true }],
  ["another spelling of a word", { to: "x", by: "Night Train" }, { to: "x", by: "night_train" }],
  ["a field beside its other spelling", { to: "x", with_dog: false, withDog: true }, { to: "x", withDog: true }],
  ["a word for nothing where no text fits", { to: "x", days: "null", withDog: "None", via: "undefined" }, { to: "x" }],
  ["a word for nothing where a text fits", { to: "null", guide: "None" }, { to: "null", guide: "None" }],
  ["the input beside the name of the tool", { name: "trip", arguments: '{"to":"x"}' }, { to: "x" }],
  ["the input beside an id", { id: "call_1", type: "tool", input: { to: "x" } }, { to: "x" }],
  ["a null beside its other spelling", { to: "x", withDog: null, with_dog: true }, { to: "x", withDog: true }]
]

const refused: ReadonlyArray<readonly [what: string, input: unknown, word: string]> = [
  ["a missing field", {}, "to"],
  ["nothing", undefined, "to"],
  ["null for a required field", { to: null }, "to"],
  ["an empty text for a required field", { to: "" }, "to"],
  ["a number for a text", { to: 7 }, "to"],
  ["a text that is not a number", { to: "x", days: "two" }, "days"],
  ["a number in another notation", { to: "x", days: "0x10" }, "days"],
  ["a part of a number", { to: "x", days: "1.5" }, "days"],
  ["a number out of range", { to: "x", days: 31 }, "days"],
  ["a number for a truth value", { to: "x", withDog: 1 }, "withDog"],
  ["an unknown word", { to: "x", by: "ship" }, "by"],
  ["broken JSON", { to: "x", via: '[{"place":' }, "via"],
  ["JSON of another kind", { to: "x", via: '{"place":"y"}' }, "via"],
  ["a list for an object", ["x"], "the input"],
  ["the input beside what is none of a call's", { why: "to see", input: { to: "x" } }, "to"],
  ["a list for a text", { to: ["x"] }, "to"],
  ["the input below two names", { input: { to: "x" }, arguments: {} }, "to"],
  ["the beginning of an input's JSON", '{"to":"x', "the input"],
  ["the beginning of it below `input`", { input: ' {"to":"x' }, "the input"],
  ["the beginning of an object's JSON", { to: "x", via: ['{"place":"y'] }, "via"],
  ["a name of every object", { ["__proto__"]: { to: "x" }, toString: "x" }, "to"]
]

describe("an input", () => {
  it.effect.each(meant)("TO-17: %s is understood", ([, input, value]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* decode(input), Either.right(value))
    })
  )

  it.effect.each(refused)("TO-3: %s is refused, naming the field", ([, input, word]) =>
    Effect.gen(function* () {
      const tool = define(Tool.make("trip").setParameters(Trip), { handler: () => Effect.dieMessage("it ran") })
      const error = yield* Effect.flip(tool.execute(input, callBy(agentWith(allowAll), "/nowhere")))
      assert.strictEqual(error._tag === "ToolFailure" && error.type, "tool.input")
      assert.include(error.message, word)
    })
  )

  it.effect("TO-17: where a schema allows fields of any name, each is kept under its own", () =>
    Effect.gen(function* () {
      const Open = Schema.Struct({ to: Schema.String }, Schema.Record({ key: Schema.String, value: Schema.Unknown }))
      const given = { to: "x", TO: "y", description: "why", none: null }
      assert.deepStrictEqual(yield* decodeInput("open", Open)(given), given)
      const Any = Schema.Record({ key: Schema.String, value: Schema.Unknown })
      assert.deepStrictEqual(yield* decodeInput("any", Any)(given), given)
    })
  )

  it.effect.prop("TO-17: what fits the schema already is taken as it is", [Trip], ([trip]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* decode(Schema.encodeSync(Trip)(trip)), Either.right(trip))
    })
  )

  it.effect.prop("TO-17: no input breaks the reading of inputs", [fc.jsonValue()], ([input]) =>
    Effect.gen(function* () {
      const result = yield* decode(input)
      assert.include(["Left", "Right"], result._tag)
    })
  )
})

const makeDesk = Effect.fnUntraced(function* (options?: Options) {
  const bench = yield* makeWorkbench(options)
  mkdirSync(join(bench.folder, "src"))
  writeFileSync(join(bench.folder, "src/a.ts"), "one\ntwo\n")
  const said = (name: string, input: unknown) => Effect.map(bench.succeed(name, input), textOf)
  const file = () => readFileSync(join(bench.folder, "src/a.ts"), "utf8")
  return { ...bench, said, file }
})

describe("the habits of models", () => {
  const reads: ReadonlyArray<readonly [tool: string, input: unknown, text: string]> = [
    ["read", { file_path: "src/a.ts", offset: 0, limit: 2_000 }, "one\ntwo\n"],
    ["read", { filePath: "src/a.ts", offset: "2", limit: "100000", explanation: "to see it" }, "two\n"],
    ["read", { file: "src/a.ts", offset: -3, limit: null }, "one\ntwo\n"],
    ["read", "src/a.ts", "one\ntwo\n"],
    ["glob", { pattern: "**/*.ts", path: "" }, "src/a.ts"],
    ["glob", { glob: "*.ts", directory: "src", include_ignored: "false" }, "src/a.ts"],
    ["grep", { regex: "TWO", folder: "src", glob: "*.ts", "-i": true }, "src/a.ts:2: two"],
    ["grep", { query: "two", include: null, ignore_case: null }, "src/a.ts:2: two"],
    ["read", { absolute_path: "src/a.ts", offset: "null", limit: 1.5 }, "one\ntwo\n"],
    ["read", { paths: ["src/a.ts"] }, "one\ntwo\n"],
    ["read", { path: "\nsrc/a.ts\n" }, "one\ntwo\n"],
    ["read", { name: "read", parameters: { file_path: "src/a.ts" } }, "one\ntwo\n"],
    ["glob", { patterns: ["**/*.ts"], target_directory: "." }, "src/a.ts"],
    ["grep", { search: "TWO", case_insensitive: true, file_pattern: ["*.ts"] }, "src/a.ts:2: two"],
    ["bash", { command: ["echo", "a  b", "it's", "$HOME"] }, "a  b it's $HOME\n"],
    ["bash", { command: ["bash", "-lc", "echo $((1+1)) | cat"], timeout: 10.5 }, "2\n"],
    ["bash", { commands: ["echo hi | cat"] }, "hi\n"],
    ["bash", { cmd: '["/bin/sh","-c","echo hi"]' }, "hi\n"],
    ["bash", { command: "echo hi", description: "Says hi", timeout: 120_000 }, "hi\n"],
    ["bash", { cmd: "pwd | tail -c 4", cwd: "src", timeout: "5" }, "src\n"],
    ["bash", { command: "echo hi", timeout: 0, workdir: null, run_in_background: false }, "hi\n"]
  ]
  it.scopedLive.each(reads)("TO-18: %s understands %j", ([tool, input, text]) =>
    Effect.gen(function* () {
      const { said } = yield* makeDesk()
      assert.strictEqual(yield* said(tool, input), text)
    })
  )

  it.effect("TO-18: a time limit in milliseconds, and one beyond the longest, are a time limit in seconds", () =>
    Effect.gen(function* () {
      const Limits = Schema.Struct({ timeout: optional(Schema.Int.pipe(Schema.between(1, 600))) })
      const decoded = (timeout: unknown) => decodeInput("bash", Limits)({ timeout })
      assert.deepStrictEqual(
        yield* Effect.forEach([30_000, "45000", 10_001, 900, 9_999, 600, 700_000, 0], decoded),
        [30, 45, 11, 600, 600, 600, 600, 1].map((timeout) => ({ timeout }))
      )
    })
  )

  const changes: ReadonlyArray<readonly [tool: string, input: unknown, after: string]> = [
    ["write", { file_path: "src/a.ts", contents: "new" }, "new"],
    ["edit", { file_path: "src/a.ts", old_string: "one", new_string: "1", replace_all: null }, "1\ntwo\n"],
    ["edit", { path: "src/a.ts", oldString: "o", newString: "0", replaceAll: "true" }, "0ne\ntw0\n"],
    ["edit", { path: "src/a.ts", old_str: "one\n", new_str: "" }, "two\n"],
    ...["patch", "input", "patchText", "patch_text", "diff"].map(
      (field) => ["apply_patch", { [field]: patchOf("*** Update File: src/a.ts", "-one", "+1") }, "1\ntwo\n"] as const
    ),
    ["write", { path: "src/a.ts", content: { a: [1] } }, '{\n  "a": [\n    1\n  ]\n}\n'],
    ["write", { path: "src/a.ts", data: "new" }, "new"],
    ["apply_patch", { command: ["apply_patch", patchOf("*** Update File: src/a.ts", "-one", "+1")] }, "1\ntwo\n"],
    ["apply_patch", { content: patchOf("*** Update File: src/a.ts", "-one", "+1") }, "1\ntwo\n"],
    ["apply_patch", { input: patchOf("*** Update File: src/a.ts", "-one", "+1"), reason: "x" }, "1\ntwo\n"],
    ["apply_patch", patchOf("*** Update File: src/a.ts", "-one", "+1"), "1\ntwo\n"],
    ["apply_patch", { input: { patch: patchOf("*** Update File: src/a.ts", "-one", "+1") } }, "1\ntwo\n"]
  ]
  it.scoped.each(changes)("TO-18: %s understands %j", ([tool, input, after]) =>
    Effect.gen(function* () {
      const { file, succeed } = yield* makeDesk()
      yield* succeed(tool, input)
      assert.strictEqual(file(), after)
    })
  )

  it.scoped("TO-19: the URL of a file in the Location is as good as its path, and of one outside as bad", () =>
    Effect.gen(function* () {
      const { fail, folder, said } = yield* makeDesk()
      assert.strictEqual(yield* said("read", { uri: `file://${folder}/src/a.ts` }), "one\ntwo\n")
      assert.strictEqual((yield* fail("read", { path: "file:///etc/hostname" })).type, "path.outside")
      assert.strictEqual((yield* fail("write", { path: "file:///tmp/%00", content: "" })).type, "path.invalid")
    })
  )

  it.scoped("TO-17: permission is asked for a command in a list as it is run", () =>
    Effect.gen(function* () {
      const { asked, fail } = yield* makeDesk({ rules: [] })
      yield* fail("bash", { command: ["sh", "-c", "rm -r src"] })
      yield* fail("bash", { command: ["rm", "-r", "a b"] })
      assert.deepStrictEqual(asked.map(Struct.get("resources")), [["rm -r src"], ["rm -r 'a b'"]])
    })
  )

  it.scoped("TO-17: permission is asked for the input as it is understood", () =>
    Effect.gen(function* () {
      const { asked, fail, folder } = yield* makeDesk({ rules: [] })
      yield* fail("bash", { input: { cmd: "rm -r src", description: "Looks at files" } })
      yield* fail("read", { file_path: join(folder, "src", "..", "src", "a.ts") })
      yield* fail("write", JSON.stringify({ filePath: join(folder, "new"), text: "x" }))
      yield* fail("apply_patch", patchOf(`*** Add File: ${folder}/n`, "+x", `*** Delete File: ${folder}/src/a.ts`))
      yield* fail("glob", { pattern: join(folder, "src", "*.ts") })
      assert.deepStrictEqual(
        asked.map(({ permission, resources, title }) => [permission, resources, title]),
        [
          ["bash", ["rm -r src"], "Run rm -r src\nin ."],
          ["read", ["src/a.ts"], "Read src/a.ts"],
          ["edit", ["new"], "Create new (1 bytes)"],
          ["edit", ["n", "src/a.ts"], "Patch A n, D src/a.ts"],
          ["glob", ["."], "Find src/*.ts in ."]
        ]
      )
    })
  )

  it.scoped("TO-17: a rule that denies a file holds for every spelling of its name", () =>
    Effect.gen(function* () {
      const { fail, folder, outside } = yield* makeDesk({
        rules: [...allowAll, { permission: "*", resource: "src/*", verdict: "deny" }]
      })
      symlinkSync(folder, join(outside, "alias"))
      for (const path of ["src/a.ts", join(folder, "src/a.ts"), join(outside, "alias", "src/a.ts")]) {
        for (const [tool, input] of [
          ["read", { file_path: path }],
          ["write", { file: path, contents: "" }],
          ["edit", { filename: path, old: "one", new: "1" }],
          ["apply_patch", { input: patchOf(`*** Delete File: ${path}`) }]
        ] as const) {
          assert.strictEqual((yield* fail(tool, input)).type, "permission.denied", `${tool} ${path}`)
        }
      }
    })
  )

  it.scoped("TO-17: the schema that a provider is shown stays strict", () =>
    Effect.gen(function* () {
      const { agent, registry } = yield* makeDesk()
      const { definitions } = yield* registry.materialize(agent)
      for (const { name, parametersSchema } of definitions) {
        const { additionalProperties, properties } = Tool.getJsonSchemaFromSchemaAst(parametersSchema.ast) as {
          readonly additionalProperties?: unknown
          readonly properties?: object
        }
        assert.isFalse(additionalProperties, name)
        for (const habit of ["input", "file_path", "description"]) assert.notProperty(properties, habit, name)
      }
    })
  )

  it.effect("TO-17: a tool of another schema gets its input as it is, fields of any name included", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const tool = fromJsonSchema({
        name: "read",
        parameters: { type: "object", properties: { path: { type: "string" } }, additionalProperties: false },
        execute: (input) => Effect.sync(() => (seen.push(input), { structured: {}, content: [] }))
      })
      const call = callBy(agentWith(allowAll), "/nowhere")
      const given = { file_path: "a", path: null, input: { x: "1" }, Path: "b" }
      for (const input of [given, JSON.stringify(given), undefined, { input: "{}" }]) yield* tool.execute(input, call)
      assert.deepStrictEqual(seen, [given, given, {}, { input: "{}" }])
      assert.strictEqual((yield* Effect.flip(tool.execute("[1]", call)))._tag, "ToolFailure")
    })
  )
})

describe("in a session", () => {
  /** The model makes one call, and ends. */
  const called = Effect.fnUntraced(function* (name: string, input: unknown) {
    const { id, model, sessions } = yield* scene()
    yield* model.answer(calls(callParts("call", name, input)))
    yield* model.answer(says("done"))
    yield* say(id, "go")
    return { id, sessions }
  })

  it.effect("TO-17, TO-91: a list in another form is the list, and a null is only a look", () =>
    Effect.gen(function* () {
      const todos = [
        { content: "a", status: "completed", activeForm: "Doing a" },
        { step: "b", state: "in-progress" }
      ]
      const list: ReadonlyArray<TodoItem> = [
        { text: "a", status: "done" },
        { text: "b", status: "in_progress" }
      ]
      for (const input of [{ todos }, { items: JSON.stringify(todos) }, { input: JSON.stringify({ todos }) }]) {
        const { id, sessions } = yield* called("todo", input)
        yield* sessions.wait(id)
        assert.deepStrictEqual(yield* sessions.todos(id), list)
      }
      const model = yield* ScriptedModel
      const { id, sessions } = yield* called("todo", { items: [{ text: "kept", status: "done" }] })
      yield* sessions.wait(id)
      yield* model.answer(
        calls(
          callParts("one", "todo", { todos: [{ text: "new", status: "done" }] }),
          callParts("two", "todo", { items: null })
        )
      )
      yield* answerTo(id, "on", "done")
      assert.deepStrictEqual(yield* sessions.todos(id), [{ text: "new", status: "done" }])
    }).pipe(Effect.provide(runtime()))
  )

  it.effect("TO-17, TO-81: a question in another form is open as it is understood", () =>
    Effect.gen(function* () {
      const understood = [{ question: "Which?", header: "Colour", options: [{ label: "red" }, { label: "blue" }] }]
      const questions = [
        { question: "Which?", title: "Colour", options: ["red", { value: "blue" }], multiSelect: null }
      ]
      for (const input of [
        { questions, note: 1 },
        { questions: JSON.stringify(questions) },
        JSON.stringify({ questions })
      ]) {
        const { id, sessions } = yield* called("question", input)
        const [pending] = yield* sessions.events({ sessionID: id }).pipe(
          Stream.filter(({ type }) => type === "session.next.tool.called"),
          Stream.take(1),
          Stream.runDrain,
          Effect.zipRight(sessions.questions(id))
        )
        assert.deepStrictEqual(pending?.questions, understood)
        if (pending !== undefined) yield* sessions.answer({ ...pending, answers: ["red"] })
        yield* sessions.wait(id)
        assert.lengthOf(yield* dataOf(id, "session.next.tool.success"), 1)
      }
    }).pipe(Effect.provide(runtime({ questions: true })))
  )
})
