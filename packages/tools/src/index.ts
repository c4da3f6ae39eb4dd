/**
 * The built-in tools of Daybook sessions.
 *
 * @module @daybook/tools
 */
export * as BuiltinTools from "./BuiltinTools.ts"
