/** Method: the real command runs with its settings, on the packages and on a module with broken links. */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { emptyFolder, manifest, packages, root, run } from "../packages/support/Packages.ts"

/** Runs `npm run docs:api` with further options in a new folder, then looks at what it wrote. */
const generating = async (options: (folder: string) => ReadonlyArray<string>, check: (folder: string) => void) => {
  const folder = emptyFolder("daybook-reference-")
  try {
    await run(root, "npm", "run", "docs:api", "--", "--out", join(folder, "api"), ...options(folder))
    check(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("npm run docs:api", () => {
  it("PA-10: the reference has every package with an index, without broken links", () =>
    generating(
      () => [],
      (folder) => {
        const index = readFileSync(join(folder, "api", "index.html"), "utf8")
        const indexed = packages.filter((name) => existsSync(join(root, "packages", name, "src", "index.ts")))
        assert.isNotEmpty(indexed)
        for (const name of indexed) assert.include(index, manifest(join(root, "packages", name)).name)
      }
    ))

  it.each([
    ["{@link Missing}", /Missing/],
    ["[a page](./missing.md)", /missing\.md/]
  ])("PA-10: a module with the broken link %s fails the command", async (link, message) => {
    const broken = (folder: string) => {
      writeFileSync(join(folder, "broken.ts"), `/** See ${link}. */\nexport const value = 1\n`)
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ files: ["broken.ts"] }))
      const settings = {
        extends: [join(root, "docs", "typedoc.json")],
        entryPoints: ["broken.ts"],
        tsconfig: "tsconfig.json"
      }
      writeFileSync(join(folder, "typedoc.json"), JSON.stringify(settings))
      return ["--options", join(folder, "typedoc.json")]
    }
    const failure = await generating(broken, () => {}).then(() => "", String)
    assert.match(failure, message)
  })
})
