/** The packages as they are in the repository. test/long/Pack.test.ts packs them, and uses them from outside of it. */
import { describe, it } from "@effect/vitest"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { packages, root } from "./support/Packages.ts"
import { checkImports, checkManifest, checkTexts } from "./support/Tarball.ts"

describe.each(packages)("the package %s", (name) => {
  const folder = join(root, "packages", name)

  it("PA-5: it has the licence, and a README without links", () => checkTexts(name, folder))

  // All modules of the command are in its bundle.
  if (name !== "cli")
    it("PA-6: its modules import only its dependencies and peers", () =>
      checkImports(
        folder,
        readdirSync(join(folder, "src"), { recursive: true, encoding: "utf8" })
          // The page of the inspector is bundled too.
          .filter((file) => /^(?!page\b).*\.ts$/.test(file))
          .map((file) => join("src", file))
      ))

  it("PA-7: its manifest says what it is, and leaves effect and the driver to the application", () =>
    checkManifest(name, folder))
})
