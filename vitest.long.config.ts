import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { defineConfig } from "vitest/config"
import { AbsentParts } from "./test/support/AbsentParts.ts"

/** Files of the other suites that hold properties: here each property runs 125 times as many cases. */
const properties = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".test.ts") && !file.startsWith("long"))
  .map((file) => join("test", file))
  .filter((file) => /\bcases\(|\.prop\(|\b(?:fc|FastCheck)\.assert\(/.test(readFileSync(file, "utf8")))

const long = { pool: "forks", testTimeout: 6 * 60 * 60_000, hookTimeout: 60_000 } as const

/**
 * The long runs, `npm run test:long`: kills, simulations and many cases of every property. `-- --project long` or
 * `-- --project properties` runs one of the two.
 */
export default defineConfig({
  ssr: { resolve: { conditions: ["@daybook/source"], externalConditions: ["@daybook/source"] } },
  resolve: { conditions: ["@daybook/source"] },
  test: {
    reporters: ["default", new AbsentParts()],
    projects: [
      { extends: true, test: { ...long, name: "long", include: ["test/long/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          ...long,
          name: "properties",
          include: properties,
          setupFiles: ["test/support/setup.ts"],
          env: { DAYBOOK_CASES: "125", DAYBOOK_SEED: process.env["DAYBOOK_SEED"] ?? "random" }
        }
      }
    ]
  }
})
