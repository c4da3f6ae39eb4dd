/**
 * Method: the packages are packed and installed with npm into an empty folder outside of the repository, from the
 * registry and with their native parts built, as an application would. Then the README's example is checked and run.
 */
import { assert, describe, it } from "@effect/vitest"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { copiesOfEffect, emptyFolder, pack, run, typeCheck } from "../packages/support/Packages.ts"

/** The packages that an application installs beside ours, by line of effect. */
const lines = [
  ["3.22", ["effect@3.22.4", "@effect/platform-node@0.108.2"]],
  [
    "3.21",
    [
      "effect@3.21.5",
      "@effect/ai@0.36.0",
      "@effect/experimental@0.60.0",
      "@effect/platform@0.96.3",
      "@effect/platform-node@0.107.0",
      "@effect/rpc@0.75.1",
      "@effect/sql@0.51.1"
    ]
  ]
] as const

describe("an installation from the registry", () => {
  it.each(lines)(
    "PA-2: beside effect %s the packed packages install in an empty folder, type-check, and run the README's example",
    { timeout: 900_000 },
    async (version, others) => {
      const folder = emptyFolder("daybook-install-")
      try {
        writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
        const ours = (await pack(folder)).map((file) => `./${file}`)
        await run(folder, "npm", "install", "--no-audit", "--no-fund", ...ours, "@types/node@22", ...others)
        const [copy, ...more] = await copiesOfEffect(folder)
        assert.deepStrictEqual(more, [])
        assert.include(await run(folder, "npm", "ls", "effect"), `effect@${version}.`)
        assert.strictEqual(copy, join(folder, "node_modules", "effect", "package.json"))
        await typeCheck(folder)
        assert.match(
          await run(folder, process.execPath, "example.js"),
          /^on disk as event 1\n[\s\S]*activity\.settled\n$/
        )
        assert.match(await run(folder, "npx", "daybook", "prompt", "hello"), /offline/)
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    }
  )

  it(
    "PA-500: beside effect 4 the packed client with promises installs, and answers without a server",
    { timeout: 300_000 },
    async () => {
      const folder = emptyFolder("daybook-effect-4-")
      try {
        writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
        const [own = ""] = await pack(folder, ["promise"])
        await run(folder, "npm", "install", "--no-audit", "--no-fund", `./${own}`, "effect@4")
        writeFileSync(
          join(folder, "program.js"),
          `import { Effect } from "effect"
        import { connect } from "@daybook/promise"
        const failed = connect({ baseUrl: "http://127.0.0.1:1", token: "t" }).get("nope").catch(({ code }) => code)
        console.log(await Effect.runPromise(Effect.promise(() => failed)))`
        )
        assert.strictEqual(await run(folder, process.execPath, "program.js"), "SessionNotFound\n")
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    }
  )
})
