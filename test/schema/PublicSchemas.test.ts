/**
 * Every public value and error is a schema whose encoded form is JSON. Walks what the packages' index files export, so
 * that a new export is checked without a change here.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, FastCheck as fc, Predicate, Record, Schema } from "effect"
import * as core from "@daybook/core"
import * as files from "@daybook/files"
import * as log from "@daybook/log"
import * as mcp from "@daybook/mcp"
import * as models from "@daybook/models"
import * as server from "@daybook/server"
import * as tools from "@daybook/tools"
import * as formats from "@daybook/formats"
import * as transcript from "@daybook/transcript"
import { forAll } from "../support/Cases.ts"

type AnySchema = Schema.Schema<unknown, unknown>
type Export = { readonly name: string; readonly value: unknown }

const isModule = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Object.prototype.toString.call(value) === "[object Module]"

/** The exports of a module and of its namespaces, by their full names. */
const exportsOf = (name: string, module: object): ReadonlyArray<Export> =>
  Object.entries(module).flatMap(([key, value]) =>
    isModule(value) ? exportsOf(`${name}.${key}`, value) : [{ name: `${name}.${key}`, value }]
  )

const everything = Object.entries({ log, core, tools, mcp, models, transcript, files, formats, server }).flatMap(
  ([name, module]) => exportsOf(name, module)
)
const isPublicSchema = (value: unknown): value is AnySchema => Schema.isSchema(value)

/** The configuration of MCP servers holds secrets and is decoded only. */
const decodedOnly = /^mcp\..*(?:Server|Servers)$/

/** Exported under several names, a schema counts once. */
const schemas = everything.filter(
  ({ name, value }, at) =>
    isPublicSchema(value) && !decodedOnly.test(name) && everything.findIndex((other) => other.value === value) === at
)

/** The value as JSON can tell it from others: without undefined fields, with one zero; errors by message and fields. */
const told = (value: unknown): unknown => {
  if (value === 0) return 0
  if (Array.isArray(value)) return value.map(told)
  if (value instanceof Error) {
    const { name, message } = value
    return "_tag" in value ? { name, message, fields: told({ ...value }) } : { name, message }
  }
  if (value instanceof URL || value instanceof Uint8Array || !Predicate.isRecord(value)) return value
  return Record.map(Record.filter(value, Predicate.isNotUndefined), told)
}

for (const { name, value } of schemas) {
  if (!isPublicSchema(value)) continue
  it(`AR-7: ${name} reads back from its JSON as an equal value`, () => {
    const [encode, decode] = [Schema.encodeSync(value), Schema.decodeUnknownSync(value)]
    forAll([Arbitrary.make(value)], 6, (one) => {
      const json = JSON.stringify(encode(one))
      const again = decode(JSON.parse(json))
      assert.deepStrictEqual(told(again), told(one))
      assert.strictEqual(JSON.stringify(encode(again)), json)
    })
  })
}

it("AR-8: every error that a package exports is a schema with its own tag and a message", () => {
  const errors = everything.filter(({ value }) => Predicate.isFunction(value) && value.prototype instanceof Error)
  assert.isAbove(errors.length, 40)
  for (const { name, value } of errors) {
    assert.isTrue(isPublicSchema(value), `${name} is not a schema`)
    if (!isPublicSchema(value)) continue
    const some = fc.sample(Arbitrary.make(value), { numRuns: 5, seed: 1 })
    for (const one of some) assert.isTrue(Predicate.isTagged(one, name.split(".").at(-1) ?? ""), `${name}: its tag`)
    assert.isTrue(
      some.some((one) => one instanceof Error && one.message !== ""),
      `${name} has no message`
    )
  }
})

/** By namespace, the values whose schemas a server, a client and a test generator need. */
const values: Readonly<Record<string, string>> = {
  "log.EventLog": "AppendError EventPage FeedPage ForeignEvent From Head OpenText OwnerToken ReadError ReadOptions",
  "log.Message": "Input Message Part Session",
  "log.Pages": "ListOptions MessagePage MessagesOptions SessionPage",
  "log.SessionEvents": "Envelope LiveEvent SessionEvent",
  "log.StoreError": "StoreError",
  "log.Values": "Budget Estimated Location ModelRef PromptInput TodoItem Tokens Usage",
  "core.Agent": "Agent",
  "core.Answer": "Answer PromptUnanswered",
  "core.Question": "PendingQuestion QuestionRef",
  "core.RequestLog": "ShownRequest",
  "core.RunError": "RunError",
  "core.SessionOptions":
    "AnswerOptions AskOptions CreateOptions InterruptOptions NamedOptions NamedSession NothingToRedo NothingToUndo Placement PromptOptions RedoRefused RequestOptions SessionUsage Undone UndoneFile UndoOptions",
  "core.ToolOutput": "ToolOutput"
}

it("AR-7: the values of the facade and of the log are schemas", () => {
  const names = new Set(everything.flatMap(({ name, value }) => (isPublicSchema(value) ? [name] : [])))
  const wanted = Object.entries(values).flatMap(([space, list]) => list.split(" ").map((name) => `${space}.${name}`))
  assert.deepStrictEqual(
    wanted.filter((name) => !names.has(name)),
    []
  )
})
