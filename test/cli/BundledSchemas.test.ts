/** The command's bundle makes schemas in another way than Effect does. Method: one program is bundled with both, and run. */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { build, type Plugin } from "esbuild"
import { plugins } from "../../packages/cli/scripts/plugins.mjs"

const entry = fileURLToPath(new URL("support/schemaProgram.ts", import.meta.url))

const printed = async (used: Array<Plugin>): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: "node",
    format: "cjs",
    plugins: used
  })
  const { status, stderr, stdout } = spawnSync(process.execPath, ["-"], {
    input: outputFiles[0]?.text ?? "",
    encoding: "utf8"
  })
  assert.strictEqual(status, 0, stderr)
  return stdout
}

it("CL-60: schemas of the bundle decode, encode, refuse and describe as those of Effect", async () => {
  const light = plugins.filter(({ name }) => name === "light-schema")
  assert.strictEqual(light.length, 1)
  const [installed, bundled] = await Promise.all([printed([]), printed(light)])
  assert.isAbove(JSON.parse(installed).found.length, 15)
  assert.deepStrictEqual(JSON.parse(bundled), JSON.parse(installed))
}, 60_000)
