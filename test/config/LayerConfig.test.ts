/** The runtime's options from `Config`. */
import { assert, it } from "@effect/vitest"
import { Config, ConfigProvider, Effect, Layer } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Sessions } from "../../packages/core/src/session/Sessions.ts"
import { layer, layerConfig } from "../../packages/embedded/src/Daybook.ts"
import { OfflineModel, Models } from "../../packages/models/src/index.ts"

const models = Models.layerOptions({ providers: {}, default: OfflineModel.ref })
const configured = (entries: ReadonlyArray<readonly [string, string]>) =>
  layerConfig({
    filename: Config.string("DATABASE"),
    inboxLimit: Config.integer("INBOX").pipe(Config.withDefault(10))
  }).pipe(Layer.provide(models), Layer.provide(Layer.setConfigProvider(ConfigProvider.fromMap(new Map(entries)))))

const create = Effect.flatMap(Sessions, (sessions) => sessions.create({ location: { directory: tmpdir() } }))

it.scoped("CF-49: the options of the embedded runtime come from Config, and absent fields have their defaults", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "daybook-config-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    const filename = join(folder, "acme.sqlite")
    const { id } = yield* Effect.provide(create, configured([["DATABASE", filename]]))
    const found = Effect.flatMap(Sessions, (sessions) => sessions.get(id))
    const session = yield* Effect.provide(found, Layer.provide(layer({ filename }), models))
    assert.strictEqual(session.id, id)
  })
)

it.scoped("CF-49: a missing or invalid value is a ConfigError that names it", () =>
  Effect.gen(function* () {
    const missing = yield* Effect.flip(Effect.provide(create, configured([])))
    assert.include(String(missing), "DATABASE")
    const invalid = yield* Effect.flip(
      Effect.provide(
        create,
        configured([
          ["DATABASE", ":memory:"],
          ["INBOX", "many"]
        ])
      )
    )
    assert.include(String(invalid), "INBOX")
  })
)
