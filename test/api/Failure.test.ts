/** Every error of every endpoint: its status, its code, and its way over the wire. */
import * as HttpApi from "@effect/platform/HttpApi"
import { assert, it } from "@effect/vitest"
import { Arbitrary, FastCheck as fc, Option, Schema, SchemaAST } from "effect"
import { Api } from "../../packages/api/src/index.ts"
import { statuses } from "../../packages/api/src/wire/Failure.ts"

interface Failing {
  readonly status: number
  readonly ast: SchemaAST.AST
}

const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(ast) ? ast.types.flatMap(membersOf) : [ast]

/** The errors of all endpoints by their names. */
const errors = (() => {
  const found = new Map<string, Failing>()
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ errors }) => {
      for (const [status, { ast }] of errors) {
        for (const member of Option.isSome(ast) ? membersOf(ast.value) : []) {
          const name = Option.getOrElse(SchemaAST.getIdentifierAnnotation(member), () => "")
          const before = found.get(name)
          assert.isTrue(before === undefined || before.status === status, name)
          found.set(name, { status, ast: member })
        }
      }
    }
  })
  // Without a name: `HttpApiDecodeError`, which is not ours.
  found.delete("")
  return [...found]
})()

const statusOf = new Map<string, number>(Object.entries(statuses))

it("HT-10: each error of an endpoint has the status of its code", () => {
  assert.isAbove(errors.length, 40)
  for (const [name, { status }] of errors) assert.strictEqual(status, statusOf.get(name), name)
})

it("HT-10: an error's body has its code and its message, and a client decodes the same error", () => {
  for (const [name, { ast }] of errors) {
    const schema = Schema.make<Error & { readonly _tag: string }, Record<string, unknown>>(ast)
    const [encode, decode] = [Schema.encodeSync(schema), Schema.decodeUnknownSync(schema)]
    fc.assert(
      fc.property(Arbitrary.make(schema), (error) => {
        const body: unknown = JSON.parse(JSON.stringify(encode(error)))
        assert.deepInclude(body, { _tag: name, message: error.message })
        const decoded = decode(body)
        assert.strictEqual(decoded._tag, name)
        assert.deepEqual(JSON.parse(JSON.stringify(encode(decoded))), body)
      }),
      { numRuns: 20 }
    )
  }
})
