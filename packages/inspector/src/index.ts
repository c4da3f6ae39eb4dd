/**
 * The public API of `@daybook/inspector`.
 *
 * @module @daybook/inspector
 */
export * as Assets from "./Assets.ts"
export * as Inspector from "./Inspector.ts"
