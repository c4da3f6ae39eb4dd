/**
 * The section `shell` of the configuration: what the operator, and no argument of an agent, decides about live shells.
 * Pure. Spec: CF-52 in specs/config.md.
 */
import { Schema } from "effect"
import { counting, expects, optional, shaped, someText } from "@daybook/core/definition/Fields"
import { durationOf, durationRule, sizeOf, sizeRule } from "../support/Amounts.ts"
import { amountOf, present } from "./Written.ts"

/** Paths are absolute; absent settings have the defaults of `ShellSettings`. */
export interface ShellSection {
  /** Milliseconds; zero for never. */
  readonly idle?: number
  readonly limit?: number
  /** False: whole outputs are not kept. */
  readonly outputs?: false | { readonly folder?: string; readonly quota?: number }
}

const WrittenOutputs = Schema.Struct({
  enabled: optional(Schema.Boolean.pipe(expects("true or false"))),
  folder: optional(someText),
  max_size: amountOf(sizeOf, sizeRule)
}).pipe(shaped("a map of enabled, folder and max_size"))

const idleOf = (text: string): number | undefined => (text === "never" ? 0 : durationOf(text))

export const WrittenShell = Schema.Struct({
  idle: amountOf(idleOf, `never, or ${durationRule}`),
  limit: optional(counting),
  outputs: optional(WrittenOutputs)
}).pipe(shaped("a map"))

const outputsOf = (
  { enabled, folder, max_size: quota }: typeof WrittenOutputs.Type,
  absolute: (written: string) => string
) =>
  enabled === false
    ? (false as const)
    : present({
        folder: folder === undefined ? undefined : absolute(folder),
        quota: quota === undefined ? undefined : sizeOf(quota)
      })

export const shellOf = (
  { idle, limit, outputs }: typeof WrittenShell.Type,
  absolute: (written: string) => string
): ShellSection =>
  present({
    idle: idle === undefined ? undefined : idleOf(idle),
    limit,
    outputs: outputs && outputsOf(outputs, absolute)
  })
