import { assert, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"
import * as LineBudget from "../../../packages/shell/src/output/LineBudget.ts"
import * as OutputPipeline from "../../../packages/shell/src/output/OutputPipeline.ts"
import * as RedactionStream from "../../../packages/shell/src/output/RedactionStream.ts"
import { harmless, secrets } from "../../formats/support/Secrets.ts"
import { forAll } from "../../support/Cases.ts"

const known = "correct-horse-battery"
const prepared = RedactionStream.prepare([known])

const staged = (bytes: Buffer, budget: LineBudget.CompiledBudget) => {
  const pipeline = OutputPipeline.make({ budget, secrets: prepared })
  pipeline.add(bytes)
  return pipeline.end()
}

const shaped = (text: string, budget: Parameters<typeof LineBudget.compile>[0] = {}) => {
  const compiled = Either.getOrThrow(LineBudget.compile(budget))
  const bytes = Buffer.from(text)
  return { short: OutputPipeline.shape(bytes.toString("latin1"), compiled, prepared), staged: staged(bytes, compiled) }
}

it("SL-39: a short output is what the stages make of it, or left to them", () => {
  const part = fc.oneof(
    { arbitrary: fc.constantFrom(...harmless, "plain words", "a=1", "\n", "\n\n", "\t", " "), weight: 4 },
    { arbitrary: fc.constantFrom(...Object.values(secrets).flat(), known, "\r", "\u001b[1m", "é", "\0"), weight: 1 }
  )
  const budget = fc.constantFrom<Parameters<typeof LineBudget.compile>[0]>(
    {},
    { max_chars: 8 },
    { grep: { pattern: "a" } },
    { keep: { mode: "head", n: 1 } }
  )
  const text = fc.array(part, { maxLength: 6 }).map((parts) => parts.join(""))
  forAll([text, budget], 500, (output, limits) => {
    const found = shaped(output, limits)
    if (found.short !== undefined) assert.deepStrictEqual(found.short, found.staged)
  })
})

it("SL-39: plain text is a short output", () => {
  for (const text of ["", "\n", "hi\n", "two\n\tlines\n\n", "~/a b/c.txt: 12%"]) {
    const { short, staged: whole } = shaped(text)
    assert.deepStrictEqual(short, whole)
  }
})
