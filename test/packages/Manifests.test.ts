/** The packages as they are in the repository. test/long/Pack.test.ts packs them, and uses them from outside of it. */
import { describe, it } from "@effect/vitest"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { packages, root } from "./support/Packages.ts"
import { bundles, checkImports, checkManifest, checkTexts } from "./support/Tarball.ts"

const folderOf = (name: string) => join(root, "packages", name)

describe.each(packages)("the package %s", (name) => {
  it("PA-5: it has the licence, and a README without links", () => checkTexts(name, folderOf(name)))

  it("PA-7: its manifest says what it is, and leaves effect and the driver to the application", () =>
    checkManifest(name, folderOf(name)))
})

// The modules of the inspector's page are in a bundle.
it.each(packages.filter((name) => !bundles.includes(name)))(
  "PA-6: the modules of %s import only its dependencies and peers",
  (name) => {
    const sources = readdirSync(join(folderOf(name), "src"), { recursive: true, encoding: "utf8" })
    const modules = sources.filter((file) => /^(?!page\b).*\.ts$/.test(file))
    checkImports(
      folderOf(name),
      modules.map((file) => join("src", file))
    )
  }
)
