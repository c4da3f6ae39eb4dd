/** Input schemas of real servers that a provider refused, and any JSON in their place. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FastCheck } from "effect"
import { sanitise } from "../../packages/mcp/src/SafeSchema.ts"
import { forAll } from "../support/Cases.ts"
import { makeMcp, obedient } from "./support/Servers.ts"

const ajv = new Ajv2020({ strict: false, logger: false })
const compile = (schema: object) => ajv.compile(schema)

/** The schema of one property `p`. */
const repaired = (property: unknown) => {
  const { changed, schema } = sanitise({ type: "object", properties: { p: property } })
  const { properties } = schema as { readonly properties: { readonly p: unknown } }
  return { changed, p: properties.p }
}

const text = { type: "string" }

describe("an input schema", () => {
  it("MC-11: that every provider accepts is shown as it is", () => {
    const schema = {
      type: "object",
      description: "All of it",
      properties: {
        id: { type: "string", minLength: 1, maxLength: 9, pattern: "^a", format: "uuid", title: "Id" },
        tags: { type: "array", items: { type: "string" }, minItems: 1, uniqueItems: true, default: [] },
        when: { anyOf: [{ type: "string" }, { type: "null" }] },
        at: { type: ["integer", "null"], minimum: 0, exclusiveMaximum: 9 },
        kind: { enum: ["a", "b"] },
        deep: { type: "object", properties: { x: { $ref: "#/$defs/x" } }, required: ["x"], additionalProperties: false }
      },
      required: ["id"],
      additionalProperties: false,
      $defs: { x: { type: "object", properties: { next: { $ref: "#/$defs/x" } } } }
    }
    const safe = sanitise(schema)
    assert.deepStrictEqual(safe.schema, schema)
    assert.isFalse(safe.changed)
    for (const anything of [{}, true]) {
      assert.deepStrictEqual(sanitise(anything).schema, { type: "object", properties: {} })
      assert.isFalse(sanitise(anything).changed)
    }
  })

  it("MC-11: gets an object at its root, with the properties of choices as optional ones", () => {
    const { changed, schema } = sanitise({
      type: "object",
      properties: { id: text },
      required: ["id"],
      oneOf: [
        { properties: { id: { type: "number" }, kind: { const: "a" }, path: text }, required: ["path"] },
        { properties: { kind: { const: "b" } } }
      ],
      not: {}
    })
    assert.deepStrictEqual(schema, {
      type: "object",
      properties: { id: text, kind: { anyOf: [{ const: "a" }, { const: "b" }] }, path: text },
      required: ["id"]
    })
    assert.isFalse(changed)
  })

  it("MC-11: whose root is a reference or an allOf requires what these require", () => {
    const A = { type: "object", properties: { a: text }, required: ["a"], additionalProperties: false }
    const referred = sanitise({ $ref: "#/definitions/A", definitions: { A } })
    assert.deepStrictEqual([referred.schema, referred.changed], [A, false])
    const both = {
      allOf: [{ $ref: "#/definitions/A" }, { properties: { b: text }, required: ["b"] }],
      definitions: { A }
    }
    assert.deepStrictEqual(sanitise(both).schema["required"], ["b", "a"])
  })

  for (const root of [null, [], "text", 7, false, { type: "string" }, { type: "array", items: text }]) {
    it(`MC-680: ${JSON.stringify(root)} becomes an object without properties`, () => {
      const { changed, schema } = sanitise(root)
      assert.deepStrictEqual([schema["type"], schema["properties"], changed], ["object", {}, true])
    })
  }

  for (const [what, given, expected] of [
    ["any type", { type: "any", description: "d" }, { description: "d" }],
    ["a type of another language", { type: "str" }, text],
    ["a type in capitals", { type: "Integer" }, { type: "integer" }],
    ["an unknown type among others", { type: ["string", "file"] }, {}],
    ["types twice", { type: ["str", "string", "null"] }, { type: ["string", "null"] }],
    ["a schema as a type", { type: { type: "string" } }, {}],
    ["a type in place of the schema", "string", text],
    ["a number in place of the schema", 7, {}],
    ["no values", { type: "string", enum: [] }, text],
    ["values of another type", { type: "string", enum: [1, 2] }, { enum: [1, 2] }],
    ["some values of another type", { type: "string", enum: ["a", null, 1] }, { type: "string", enum: ["a"] }],
    ["a value of another type", { type: "string", const: 1 }, { const: 1 }],
    ["words in place of values", { enum: "a, b" }, {}],
    [
      "draft 4's bounds",
      { minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
      { exclusiveMinimum: 0, maximum: 9 }
    ],
    ["bounds in quotes", { type: "number", minimum: "0" }, { type: "number" }],
    ["a negative length", { type: "string", maxLength: -1 }, text],
    ["a pattern that is none", { type: "string", pattern: "[" }, text],
    ["no items", { type: "array", items: [] }, { type: "array", items: {} }],
    [
      "a tuple",
      { type: "array", items: [text, { type: "number" }, text] },
      { type: "array", items: { anyOf: [text, { type: "number" }] } }
    ],
    ["a reference to nothing", { $ref: "#/definitions/Missing", description: "d" }, { description: "d" }],
    ["a reference to another file", { $ref: "https://example.test/a.json" }, {}],
    ["a number as a reference", { $ref: 7 }, {}],
    ["no choices", { anyOf: [] }, {}],
    ["a list of properties", { type: "object", properties: [] }, { type: "object", properties: {} }],
    [
      "properties that are absent",
      { type: "object", properties: { a: text }, required: ["a", "b"] },
      { type: "object", properties: { a: text }, required: ["a"] }
    ],
    [
      "one required name",
      { type: "object", properties: { a: text }, required: "a" },
      { type: "object", properties: { a: text }, required: ["a"] }
    ],
    [
      "the list of required names among the properties",
      { type: "object", properties: { a: text, required: ["a"] } },
      { type: "object", properties: { a: text }, required: ["a"] }
    ],
    [
      "draft 3's required",
      { type: "object", properties: { a: { type: "string", required: true } } },
      { type: "object", properties: { a: text }, required: ["a"] }
    ]
  ] as ReadonlyArray<readonly [string, unknown, unknown]>) {
    it(`MC-682: ${what} is repaired: ${JSON.stringify(given).slice(0, 80)}`, () => {
      assert.deepStrictEqual(repaired(given), { changed: true, p: expected })
    })
  }

  for (const [what, given, expected] of [
    ["an unknown format", { type: "string", format: "int64" }, text],
    ["an unknown keyword", { type: "string", "x-order": 1, markdownDescription: "m", $id: "i", $comment: "c" }, text],
    ["an array of anything", { type: "array" }, { type: "array", items: {} }],
    ["draft 2020's tuple", { type: "array", prefixItems: [text], items: false }, { type: "array", items: text }],
    [
      "OpenAPI's nullable",
      { type: "string", enum: ["a"], nullable: true },
      { type: ["string", "null"], enum: ["a", null] }
    ],
    ["true", true, {}],
    ["false", false, { not: {} }]
  ] as ReadonlyArray<readonly [string, unknown, unknown]>) {
    it(`MC-683: ${what} gets the form of all providers, and is no fault: ${JSON.stringify(given)}`, () => {
      assert.deepStrictEqual(repaired(given), { changed: false, p: expected })
    })
  }

  it("MC-681: definitions that are used move to $defs, wherever they were, and recursion stays", () => {
    const { changed, schema } = sanitise({
      type: "object",
      properties: { tree: { $ref: "#/definitions/my node" }, again: { $ref: "#/properties/tree" } },
      definitions: { "my node": { properties: { next: { $ref: "#/definitions/my%20node" } } }, unused: {} }
    })
    const to = { $ref: "#/$defs/my_node" }
    assert.deepStrictEqual(schema["properties"], { tree: to, again: { $ref: "#/$defs/my_node" } })
    assert.isFalse(changed)
    assert.notInclude(JSON.stringify(schema), "unused")
    compile(schema)
  })

  it("MC-681: references in a circle mean anything, and those under a false path are found by name", () => {
    const circle = sanitise({
      properties: { a: { $ref: "#/$defs/A" }, s: { $ref: "#/components/schemas/S" } },
      $defs: { A: { $ref: "#/$defs/B" }, B: { $ref: "#/$defs/A" }, S: text }
    })
    assert.deepStrictEqual(circle.schema["properties"], { a: {}, s: { $ref: "#/$defs/S" } })
    assert.deepStrictEqual(circle.schema["$defs"], { S: text })
  })

  it("MC-684: a schema that is too deep or grows too large is cut", () => {
    const deep = JSON.parse('{"items":'.repeat(2_000) + "{}" + "}".repeat(2_000))
    assert.isBelow(JSON.stringify(sanitise({ properties: { deep } }).schema).length, 1_000)
    let nested: object = { description: "x".repeat(1_000) }
    for (let level = 0; level < 30; level++) nested = { properties: { n: nested } }
    const path = (level: number) => `#/properties/all${"/properties/n".repeat(level)}`
    const refs = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`r${at}`, { $ref: path(at % 31) }]))
    const large = sanitise({ properties: { all: nested, ...refs, wide: { description: "y".repeat(60_000) } } })
    assert.deepStrictEqual(large.schema, { type: "object", properties: {} })
  })
})

