import { defineConfig } from "vitest/config"

/** The long runs: the same properties and crashes as in the quick suite, many times. `npm run test:long`. */
export default defineConfig({
  ssr: { resolve: { conditions: ["@daybook/source"], externalConditions: ["@daybook/source"] } },
  resolve: { conditions: ["@daybook/source"] },
  test: {
    include: ["test/long/**/*.test.ts"],
    pool: "forks",
    testTimeout: 60 * 60_000,
    hookTimeout: 60_000
  }
})
