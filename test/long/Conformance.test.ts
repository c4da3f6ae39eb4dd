/**
 * Method: the conformance suite is packed and installed with npm into an empty folder outside of the repository, with its peers
 * from the registry, and started with npx as its README says.
 */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { layer as served } from "../client/support/ServedClient.ts"
import { emptyFolder, pack, run } from "../packages/support/Packages.ts"
import { Served, token } from "../server/http/support/ServedApi.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => emptyFolder("daybook-conformance-")),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

layer(served(), { excludeTestServices: true })("the conformance suite from its tarball", (it) => {
  it.scoped(
    "HT-68: npx starts it with an address and a token, and every clause holds for Daybook's server",
    () =>
      Effect.gen(function* () {
        const [here, { url }] = [yield* folder, yield* Served]
        const said = yield* Effect.promise(async () => {
          writeFileSync(join(here, "package.json"), JSON.stringify({ private: true }))
          const [tarball = ""] = await pack(here, ["conformance"])
          await run(here, "npm", "install", "--no-audit", "--no-fund", `./${tarball}`)
          return run(here, "npx", "@daybook/conformance", url, token)
        })
        const [, holding, all] = /\n(\d+) of (\d+) hold\n$/.exec(said) ?? []
        assert.strictEqual(holding, all)
        assert.isAbove(Number(all), 8)
      }),
    300_000
  )
})
