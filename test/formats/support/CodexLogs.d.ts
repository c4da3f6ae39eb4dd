/**
 * Makes rollouts of Codex, in the bare form and in envelopes. Written from descriptions of the format; no rollout of a
 * person is copied.
 */
import type { Json } from "./ClaudeLogs.ts"
export declare const threadID = "01970000-0000-7000-8000-000000000001"
/** Numbers the records of a rollout, for their times. */
export declare const clock: () => {
  line: (type: string, payload: Json) => Json
  meta: (more?: Json) => Json
  turn: (model: string, more?: Json) => Json
  item: (payload: Json) => Json
  event: (type: string, more?: Json) => Json
  tokens: (total: Tokens, last?: Tokens) => Json
}
export interface Tokens {
  readonly input: number
  readonly cached?: number
  readonly output: number
  readonly reasoning?: number
}
export declare const message: (role: string, words: string) => Json
export declare const reasoning: (words: string) => Json
export declare const call: (id: string, name: string, args: unknown) => Json
export declare const output: (id: string, given: unknown) => Json
export declare const environment =
  "<environment_context>\n  <cwd>/work/shop</cwd>\n  <shell>bash</shell>\n</environment_context>"
/** A healthy rollout of `turns` prompts, each answered with reasoning, a call and a text. */
export declare function rollout(turns: number, outputSizeBytes?: number): Generator<Json>
/** A rollout from before September 2025: a header, then bare items without times. */
export declare const bareRollout: ReadonlyArray<Json>
/** A rollout from before they were JSON Lines, as one object. */
export declare const documentOf: (items: ReadonlyArray<Json>) => Json
/** Such a rollout with its calls as the versions of April 2025 wrote them. */
export declare const document: Json
//# sourceMappingURL=CodexLogs.d.ts.map