describe("names that providers refuse", () => {
  const schema = {
    type: "object",
    properties: {
      "user name": { type: "string", description: "Who" },
      user_name: text,
      $filter: { type: "object", properties: { "a b": text }, additionalProperties: { $ref: "#/$defs/row" } },
      rows: { type: "array", items: { anyOf: [{ $ref: "#/$defs/row" }, text] } },
      free: { type: "object" },
      приём: text,
      ["x".repeat(70)]: text,
      "": text
    },
    required: ["user name", "$filter"],
    $defs: { row: { type: "object", properties: { "a b": text, next: { $ref: "#/$defs/row" } }, required: ["a b"] } }
  }

  it("MC-685: are replaced, and the description names the server's", () => {
    const safe = sanitise(schema)
    const { properties } = safe.schema as { readonly properties: Record<string, object> }
    assert.deepStrictEqual(Object.keys(properties), [
      "user_name_2",
      "user_name",
      "_filter",
      "rows",
      "free",
      "_____",
      "x".repeat(64),
      "_"
    ])
    assert.deepStrictEqual(properties["user_name_2"], { type: "string", description: 'Sent as "user name". Who' })
    assert.deepStrictEqual(safe.schema["required"], ["user_name_2", "_filter"])
    assert.isTrue(safe.changed)
  })

  it("MC-685: are in the input that the server gets, and free keys stay", () => {
    assert.deepStrictEqual(
      sanitise(schema).restoreInput({
        user_name_2: "a",
        user_name: "b",
        _filter: { a_b: "c", other: { a_b: "d", next: { a_b: "e" } } },
        rows: [{ a_b: "f" }, "g"],
        free: { a_b: "h", user_name_2: "i" },
        _: "j"
      }),
      {
        "user name": "a",
        user_name: "b",
        $filter: { "a b": "c", other: { "a b": "d", next: { "a b": "e" } } },
        rows: [{ "a b": "f" }, "g"],
        free: { a_b: "h", user_name_2: "i" },
        "": "j"
      }
    )
  })

  it.scoped("MC-685: a server gets the names that it listed, and the status names the tool once", () =>
    Effect.gen(function* () {
      const { bench, mcp, said, until } = yield* makeMcp({ own: obedient })
      yield* mcp.ready
      const inputSchema = { type: "object", properties: { "user name": { type: "any" } }, required: ["user name"] }
      yield* said("own_change", { add: [{ name: "odd", inputSchema }] })
      const { details } = yield* until("own", (status) => status.details?.includes("odd") === true)
      assert.include(details, "tools offered with a repaired input schema: odd")
      const { definitions } = yield* bench.registry.materialize(bench.agent)
      assert.isTrue(definitions.some(({ name }) => name === "own_odd"))
      assert.strictEqual(yield* said("own_odd", { user_name: 1 }), 'odd: {"user name":1}')
    })
  )
})

