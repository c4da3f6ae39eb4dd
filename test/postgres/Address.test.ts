import { assert, describe, it } from "@effect/vitest"
import { nameOf, parse } from "../../packages/postgres/src/Address.ts"

describe("addresses of PostgreSQL", () => {
  it("PG-54: a user without a host, and the password, are parameters beside the folder of the socket", () => {
    const text = (address: string) => parse(address)?.toString()
    assert.strictEqual(text("postgres://ada@/book?host=/run"), "postgres:///book?user=ada&host=/run")
    assert.strictEqual(text("postgres://ada:a%40b+c&d@/book"), "postgres:///book?user=ada&password=a%40b%2Bc%26d")
    assert.strictEqual(text("postgres://ada@db.example/book"), "postgres://ada@db.example/book")
    const named = (address: string, schema?: string) => nameOf(parse(address) ?? new URL("none:"), schema)
    assert.strictEqual(named("postgres://ada:pw@/book?host=/run&port=1"), "postgres:///book?host=/run&port=1")
    assert.strictEqual(named("postgres://ada:pw@db.example/book?x=y", "s"), "postgres://db.example/book?schema=s")
    assert.isUndefined(text("mysql://ada@/book"))
    assert.isUndefined(text("postgres:ada"))
  })
})
