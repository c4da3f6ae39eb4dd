/** Measures what an import of a package costs, in time and heap, in a process of its own. It needs `npm run build`. */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { median } from "./Figures.ts"

const Cost = Schema.parseJson(Schema.Struct({ ms: Schema.Number, heap: Schema.Number }))
export type Cost = typeof Cost.Type

const root = fileURLToPath(new URL("../../..", import.meta.url))

const once = (name: string): Cost => {
  const code = `const started = performance.now()
    await import(${JSON.stringify(name)})
    const ms = performance.now() - started
    globalThis.gc()
    console.log(JSON.stringify({ ms, heap: process.memoryUsage().heapUsed }))`
  const words = ["--expose-gc", "--input-type=module", "--eval", code]
  const { stderr, stdout } = spawnSync(process.execPath, words, { cwd: root, encoding: "utf8" })
  if (stdout === "") throw new Error(`${name} cannot be imported: ${stderr}`)
  return Schema.decodeUnknownSync(Cost)(stdout)
}

/** Medians for each package; the rounds alternate between the packages. */
export const measure = (names: ReadonlyArray<string>, rounds: number): ReadonlyMap<string, Cost> => {
  const all = names.map((name) => ({ name, costs: Array.of<Cost>() }))
  for (let round = 0; round < rounds; round++) for (const { costs, name } of all) costs.push(once(name))
  return new Map(
    all.map(({ costs, name }) => [
      name,
      { ms: median(costs.map(({ ms }) => ms)), heap: median(costs.map(({ heap }) => heap)) }
    ])
  )
}
