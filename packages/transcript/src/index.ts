/**
 * The public API of `@daybook/transcript`, one namespace per module. A module that is not listed is internal.
 *
 * @module @daybook/transcript
 */
export * as Deltas from "./Deltas.ts"
export * as Fold from "./Fold.ts"
export * as Lines from "./Lines.ts"
export * as QuestionEvents from "./QuestionEvents.ts"
export * as Rows from "./row/Rows.ts"
export * as RunOf from "./row/RunOf.ts"
export * as RunStream from "./RunStream.ts"
export * as AgentDirectory from "./row/AgentDirectory.ts"
export * as TimeText from "./row/TimeText.ts"
