/** Prints what schemas of each kind do. It is bundled with Effect as it is installed, and as the command's bundle changes it. */
import { Either, JSONSchema, Schema } from "effect"

const Named = Schema.Struct({ name: Schema.NonEmptyString, age: Schema.optionalWith(Schema.Int, { default: () => 7 }) })
const { make: makeNamed } = Named
const Id = Schema.String.pipe(Schema.pattern(/^id_/), Schema.brand("Id"))
const { make: makeId } = Id
class Person extends Schema.Class<Person>("Person")({ id: Id, tags: Schema.Array(Schema.Literal("a", "b")) }) {
  get first() {
    return this.tags[0]
  }
}
class Failed extends Schema.TaggedError<Failed>("Failed")("Failed", { at: Schema.Date }) {}
class Sub extends Named {}

const kinds = {
  literal: Schema.Literal("a", 1, null),
  union: Schema.Union(Schema.String, Named),
  tuple: Schema.Tuple(Schema.String, Schema.Number),
  record: Schema.Record({ key: Schema.String, value: Schema.Number }),
  struct: Named,
  picked: Named.pick("name"),
  omitted: Named.omit("name"),
  brand: Id,
  refined: Schema.Number.pipe(Schema.filter((n) => n > 1 || "too small")),
  transformed: Schema.NumberFromString,
  json: Schema.parseJson(Named),
  enums: Schema.Enums({ one: 1, two: 2 }),
  declared: Schema.DateFromSelf,
  suspended: Schema.suspend((): Schema.Schema<string> => Schema.String),
  annotated: Named.annotations({ identifier: "Annotated", description: "A person." }),
  extended: Named.pipe(Schema.extend(Schema.Struct({ more: Schema.Boolean }))),
  person: Person,
  failed: Failed,
  subclass: Sub
}

const values = ["a", 1, null, "id_1", "3", ["a", 1], { name: "n" }, { name: "" }, '{"name":"n"}', { a: 1 }, 2]

const shown = (run: () => unknown): unknown => {
  try {
    return run()
  } catch (cause) {
    return String(cause)
  }
}

const found = Object.entries(kinds).map(([kind, of]) => {
  const schema = Schema.make<unknown>(of.ast)
  return {
    kind,
    text: String(of),
    isSchema: Schema.isSchema(of),
    json: shown(() => JSONSchema.make(schema)),
    decoded: values.map((value) => String(JSON.stringify(Either.merge(Schema.decodeUnknownEither(schema)(value))))),
    encoded: values.map((value) => String(JSON.stringify(Either.merge(Schema.encodeUnknownEither(schema)(value))))),
    again: String(of.annotations({ title: "Again" }))
  }
})

const person = new Person({ id: Id.make("id_1"), tags: ["b"] })
const made = [
  makeNamed({ name: "n" }),
  shown(() => makeNamed({ name: "" })),
  makeId("id_2"),
  shown(() => makeId("no")),
  Sub.make({ name: "s" }),
  [person.first, person instanceof Person, Schema.is(Person)(person)],
  [new Failed({ at: new Date(0) }) instanceof Error, Object.keys(Named.fields), kinds.union.members.length],
  Schema.decodeUnknownSync(Schema.standardSchemaV1(Named))({ name: "n" })
]

process.stdout.write(JSON.stringify({ found, made }))
