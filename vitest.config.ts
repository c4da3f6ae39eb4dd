import { statfsSync } from "node:fs"
import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"

const inMemory = "/dev/shm"

/** Whether this machine has a file system in memory with room for the tests' databases. */
const hasMemory = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(inMemory)
    return bavail * bsize > 2 ** 31
  } catch {
    return false
  }
}

const cores = availableParallelism()
/**
 * Many tests wait for processes and disks, so that `npm test` keeps the cores busy with a half more workers. Their number does
 * not change during a run: removing an idle worker at the end of a run fails the run now and then.
 */
const busy = Math.ceil(cores * 1.5)
const workers =
  process.env["npm_lifecycle_event"] === "test"
    ? { maxWorkers: busy, minWorkers: busy }
    : { maxWorkers: cores, minWorkers: 1 }

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
    ...workers,
    // A larger young generation: garbage collection takes half the time.
    poolOptions: { forks: { execArgv: ["--min-semi-space-size=64", "--max-semi-space-size=128"] } },
    // Databases in temporary folders need no disk. `TMPDIR` chooses another place.
    env: process.env["TMPDIR"] === undefined && hasMemory() ? { TMPDIR: inMemory } : {},
    setupFiles: ["test/support/setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000
  }
})
