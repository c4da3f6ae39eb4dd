/** One prompt from its admission to its answer, with the offline model and the built-in tools, on two nodes. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Models } from "@daybook/models"
import { Context, Effect, Layer } from "effect"
import { describe } from "vitest"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import * as Daybook from "../../packages/embedded/src/Daybook.ts"
import * as Postgres from "../../packages/postgres/src/Postgres.ts"
import { temporaryFolder } from "../support/Harness.ts"
import { lacks } from "../support/Parts.ts"
import { freshSchema } from "../support/Postgres.ts"

const manifest = { scripts: { build: "tsc", test: "vitest" } }

describe.skipIf(lacks("postgres"))("PostgreSQL", () => {
  it.scopedLive("PG-1: the offline model answers a prompt, and another node shows and continues the session", () =>
    Effect.gen(function* () {
      const directory = join(yield* temporaryFolder, "project")
      mkdirSync(directory)
      writeFileSync(join(directory, "package.json"), JSON.stringify(manifest))
      const database = Postgres.config(yield* freshSchema)
      const node = Layer.build(
        Layer.fresh(Daybook.layer({ database }).pipe(Layer.provide(Models.layerOptions({ providers: {} }))))
      )
      const [one, other] = [Context.get(yield* node, Sessions), Context.get(yield* node, Sessions)]
      const model = { providerID: "offline", id: "scribe" }
      const { id } = yield* one.create({ location: { directory }, model })
      const ask = (sessions: Sessions["Type"], text: string) =>
        Effect.zipRight(sessions.prompt({ sessionID: id, prompt: { text } }), sessions.wait(id))
      yield* ask(one, "Which scripts does package.json define? Read it first.")
      const shown = yield* other.messages({ sessionID: id })
      assert.deepStrictEqual(shown, yield* one.messages({ sessionID: id }))
      assert.include(JSON.stringify(shown.items), "package.json defines 2 scripts")
      yield* ask(other, "Read package.json again.")
      assert.isAbove((yield* one.messages({ sessionID: id })).total, shown.total)
    })
  )
})
