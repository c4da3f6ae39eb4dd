/**
 * The public API of `@daybook/transcript`, one namespace per module. A module that is not listed is internal.
 *
 * @module @daybook/transcript
 */
export * as RunStream from "./RunStream.ts"
export * as Fold from "./Fold.ts"
export * as QuestionEvents from "./QuestionEvents.ts"
export * as Rows from "./row/Rows.ts"
