/** The whole runtime on PostgreSQL: a file of the contracts is a schema, so that two that open it are two nodes. */
import { createHash } from "node:crypto"
import { Effect, Layer } from "effect"
import * as Daybook from "../../../packages/embedded/src/Daybook.ts"
import * as Postgres from "../../../packages/postgres/src/Postgres.ts"
import type { Runtimes } from "../../support/Harness.ts"
import { freshSchema, postgres, withSettlingClock } from "../../support/Postgres.ts"
import * as ScriptedModel from "../../support/ScriptedModel.ts"

const schemaOf = (filename: string) => {
  const schema = `f_${createHash("md5").update(filename).digest("hex")}`
  return Effect.map(postgres, ({ url }): Postgres.Settings => ({ url, schema, connections: 4 }))
}

const runtime: Runtimes["runtime"] = ({ filename = ":memory:", ...options } = {}, model = {}) => {
  const settings = filename === ":memory:" ? freshSchema : schemaOf(filename)
  const { database: _, ...rest } = options
  const layer = Layer.unwrapScoped(
    Effect.map(settings, (found) => Daybook.layer({ ...rest, database: Postgres.config(found) }))
  )
  return layer.pipe(Layer.provideMerge(ScriptedModel.layer(model)), Layer.merge(Layer.scopedDiscard(withSettlingClock)))
}

export const runtimes: Runtimes = {
  runtime,
  open: (options, model) => Layer.build(Layer.fresh(runtime(options, model)))
}
