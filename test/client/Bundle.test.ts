/** What the client costs a page. */
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { assert, it } from "@effect/vitest"
import { build } from "esbuild"
import { Effect } from "effect"

const entry = (name: string) => fileURLToPath(new URL(`../../packages/client/src/${name}.ts`, import.meta.url))

it.effect(
  "HT-63: bundled for browsers, without Effect, the client is below 60 KB compressed and needs no Node module",
  () =>
    Effect.gen(function* () {
      const { metafile, outputFiles } = yield* Effect.promise(() =>
        build({
          entryPoints: [entry("index")],
          bundle: true,
          minify: true,
          write: false,
          metafile: true,
          format: "esm",
          platform: "browser",
          conditions: ["@daybook/source"],
          external: ["effect", "@effect/*", "node:*"]
        })
      )
      const external = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path))
      assert.deepEqual(
        external.filter((path) => !/^(?:effect|@effect\/(?:platform|experimental))(?:\/|$)/.test(path)),
        []
      )
      const size = gzipSync(outputFiles[0]?.contents ?? "", { level: 9 }).length
      assert.isAbove(size, 10_000)
      assert.isBelow(size, 60_000)
    })
)
