import { readdirSync } from "node:fs"
import { defineConfig, type ViteUserConfig } from "vitest/config"
import { AbsentParts } from "./test/support/AbsentParts.ts"
import { SlowTests } from "./test/support/SlowTests.ts"

/**
 * The files of a project share two workers and their loaded modules: to load Effect anew for each file would take longer than the
 * tests. Each project gets new workers, so that they stay small: to start a program from a process of 1.6 GB takes 94 ms instead of 1.4.
 */
const folders = {
  cli: ["cli", "mcp"],
  shell: ["shell", "sandbox", "watch"],
  server: ["server", "http", "client", "conformance", "inspector"],
  tools: ["tools", "files", "execution", "discord", "consumer"]
}
const named: ReadonlySet<string> = new Set([...Object.values(folders).flat(), "long"])
const rest = readdirSync("test", { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() && !named.has(entry.name) ? [entry.name] : []
)

const world = ".world.test.ts"

/** Only on a quiet machine a test's time says something of the test. */
const quiet = process.env["DAYBOOK_QUIET"] === "1"

/** Which files a suite has, by the ends of their names. */
const files = {
  test: { ends: ".test.ts", exclude: [`**/*${world}`] },
  world: { ends: world, exclude: [] },
  both: { ends: ".test.ts", exclude: [] }
}

/** Tests run against the packages' sources: the `@daybook/source` export condition points there. */
export const suite = (name: keyof typeof files): ViteUserConfig => {
  const { ends, exclude } = files[name]
  return defineConfig({
    ssr: { resolve: { conditions: ["@daybook/source"], externalConditions: ["@daybook/source"] } },
    resolve: { conditions: ["@daybook/source"] },
    test: {
      projects: Object.entries({ ...folders, rest }).map(([project, under]) => ({
        extends: true,
        test: { name: project, include: under.map((folder) => `test/${folder}/**/*${ends}`), exclude }
      })),
      pool: "forks",
      isolate: false,
      // Many tests wait for processes and disks: every core may have a worker.
      maxWorkers: "100%",
      minWorkers: 1,
      // A larger young generation: garbage is collected less often.
      poolOptions: { forks: { execArgv: ["--min-semi-space-size=32", "--max-semi-space-size=64"] } },
      reporters: ["default", new AbsentParts(), ...(quiet && name === "test" ? [new SlowTests()] : [])],
      setupFiles: ["test/support/setup.ts"],
      // A test that hangs ends; no test is judged by its time, which a busy machine multiplies.
      testTimeout: name === "test" ? 30_000 : 120_000,
      hookTimeout: 120_000
    }
  })
}
