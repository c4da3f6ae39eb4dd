/** The built-in tools of Daybook sessions. */
export * as BuiltinTools from "./BuiltinTools.ts"
