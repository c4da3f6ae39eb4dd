import { assert, it } from "@effect/vitest"
import { didYouMean, nearest } from "../../packages/cli/src/support/Nearest.ts"

const verbs = ["prompt", "events", "sessions", "messages", "show", "context", "compact", "rename", "remove", "models"]

it.each([
  ["promt", "prompt"],
  ["Prompt", "prompt"],
  ["session", "sessions"],
  ["mess", "messages"],
  ["renmae", "rename"],
  ["sho", "show"],
  ["model", "models"],
  ["x", undefined],
  ["", undefined],
  ["wh", undefined],
  ["elephant", undefined],
  ["p".repeat(100_000), undefined]
])("CL-2: %j is near %j", (typed, word) => {
  assert.strictEqual(nearest(typed, verbs), word)
  assert.strictEqual(didYouMean(typed, verbs), word === undefined ? "" : `; did you mean ${word}?`)
})
