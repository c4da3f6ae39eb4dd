/** A log behind PgBouncer, a pooler between the nodes and PostgreSQL. */
import { spawn } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { describe } from "vitest"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { begin, readAll, session } from "../support/Logs.ts"
import { lacks } from "../support/Parts.ts"
import { addressOf, freshSchema, query } from "../support/Postgres.ts"
import { asPostgres, freePort } from "../support/PostgresServer.ts"

/** Starts PgBouncer with its own defaults, and returns the address of the database behind it. */
const pooler = (url: string, mode: "session" | "transaction") =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = mkdtempSync(join(tmpdir(), "daybook-pooler-"))
      chmodSync(folder, 0o755)
      const [server, port] = [new URL(url), freePort()]
      const settings = [
        "[databases]",
        `postgres = host=${server.hostname} port=${server.port} user=${server.username}`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${port}`,
        "unix_socket_dir =",
        "auth_type = any",
        `pool_mode = ${mode}`
      ]
      writeFileSync(join(folder, "pooler.ini"), settings.join("\n"))
      const child = spawn(...asPostgres("pgbouncer", join(folder, "pooler.ini")), {
        stdio: ["ignore", "ignore", "pipe"]
      })
      for await (const line of createInterface(child.stderr)) if (line.includes("process up")) break
      server.port = String(port)
      return { child, folder, url: server.href }
    }),
    ({ child, folder }) =>
      Effect.sync(() => {
        child.kill("SIGKILL")
        rmSync(folder, { recursive: true, force: true })
      })
  )

describe.skipIf(lacks("pgbouncer"))("a pooler before PostgreSQL", () => {
  it.scopedLive("PG-52: one in session mode carries a log in its schema", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const { url } = yield* pooler(addressOf(settings), "session")
      const context = yield* Layer.build(Postgres.layer({ ...settings, url }))
      const id = session()
      yield* Effect.provide(begin(id), context)
      assert.lengthOf(yield* Effect.provide(readAll(id), context), 1)
      const rows = yield* query(addressOf(settings), `SELECT 1 FROM ${settings.schema}.event`)
      assert.lengthOf(rows, 1)
    })
  )

  it.scopedLive("PG-52: one in transaction mode is refused, in words, and nothing is made", () =>
    Effect.gen(function* () {
      const settings = yield* freshSchema
      const { url } = yield* pooler(addressOf(settings), "transaction")
      const refused = yield* Effect.flip(Layer.build(Postgres.layer({ ...settings, url })))
      assert.deepInclude(refused, { _tag: "DatabaseError", reason: "cannot-open" })
      assert.include(refused.message, "a pooler in session mode")
      const made = `SELECT 1 FROM pg_namespace WHERE nspname = '${settings.schema}'`
      assert.deepStrictEqual(yield* query(addressOf(settings), made), [])
      const left = yield* query(url, "SELECT current_setting('search_path') AS path")
      assert.notInclude(JSON.stringify(left), `${settings.schema}`)
    })
  )
})
