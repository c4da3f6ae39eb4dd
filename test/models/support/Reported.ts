/** Tables of what servers were reported to send, and of what it is read as, over real HTTP. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, identity } from "effect"
import { classifyError } from "../../../packages/core/src/model/ProviderError.ts"
import { hasty } from "../../support/HastyClock.ts"
import { answer, type Api, connect, only, type Part, textOf, tool } from "./Client.ts"
import type { Reply } from "./Server.ts"

/** What a reply is read as; what is absent is not compared. */
export interface Expected {
  readonly text?: string
  readonly thought?: string
  /** The inputs of the calls, in order. */
  readonly calls?: ReadonlyArray<unknown>
  readonly names?: ReadonlyArray<string>
  readonly ids?: ReadonlyArray<string>
  readonly reason?: string
  /** A part of the error's sentence. */
  readonly error?: string
  readonly retryable?: boolean
  readonly input?: number
  readonly output?: number
  readonly cached?: number
}

/** By clause and by what was reported: the reply, and what it is read as if that is not `fine`. */
export type Reports = Readonly<Record<string, Readonly<Record<string, Reply | readonly [Reply, Expected]>>>>

export const fine: Expected = { text: "fine", reason: "stop" }

const thoughtOf = (parts: ReadonlyArray<Part>): string =>
  only(parts, "reasoning-delta")
    .map(({ delta }) => delta)
    .join("")

const factsOf = (parts: ReadonlyArray<Part>): Expected => {
  const [failed] = only(parts, "error")
  const [end] = only(parts, "finish")
  const failure = failed === undefined ? undefined : classifyError(failed.error)
  const calls = only(parts, "tool-call")
  return {
    text: textOf(parts),
    thought: thoughtOf(parts),
    calls: calls.map(({ params }) => params),
    names: calls.map(({ name }) => name),
    ids: calls.map(({ id }) => id),
    ...(failure === undefined ? {} : { error: failure.message, retryable: failure.retryable }),
    ...(end === undefined ? {} : { reason: end.reason }),
    ...(end?.usage.inputTokens === undefined ? {} : { input: end.usage.inputTokens }),
    ...(end?.usage.outputTokens === undefined ? {} : { output: end.usage.outputTokens }),
    ...(end?.usage.cachedInputTokens === undefined ? {} : { cached: end.usage.cachedInputTokens })
  }
}

const check = (found: Expected, { error, ...expected }: Expected): void => {
  for (const [name, value] of Object.entries(expected)) {
    assert.deepStrictEqual(found[name as keyof Expected], value, `${name} of ${JSON.stringify(found)}`)
  }
  if (error === undefined) assert.isUndefined(found.error, JSON.stringify(found))
  else assert.include(found.error ?? JSON.stringify(found), error)
}

/** Every block that begins ends, and the answer has one end. */
const isBalanced = (parts: ReadonlyArray<Part>): void => {
  for (const kind of ["text", "reasoning"] as const) {
    const begun = only(parts, `${kind}-start`).map(({ id }) => id)
    const ended = only(parts, `${kind}-end`).map(({ id }) => id)
    assert.deepStrictEqual(new Set(ended), new Set(begun))
    assert.strictEqual(ended.length, begun.length)
  }
  assert.strictEqual(only(parts, "finish").length, 1)
}

const isPlain = (row: Reply | readonly [Reply, Expected]): row is Reply => !Array.isArray(row)

/** One test for each report. */
export const reported = (api: Api | "gemini", model: string, ...tables: ReadonlyArray<Reports>): void => {
  const rows = tables.flatMap((table) =>
    Object.entries(table).flatMap(([clause, reports]) =>
      Object.entries(reports).map(
        ([what, row]) => [clause, what, ...(isPlain(row) ? ([row, fine] as const) : row)] as const
      )
    )
  )
  describe(`reports about ${api}`, () => {
    for (const [clause, what, reply, expected] of rows) {
      it.scopedLive(`${clause}: ${what}`, () =>
        Effect.gen(function* () {
          const client = yield* connect(api, { id: model }, reply)
          const asked = { prompt: "go", tools: [tool("look"), tool("read")] }
          const result = yield* Effect.either(answer(client.model, asked))
          if (Either.isLeft(result)) {
            const { message, retryable } = classifyError(result.left)
            check({ error: message, retryable }, expected)
          } else {
            check(factsOf(result.right), expected)
            if (expected.error === undefined) isBalanced(result.right)
          }
        }).pipe(reply.ending === "silence" ? Effect.withClock(hasty(4)) : identity)
      )
    }
  })
}

/** An event without a name. */
export const data = (value: unknown): string => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`

export const raw = (...parts: ReadonlyArray<string>): Reply => ({ chunks: parts })