describe("any JSON in place of a schema", () => {
  const words = FastCheck.constantFrom(
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "const",
    "$ref",
    "$defs",
    "definitions",
    "anyOf",
    "allOf",
    "not",
    "minimum",
    "exclusiveMinimum",
    "pattern",
    "patternProperties",
    "additionalProperties",
    "nullable",
    "a b",
    "$x",
    "__proto__",
    "default",
    "format",
    "maxLength",
    "if",
    "then",
    "contains",
    "prefixItems"
  )
  const leaves = FastCheck.oneof(
    FastCheck.constantFrom<unknown>(
      "string",
      "any",
      "object",
      "array",
      ["string", "null"],
      "#",
      "#/$defs/A",
      "#/definitions/a b",
      "#/properties/A",
      "[",
      "^a",
      true,
      false,
      null,
      0,
      -1,
      1.5,
      [],
      {},
      "a b",
      ["a b"],
      "#/%"
    ),
    FastCheck.jsonValue({ maxDepth: 1 })
  )
  const { schema: schemas } = FastCheck.letrec<{ schema: unknown }>((tie) => ({
    schema: FastCheck.oneof(
      { maxDepth: 5, withCrossShrink: true },
      leaves,
      FastCheck.dictionary(FastCheck.oneof(words, FastCheck.constantFrom("A", "b")), tie("schema"), { maxKeys: 6 }),
      FastCheck.array(tie("schema"), { maxLength: 3 })
    )
  }))

  /** All keys of `properties`, and all references, at any place where a schema has them. */
  const found = (value: unknown, key: string): ReadonlyArray<unknown> =>
    value === null || typeof value !== "object"
      ? []
      : Object.entries(value).flatMap(([name, each]) => [...(name === key ? [each] : []), ...found(each, key)])

  it("MC-680, MC-681, MC-685: becomes a schema that compiles, with an object at its root and plain names", () => {
    forAll([schemas], 150, (value) => {
      const { schema } = sanitise(value)
      assert.strictEqual(schema["type"], "object")
      compile(schema)
      const { default: _default, ...rest } = schema
      const parsed: unknown = JSON.parse(JSON.stringify(rest, (key, each) => (key === "default" ? undefined : each)))
      for (const ref of found(parsed, "$ref")) {
        if (typeof ref === "string") assert.match(ref, /^#\/\$defs\/[a-zA-Z0-9_.-]{1,64}$/)
      }
      for (const name of Object.keys(schema["properties"] ?? {})) assert.match(name, /^[a-zA-Z0-9_.-]{1,64}$/)
    })
  })

  it("MC-686: is repaired once: a repaired schema is right", () => {
    forAll([schemas], 150, (value) => {
      const once = sanitise(value).schema
      const twice = sanitise(once)
      assert.deepStrictEqual(twice.schema, once)
      assert.isFalse(twice.changed)
    })
  })
})
