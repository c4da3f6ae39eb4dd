/**
 * Makes logs of Claude Code: records by their fields, and sessions of any size in the forms of several versions. Written
 * from descriptions of the format; no log of a person is copied.
 */
/** A record as a line holds it. */
export type Json = {
  readonly [field: string]: unknown
}
export declare const sessionID = "5d0c1f7e-6a1b-4c2d-8e3f-001122334455"
/** A uuid from a number: the same number gives the same uuid. */
export declare const uuid: (number: number) => string
/** A person's prompt, or blocks that a user record holds. */
export declare const user: (number: number, parent: number | null, content: unknown, more?: Json) => Json
export interface Usage {
  readonly input?: number
  readonly output?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
}
/** One line of an API message. */
export declare const assistant: (
  number: number,
  parent: number | null,
  messageID: string,
  content: ReadonlyArray<unknown>,
  {
    usage,
    ...more
  }?: {
    readonly usage?: Usage
    readonly stop?: string
  } & Json
) => Json
export declare const system: (number: number, parent: number | null, subtype: string, more?: Json) => Json
export declare const attachment: (number: number, parent: number | null, attached: Json) => Json
export declare const call: (id: string, name: string, input: unknown) => Json
export declare const result: (id: string, content: unknown, more?: Json) => Json
export declare const text: (words: string) => Json
export declare const thinking: (words: string) => Json
/** A healthy session of `turns` prompts, each answered with reasoning, two parallel calls and a text. */
export declare function session(turns: number, resultSizeBytes?: number): Generator<Json>
/** Records as the bytes of a file. */
export declare const bytes: (records: Iterable<Json>) => Buffer
//# sourceMappingURL=ClaudeLogs.d.ts.map
