/**
 * Merges the request options of an activity's prompts: tools turned on and off, and the form of the answer. The prompt
 * that opens an activity sets both. A prompt that joins it replaces only the options it sets; `tools` without a pattern
 * sets nothing. Pure.
 * Spec: RQ-26, RQ-40, RQ-45.
 */
import { Record } from "effect"
import type { PromptInput } from "./Values.ts"

export type Wishes = Pick<PromptInput, "tools" | "output">

export const noWishes: Wishes = {}

/** The options after one more prompt joined. */
export const join = (held: Wishes, { output, tools }: Wishes): Wishes => ({
  ...held,
  ...(tools === undefined || Record.isEmptyRecord(tools) ? {} : { tools }),
  ...(output === undefined ? {} : { output })
})
