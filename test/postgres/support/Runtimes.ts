/** The whole runtime on PostgreSQL: a file of the contracts is a schema, so that two that open it are two nodes. */
import { createHash } from "node:crypto"
import { dirname, join } from "node:path"
import { Effect, Layer } from "effect"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import * as Postgres from "../../../packages/postgres/src/Postgres.ts"
import type { Runtimes } from "../../support/Harness.ts"
import { freshSchema, postgres, query, withSettlingClock } from "../../support/Postgres.ts"
import { giveTo } from "../../support/Owners.ts"
import * as ScriptedModel from "../../support/ScriptedModel.ts"

const schemaOf = (filename: string) => `f_${createHash("md5").update(filename).digest("hex")}`

const settingsOf = (filename: string) =>
  Effect.map(postgres, ({ url }): Postgres.Settings => ({ url, schema: schemaOf(filename), connections: 4 }))

const runtime: Runtimes["runtime"] = ({ filename = ":memory:", ...options } = {}, model = {}) => {
  const isMemory = filename === ":memory:"
  const { database: _, ...rest } = options
  const layer = Layer.unwrapScoped(
    Effect.map(isMemory ? freshSchema : settingsOf(filename), (settings) =>
      Daybook.layer({
        ...(isMemory ? {} : { toolOutputs: join(dirname(filename), "tool-output") }),
        ...rest,
        database: Postgres.config(settings)
      })
    )
  )
  return layer.pipe(Layer.provideMerge(ScriptedModel.layer(model)), Layer.merge(Layer.scopedDiscard(withSettlingClock)))
}

/** Copies the rows of a schema, at one instant, as the death of its node leaves them. */
const leave = (filename: string, copy: string) =>
  Effect.gen(function* () {
    const settings = yield* settingsOf(copy)
    const { url } = yield* postgres
    // Makes the tables.
    yield* Effect.scoped(Layer.build(Postgres.layerConnections(settings)))
    const [from, to] = [schemaOf(filename), schemaOf(copy)]
    yield* query(
      url,
      "BEGIN ISOLATION LEVEL REPEATABLE READ",
      `DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT table_name FROM information_schema.tables
          WHERE table_schema = '${from}' AND table_type = 'BASE TABLE' LOOP
          EXECUTE format('TRUNCATE ${to}.%I CASCADE', name);
        END LOOP;
        SET LOCAL session_replication_role = replica;
        FOR name IN SELECT table_name FROM information_schema.tables
          WHERE table_schema = '${from}' AND table_type = 'BASE TABLE' LOOP
          EXECUTE format('INSERT INTO ${to}.%I SELECT * FROM ${from}.%I', name, name);
        END LOOP;
      END $$`,
      "COMMIT"
    )
  }).pipe(Effect.orDie)

export const runtimes: Runtimes = {
  runtime,
  open: (options, model) => Layer.build(Layer.fresh(runtime(options, model))),
  leave,
  give: (filename, ownerID) =>
    Effect.flatMap(settingsOf(filename), (settings) => Effect.provide(giveTo(ownerID), Postgres.layer(settings)))
}
