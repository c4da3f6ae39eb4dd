import { defineConfig } from "vitest/config"

/** Tests run against the packages' sources: the `@daybook/source` export condition points there. */
export default defineConfig({
  ssr: { resolve: { conditions: ["@daybook/source"], externalConditions: ["@daybook/source"] } },
  resolve: { conditions: ["@daybook/source"] },
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/long/**", "**/node_modules/**"],
    pool: "forks",
    // Files share a worker's loaded modules: loading Effect anew for each would take longer than the tests.
    isolate: false,
    // Many tests wait for processes and disks: every core may have a worker.
    maxWorkers: "100%",
    minWorkers: 1,
    // A larger young generation: garbage is collected less often.
    poolOptions: { forks: { execArgv: ["--min-semi-space-size=64", "--max-semi-space-size=128"] } },
    setupFiles: ["test/support/setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
