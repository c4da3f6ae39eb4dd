/** The files of `deploy`, as they are in the repository. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { parseAllDocuments } from "yaml"
import { serve } from "../../packages/cli/src/commands/serve.ts"
import { root } from "./support/Packages.ts"

const read = (name: string) => readFileSync(join(root, "deploy", name), "utf8").replaceAll(/^\s*#.*$/gm, "")

/** Every name and value within. */
const leaves = (value: unknown): ReadonlyArray<string> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([name, each]) => [name, ...leaves(each)])
    : [String(value)]

const yaml = (name: string) =>
  parseAllDocuments(read(name), { merge: true })
    .flatMap((each) => leaves(each.toJS()))
    .flatMap((text) => text.split("="))

/** The words of each file, and the name of the time that it gives the server to end, in seconds. */
const files = [
  ["compose.yaml", yaml("compose.yaml"), "stop_grace_period"],
  ["kubernetes.yaml", yaml("kubernetes.yaml"), "terminationGracePeriodSeconds"],
  ["daybook.service", read("daybook.service").split(/[\s=]+/), "TimeoutStopSec"]
] as const

describe("the files of deploy", () => {
  for (const [name, words, time] of files) {
    const after = (word: string) => Number.parseInt(words[words.indexOf(word) + 1] ?? "", 10)

    it(`CL-825: ${name} serves with options that exist`, () => {
      const known = new Set(serve.flags.map((flag) => `--${flag.name}`))
      const options = words.filter((word) => /^--[a-z]/.test(word))
      assert.isAbove(options.length, 0)
      assert.deepStrictEqual(
        options.filter((option) => !known.has(option)),
        []
      )
    })

    it(`CL-825: ${name} gives running turns and open requests time to end`, () => {
      assert.isAtLeast(after(time), after("--drain") + 10)
    })
  }
})
