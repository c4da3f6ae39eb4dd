/**
 * What prompts ask of an activity's requests beside their text: tools turned on and off, and the form of the answer. The
 * prompt that opens an activity sets both; a prompt that joins it replaces only what it sets itself, and `tools` without
 * a pattern set nothing. Pure.
 * Spec: RQ-26, RQ-40, RQ-45.
 */
import { Record } from "effect"
import type { PromptInput } from "../session/Schemas.ts"

export type Wishes = Pick<PromptInput, "tools" | "output">

export const noWishes: Wishes = {}

/** The wishes after one more prompt has joined. */
export const join = (held: Wishes, { output, tools }: Wishes): Wishes => ({
  ...held,
  ...(tools === undefined || Record.isEmptyRecord(tools) ? {} : { tools }),
  ...(output === undefined ? {} : { output })
})
