/** Encrypted connections to a PostgreSQL whose certificate no authority has signed. */
import { execFileSync } from "node:child_process"
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { describe } from "vitest"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { lacks } from "../support/Parts.ts"
import { query } from "../support/Postgres.ts"
import { asPostgres, start } from "../support/PostgresServer.ts"

/** A server that takes encrypted connections only. It ends, and its folder goes, with this process. */
const server = Effect.gen(function* () {
  const folder = mkdtempSync(join(tmpdir(), "daybook-encrypted-"))
  chmodSync(folder, 0o777)
  const [certificate, key] = [join(folder, "certificate.pem"), join(folder, "key.pem")]
  const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
  const names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
  execFileSync(...asPostgres("openssl", ...request, ...names), { stdio: "ignore", cwd: "/" })
  const { port, url } = start(folder, process.pid, ["ssl=on", `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`])
  writeFileSync(join(folder, "data", "pg_hba.conf"), "hostssl all all all trust\n")
  yield* query(url, "SELECT pg_reload_conf()")
  return { certificate, url: `postgres://postgres@localhost:${port}/postgres` }
})

const connected = (url: string) => Effect.scoped(Layer.build(Postgres.layer({ url })))

describe.skipIf(lacks("postgres") || lacks("openssl"))("an encrypted PostgreSQL", () => {
  it.scopedLive("PG-53: sslmode has the meaning of libpq, and refusals say what to add", () =>
    Effect.gen(function* () {
      const { certificate, url } = yield* server
      yield* connected(`${url}?sslmode=require`)
      yield* connected(`${url}?sslmode=verify-full&sslrootcert=${certificate}`)
      const unknown = yield* Effect.flip(connected(`${url}?sslmode=verify-full`))
      assert.include(unknown.message, "give its authority with sslrootcert=FILE")
      const plain = yield* Effect.flip(connected(url))
      assert.include(plain.message, "add sslmode=require")
    })
  )
})
